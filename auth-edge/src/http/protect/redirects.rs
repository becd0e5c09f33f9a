//! Fragments that browsers carry from one address to the next.
//!
//! A browser gives the fragment of the address it requested to a `Location` that has none (RFC 9110, section 10.2.2; Fetch,
//! section 4.4), through any number of redirects: what stands there, a token or an attacker's words, reaches the scripts of
//! whoever is last. Invariant: no redirect, ours or an upstream's, passes a fragment on to another origin. An empty fragment
//! is one, and ends it. Deliberately absent: a fragment that a `Location` has, which was meant; redirects within our own
//! addresses, to which anybody could link with any fragment, and whose anchors are to survive a closing slash.

use axum::http::{HeaderMap, HeaderValue, header};

use crate::providers::sites::Sites;

/// Ends the fragment at a redirect that leads away from our own addresses.
pub(crate) fn end_fragment(headers: &mut HeaderMap, sites: &Sites) {
    for (name, value) in headers.iter_mut() {
        if name != header::LOCATION || value.as_bytes().contains(&b'#') || stays(value, sites) {
            continue;
        }
        if let Ok(ended) = HeaderValue::from_bytes(&[value.as_bytes(), b"#"].concat()) {
            *value = ended;
        }
    }
}

/// Whether a browser that follows it stays with us; what cannot be read is read differently by browsers.
fn stays(location: &HeaderValue, sites: &Sites) -> bool {
    let location = String::from_utf8_lossy(location.as_bytes());
    let target = sites.main().base_url.join(&location);
    target.is_ok_and(|target| sites.include(&target))
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    fn after(location: &'static str) -> String {
        let owner = "https://idp.example".to_owned();
        let base = Url::parse("https://app.example").unwrap();
        let sites = Sites::new(
            &base,
            ("/api/auth/login", Vec::new()),
            [("b.example".to_owned(), Some(owner))],
        );
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, HeaderValue::from_static(location));
        end_fragment(&mut headers, &sites);
        headers[header::LOCATION].to_str().unwrap().to_owned()
    }

    #[test]
    fn a_fragment_stays_with_us_and_ends_elsewhere() {
        for stays in [
            "/docs/",
            "docs/",
            "?a",
            "https://app.example/a",
            "//app.example/",
            "https://b.example/a",
            "/a#b",
            "https://evil.example/#own",
            "https://evil.example/#",
        ] {
            assert_eq!(after(stays), stays);
        }
        for leaves in [
            "https://evil.example/?a",
            "//evil.example",
            "/\\evil.example",
            "/\t/evil.example",
            "http://app.example/",
            "https://app.example:8443/",
            "https://app.example@evil.example/",
            "blob:https://app.example/a",
            "custom:thing",
            "https://[",
        ] {
            assert_eq!(after(leaves), format!("{leaves}#"));
        }
    }
}
