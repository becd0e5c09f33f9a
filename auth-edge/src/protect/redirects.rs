//! Fragments that browsers carry from one address to the next.
//!
//! A browser gives the fragment of the address it asked for to a `Location` that has none (RFC 9110, section 10.2.2; Fetch, section
//! 4.4), through any number of redirects: what stands there, a token or an attacker's words, reaches the scripts of whoever is
//! last. Invariants: no redirect of ours passes a fragment on, none of an upstream's does so to another origin. An empty fragment is one, and
//! ends it. Deliberately absent: a fragment that a `Location` has; it was meant.

use axum::http::{HeaderMap, HeaderValue, header};
use url::Url;

/// Ends the fragment at this redirect.
pub fn end_fragment(headers: &mut HeaderMap) {
    end_where(headers, |_| true);
}

/// Ends the fragment at this redirect if it leads away from the origin of `base`.
pub fn end_fragment_abroad(headers: &mut HeaderMap, base: &Url) {
    end_where(headers, |location| {
        let location = String::from_utf8_lossy(location);
        // What cannot be read is read differently by browsers.
        base.join(&location)
            .map_or(true, |target| target.origin() != base.origin())
    });
}

fn end_where(headers: &mut HeaderMap, ends: impl Fn(&[u8]) -> bool) {
    for (name, value) in headers.iter_mut() {
        if name != header::LOCATION || value.as_bytes().contains(&b'#') || !ends(value.as_bytes()) {
            continue;
        }
        if let Ok(ended) = HeaderValue::from_bytes(&[value.as_bytes(), b"#"].concat()) {
            *value = ended;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(location: &'static str, change: impl Fn(&mut HeaderMap)) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, HeaderValue::from_static(location));
        change(&mut headers);
        headers[header::LOCATION].to_str().unwrap().to_owned()
    }

    #[test]
    fn a_fragment_ends_where_the_target_has_none() {
        assert_eq!(after("/a?b", end_fragment), "/a?b#");
        assert_eq!(
            after("https://other.example/", end_fragment),
            "https://other.example/#"
        );
        assert_eq!(after("/a#b", end_fragment), "/a#b");
        assert_eq!(after("/a#", end_fragment), "/a#");
    }

    #[test]
    fn an_upstreams_redirect_keeps_it_on_our_own_origin_alone() {
        let base = Url::parse("https://app.example").unwrap();
        let abroad = |headers: &mut HeaderMap| end_fragment_abroad(headers, &base);
        for stays in [
            "/docs/",
            "docs/",
            "?a",
            "https://app.example/a",
            "//app.example/",
            "/a#b",
        ] {
            assert_eq!(after(stays, abroad), stays);
        }
        for leaves in [
            "https://evil.example/",
            "//evil.example",
            "/\\evil.example",
            "/\t/evil.example",
            "http://app.example/",
            "https://app.example:8443/",
            "https://app.example@evil.example/",
            "custom:thing",
            "https://[",
        ] {
            assert_eq!(after(leaves, abroad), format!("{leaves}#"));
        }
    }
}
