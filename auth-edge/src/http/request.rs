//! What handlers read from a request's head: who is at the other end, is it a prefetch, a script, a navigation.

use std::net::{IpAddr, Ipv4Addr};

use axum::http::{Extensions, HeaderMap, header};
use chassis::serve::PeerAddress;

/// The address of whoever opened the connection: a browser, or a proxy.
#[must_use]
pub(crate) fn peer(extensions: &Extensions) -> IpAddr {
    // Without a connection there is no address; an unspecified one is trusted by nobody.
    extensions
        .get::<PeerAddress>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip())
}

/// Whether a browser only fetches ahead of a visit that may never come.
#[must_use]
pub(crate) fn is_prefetch(headers: &HeaderMap) -> bool {
    let says = |name: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|value| {
                let value = value.trim().to_ascii_lowercase();
                ["prefetch", "prerender", "preview"]
                    .iter()
                    .any(|word| value.starts_with(word))
            })
    };
    says("sec-purpose") || says("purpose") || says("x-purpose") || says("x-moz")
}

/// Whether a script made the request (`fetch()`, XHR), which cannot follow a redirect to another origin.
#[must_use]
pub(crate) fn is_script(headers: &HeaderMap) -> bool {
    let cors = text(headers, "sec-fetch-mode").is_some_and(|mode| matches!(mode, "cors" | "same-origin"));
    let ajax =
        text(headers, "x-requested-with").is_some_and(|value| value.eq_ignore_ascii_case("XMLHttpRequest"));
    let json = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|accept| {
            let mut ranges = accept
                .split(',')
                .map(|range| range.split(';').next().unwrap_or_default().trim());
            ranges
                .clone()
                .any(|kind| kind.eq_ignore_ascii_case("application/json"))
                && !ranges.any(|kind| kind.eq_ignore_ascii_case("text/html"))
        });
    cors || ajax || json
}

/// Where a request comes from, as far as Fetch Metadata tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchSite {
    /// Our own site, the address bar, or a browser that does not say.
    Own,
    /// Another site.
    Other,
}

/// Reads `Sec-Fetch-FetchSite`; a word we do not know counts as another site.
#[must_use]
pub(crate) fn site(headers: &HeaderMap) -> FetchSite {
    let mut values = headers.get_all("sec-fetch-site").iter();
    let own = values.all(|value| matches!(value.as_bytes(), b"same-origin" | b"same-site" | b"none"));
    if own { FetchSite::Own } else { FetchSite::Other }
}

/// Whether the request is a visit: a navigation of a whole page, as far as Fetch Metadata tells; an absent header does not
/// deny it. A service worker of our own that passes a visit on says that it is one, from our origin, but not for what
/// (`Sec-Fetch-Dest: empty`); no other script can ask in this mode (Fetch, section 5.4). What says it twice says it wrong.
#[must_use]
pub(crate) fn is_navigation(headers: &HeaderMap) -> bool {
    let says = |name: &str, right: &[&[u8]]| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => true,
            (Some(value), None) => right.contains(&value.as_bytes()),
            (Some(_), Some(_)) => false,
        }
    };
    let navigates = says("sec-fetch-mode", &[b"navigate"]);
    let passed_on =
        text(headers, "sec-fetch-mode").is_some() && text(headers, "sec-fetch-site") == Some("same-origin");
    let whole: &[&[u8]] = if passed_on {
        &[b"document", b"empty"]
    } else {
        &[b"document"]
    };
    navigates && says("sec-fetch-dest", whole)
}

/// The one value of a header; none if it is repeated or not text.
#[must_use]
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// The first value of a query or form parameter; repetitions are ignored.
#[must_use]
pub(crate) fn first_parameter(encoded: &str, name: &str) -> Option<String> {
    url::form_urlencoded::parse(encoded.as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn every_spelling_of_a_prefetch_is_one() {
        for pair in [
            ("purpose", "prefetch"),
            ("sec-purpose", "prefetch"),
            ("sec-purpose", "prefetch;prerender"),
            ("x-moz", "prefetch"),
        ] {
            assert!(is_prefetch(&headers(&[pair])), "{pair:?}");
        }
        assert!(!is_prefetch(&headers(&[("purpose", "other")])));
    }

    #[test]
    fn a_script_is_told_from_a_navigation() {
        assert!(is_script(&headers(&[("sec-fetch-mode", "cors")])));
        assert!(is_script(&headers(&[("accept", "application/json")])));
        assert!(!is_script(&headers(&[
            ("sec-fetch-mode", "navigate"),
            ("accept", "text/html,*/*")
        ])));
        assert!(!is_script(&headers(&[("accept", "*/*")])));
    }

    #[test]
    fn only_whole_pages_from_our_own_site_or_none_count_as_own_navigation() {
        assert_eq!(site(&headers(&[])), FetchSite::Own);
        assert_eq!(site(&headers(&[("sec-fetch-site", "none")])), FetchSite::Own);
        assert_eq!(
            site(&headers(&[("sec-fetch-site", "cross-site")])),
            FetchSite::Other
        );
        assert_eq!(site(&headers(&[("sec-fetch-site", "else")])), FetchSite::Other);
        assert!(is_navigation(&headers(&[
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document")
        ])));
        assert!(!is_navigation(&headers(&[
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "iframe")
        ])));
        assert!(!is_navigation(&headers(&[("sec-fetch-mode", "no-cors")])));
        assert!(!is_navigation(&headers(&[("sec-fetch-dest", "empty")])));
        assert!(!is_navigation(&headers(&[
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "empty"),
            ("sec-fetch-site", "cross-site")
        ])));
        assert!(is_navigation(&headers(&[
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "empty"),
            ("sec-fetch-site", "same-origin")
        ])));
        assert!(is_navigation(&headers(&[])));
    }
}
