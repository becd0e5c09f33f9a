//! Reads from a request's head: the peer's address, and whether it is a prefetch, a script or a navigation.

use std::net::{IpAddr, Ipv4Addr};

use axum::http::{Extensions, HeaderMap, header};
use chassis::serve::PeerAddress;

/// The address of the peer on the connection: a browser or a proxy.
#[must_use]
pub(crate) fn peer(extensions: &Extensions) -> IpAddr {
    // Without a connection there is no address; the edge never trusts the unspecified one.
    extensions
        .get::<PeerAddress>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip())
}

/// Whether a browser only fetches ahead for a visit that may never happen.
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

/// Whether a script made the request (`fetch()`, XHR, `EventSource`, `WebSocket`): it cannot follow a redirect
/// to another origin. Safari before 16.4 and programs send no Fetch Metadata.
#[must_use]
pub(crate) fn is_script(headers: &HeaderMap) -> bool {
    let cors = text(headers, "sec-fetch-mode").is_some_and(|mode| matches!(mode, "cors" | "same-origin"));
    let ajax =
        text(headers, "x-requested-with").is_some_and(|value| value.eq_ignore_ascii_case("XMLHttpRequest"));
    let websocket = headers.contains_key(header::SEC_WEBSOCKET_VERSION);
    let for_scripts = accepts(headers, &SCRIPT_TYPES) && !accepts(headers, &["text/html"]);
    cors || ajax || websocket || for_scripts
}

/// Media types that only scripts accept without `text/html`.
const SCRIPT_TYPES: [&str; 2] = ["application/json", "text/event-stream"];

/// Whether the client prefers a page to JSON: it accepts `text/html`.
#[must_use]
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    accepts(headers, &["text/html", "application/xhtml+xml"])
}

