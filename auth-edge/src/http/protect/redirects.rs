//! Stops browsers from carrying fragments from one address to the next.
//!
//! If a `Location` has no fragment, a browser keeps that of the requested address (RFC 9110, section 10.2.2;
//! Fetch, section 4.4). So a token or an attacker's text could reach the scripts of the last page. Invariant: no
//! redirect of the edge or an upstream passes a fragment to another origin; an empty fragment stops it.
//! Unchanged: a `Location` with its own fragment, and redirects within the product. Any page can link there with
//! any fragment, and anchors must survive a redirect that adds a slash.

use axum::http::{HeaderMap, HeaderValue, header};

use crate::providers::sites::Sites;

/// Ends the fragment at a redirect away from the product's own addresses.
pub(crate) fn end_fragment(headers: &mut HeaderMap, sites: &Sites) {
    for (name, value) in headers.iter_mut() {
        if name != header::LOCATION || value.as_bytes().contains(&b'#') || is_within_product(value, sites) {
            continue;
        }
        if let Ok(ended) = HeaderValue::from_bytes(&[value.as_bytes(), b"#"].concat()) {
            *value = ended;
        }
    }
}

/// Whether a browser that follows the redirect stays in the product. If parsing fails, browsers may differ: `false`.
fn is_within_product(location: &HeaderValue, sites: &Sites) -> bool {
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