/// Whether `Accept` names one of these media types with a quality above 0.
fn accepts(headers: &HeaderMap, types: &[&str]) -> bool {
    let lines = headers.get_all(header::ACCEPT).iter();
    let texts = lines.filter_map(|line| line.to_str().ok());
    texts.flat_map(|text| text.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        types.iter().any(|known| kind.eq_ignore_ascii_case(known))
            && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

/// Whether another site caused this request: an unknown value counts, the address bar and a missing header do
/// not.
#[must_use]
pub(crate) fn is_cross_site(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all("sec-fetch-site").iter();
    !values.all(|value| matches!(value.as_bytes(), b"same-origin" | b"same-site" | b"none"))
}

/// Whether the request is a visit: a navigation of a whole page, by Fetch Metadata. Guards, login, callback,
/// logout and third-party logins all use this function.
///
/// If a service worker answers a visit by `fetch(event.request)`, Chromium sends `Sec-Fetch-Dest: empty` and
/// WebKit no destination. No other script can send the mode `navigate` (Fetch, section 5.4). A request without
/// Fetch Metadata counts as a visit; one with a repeated header does not.
#[must_use]
pub(crate) fn is_navigation(headers: &HeaderMap) -> bool {
    matches!(
        (fetch_metadata(headers, MODE), fetch_metadata(headers, DEST)),
        (Some(b"navigate"), None | Some(b"document" | b"empty")) | (None, None | Some(b"document"))
    )
}

/// Whether a browser loads the request into a frame.
#[must_use]
pub(crate) fn is_framed(headers: &HeaderMap) -> bool {
    let frames: [&[u8]; 4] = [b"iframe", b"frame", b"object", b"embed"];
    let dest = fetch_metadata(headers, DEST);
    dest.is_some_and(|dest| frames.contains(&dest)) && fetch_metadata(headers, MODE) == Some(b"navigate")
}

const MODE: &str = "sec-fetch-mode";
const DEST: &str = "sec-fetch-dest";

/// The value of a header; empty, which matches no known value, if the header is repeated.
fn fetch_metadata<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.as_bytes();
    Some(if values.next().is_none() { value } else { b"" })
}

/// Lower-case parts of the `User-Agent` of link openers and previews: Office, Outlook, Teams and Skype, chats.
const LINK_OPENERS: [&str; 11] = [
    "ms-office",
    "msoffice",
    "microsoft office",
    "microsoft outlook",
    "skypeuripreview",
    "slackbot",
    "slack-imgproxy",
    "whatsapp/",
    "telegrambot",
    "discordbot",
    "facebookexternalhit",
];

/// Whether the client opens a link for a browser without its cookies. Office then gives the browser the last
/// address; chat previews show the last page. A client with Fetch Metadata is a browser.
#[must_use]
pub(crate) fn is_link_opener(headers: &HeaderMap) -> bool {
    if headers.contains_key(MODE) {
        return false;
    }
    let user_agent = headers
        .get(header::USER_AGENT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_ascii_lowercase();
    LINK_OPENERS.iter().any(|opener| user_agent.contains(opener))
        || headers.keys().any(|name| name.as_str().starts_with("x-office-"))
}

/// The only value of a header; `None` if the header is repeated or not text.
#[must_use]
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// The first value of a query or form parameter; later values are ignored.
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
        assert!(is_script(&headers(&[("accept", "text/event-stream")])));
        assert!(is_script(&headers(&[
            ("accept", "text/html"),
            ("sec-websocket-version", "13")
        ])));
        assert!(!is_script(&headers(&[("accept", "*/*")])));
    }

    #[test]
    fn only_whole_pages_from_our_own_site_or_none_count_as_own_navigation() {
        assert!(!is_cross_site(&headers(&[])));
        assert!(!is_cross_site(&headers(&[("sec-fetch-site", "none")])));
        assert!(is_cross_site(&headers(&[("sec-fetch-site", "cross-site")])));
        assert!(is_cross_site(&headers(&[("sec-fetch-site", "else")])));
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
        for site in ["cross-site", "same-origin", "none"] {
            assert!(is_navigation(&headers(&[
                ("sec-fetch-mode", "navigate"),
                ("sec-fetch-dest", "empty"),
                ("sec-fetch-site", site)
            ])));
        }
        assert!(is_navigation(&headers(&[("sec-fetch-mode", "navigate")])));
        assert!(is_navigation(&headers(&[])));
    }

    #[test]
    fn only_a_navigation_below_a_page_is_framed() {
        for dest in ["iframe", "frame", "object", "embed"] {
            assert!(is_framed(&headers(&[
                ("sec-fetch-mode", "navigate"),
                ("sec-fetch-dest", dest)
            ])));
            assert!(!is_framed(&headers(&[
                ("sec-fetch-mode", "no-cors"),
                ("sec-fetch-dest", dest)
            ])));
        }
        assert!(!is_framed(&headers(&[
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document")
        ])));
    }

    #[test]
    fn office_and_previews_open_links_and_browsers_do_not() {
        let office = "Mozilla/4.0 (compatible; ms-office; MSOffice 16)";
        let preview = "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5";
        let outlook = "Microsoft Office/16.0 (Windows NT 10.0; Microsoft Outlook 16.0.12026; Pro)";
        for user_agent in [office, preview, outlook, "Slackbot-LinkExpanding 1.0"] {
            assert!(
                is_link_opener(&headers(&[("user-agent", user_agent)])),
                "{user_agent}"
            );
        }
        assert!(is_link_opener(&headers(&[("x-office-major-version", "16")])));
        assert!(!is_link_opener(&headers(&[(
            "user-agent",
            "Mozilla/5.0 Firefox/140.0"
        )])));
        assert!(
            !is_link_opener(&headers(&[
                ("user-agent", office),
                ("sec-fetch-mode", "navigate")
            ])),
            "a browser inside Office keeps cookies"
        );
    }

    #[test]
    fn a_browser_gets_a_page_and_a_program_gets_json() {
        assert!(wants_page(&headers(&[(
            "accept",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
        )])));
        for program in ["*/*", "application/json", "text/html;q=0, */*", ""] {
            assert!(!wants_page(&headers(&[("accept", program)])), "{program}");
        }
        assert!(!wants_page(&HeaderMap::new()));
    }
}
