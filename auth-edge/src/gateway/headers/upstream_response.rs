//! Filters an upstream's answer for the browser and for the proxies and caches in between.
//!
//! Invariants
//! - No upstream sets or clears one of our cookies.
//! - If sessions are bound to devices, no upstream binds a browser itself or clears the key of a session.
//! - No upstream makes a proxy in front of us replace the answer.
//! - No cache stores any kind of answer to a session.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::{cookie_name, list, remove, strip_hop_by_hop};
use crate::values::header_name::members;

/// Headers that make a proxy in front of us (nginx, Apache, lighttpd, LiteSpeed, Perlbal) answer with a file
/// or address of its own. No guard has checked that target.
const INSTEAD: [HeaderName; 6] = [
    HeaderName::from_static("x-accel-redirect"),
    HeaderName::from_static("x-sendfile"),
    HeaderName::from_static("x-sendfile2"),
    HeaderName::from_static("x-lighttpd-send-file"),
    HeaderName::from_static("x-litespeed-location"),
    HeaderName::from_static("x-reproxy-url"),
];

/// Cache lifetimes in other headers than `Cache-Control` and its variants (RFC 9111, RFC 9213, Edge
/// Architecture Specification, nginx, Akamai).
const FOR_CACHES: [HeaderName; 6] = [
    header::EXPIRES,
    header::AGE,
    header::PRAGMA,
    HeaderName::from_static("surrogate-control"),
    HeaderName::from_static("x-accel-expires"),
    HeaderName::from_static("edge-control"),
];

/// `Cache-Control` and its variants for some caches: `CDN-Cache-Control` (RFC 9213),
/// `Cloudflare-CDN-Cache-Control`.
const CACHE_CONTROLS: &str = "cache-control";

const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");

/// Directives that an upstream may send (Clear Site Data, section 3.1): none for cookies.
const CLEARABLE: [&[u8]; 6] = [
    b"\"cache\"",
    b"\"storage\"",
    b"\"executionContexts\"",
    b"\"clientHints\"",
    b"\"prefetchCache\"",
    b"\"prerenderCache\"",
];

/// Replaces the directive to clear everything: clears all but cookies.
const ALL_BUT_COOKIES: &[u8] = b"\"cache\", \"storage\"";

/// Also clears a bound session's key, which ends the session (W3C DBSC, section "Clear-Site-Data").
const STORAGE: &[u8] = b"\"storage\"";

/// Headers that bind a session to a device and request proofs (W3C DBSC). An upstream has our origin: its
/// binding would replace ours, and its challenges use up the browser's few signatures.
pub(super) const OF_BINDINGS: [HeaderName; 2] = [
    HeaderName::from_static("secure-session-registration"),
    HeaderName::from_static("secure-session-challenge"),
];

/// Filters an upstream's headers for the browser. Requests that another site's page causes have no cookies, so the
/// request does not show whether the browser's session is bound.
pub(in crate::gateway) fn strip_response(
    headers: &mut HeaderMap,
    binds_devices: bool,
    is_our_cookie: impl Fn(&str) -> bool,
) {
    strip_hop_by_hop(headers);
    remove(headers, |name| {
        INSTEAD.contains(name) || (binds_devices && OF_BINDINGS.contains(name))
    });
    if headers.contains_key(CLEAR_SITE_DATA) {
        keep_session(headers, binds_devices);
    }
    let header::Entry::Occupied(set) = headers.entry(header::SET_COOKIE) else {
        return;
    };
    let (_, cookies) = set.remove_entry_mult();
    for cookie in cookies.collect::<Vec<_>>() {
        let pair = cookie.as_bytes().split(|byte| *byte == b';').next();
        if !is_our_cookie(&cookie_name(pair.unwrap_or_default())) {
            headers.append(header::SET_COOKIE, cookie);
        }
    }
}

/// Forbids caching of an answer: only `no-store` remains.
pub(in crate::gateway) fn forbid_caching(headers: &mut HeaderMap) {
    remove(headers, |name| {
        name.as_str().ends_with(CACHE_CONTROLS) || FOR_CACHES.contains(name)
    });
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// Removes `Clear-Site-Data` directives that clear cookies or a bound session's key, and so end the session.
fn keep_session(headers: &mut HeaderMap, binds_devices: bool) {
    let cleared = members(headers, CLEAR_SITE_DATA).filter_map(|word| match word {
        b"\"*\"" if binds_devices => Some(CLEARABLE[0]),
        b"\"*\"" => Some(ALL_BUT_COOKIES),
        STORAGE if binds_devices => None,
        word => Some(word).filter(|word| CLEARABLE.contains(word)),
    });
    let kept = list(cleared, b", ");
    headers.remove(CLEAR_SITE_DATA);
    headers.extend(kept.map(|kept| (CLEAR_SITE_DATA, kept)));
}

#[cfg(test)]
mod tests {
    use super::super::tests::{headers, ours};
    use super::{forbid_caching, strip_response};

    #[test]
    fn an_upstream_cannot_set_our_cookies() {
        let mut sent = headers(&[
            ("set-cookie", "theme=dark; Path=/"),
            ("set-cookie", "__Host-session=evil; Path=/"),
            ("set-cookie", "__host-SESSION=evil"),
            ("set-cookie", "=__Host-session=evil"),
            ("set-cookie", " __Host-session =evil"),
            ("set-cookie", "__Host-session_login_a=evil"),
            ("connection", "keep-alive"),
        ]);
        strip_response(&mut sent, false, ours);
        assert_eq!(sent, headers(&[("set-cookie", "theme=dark; Path=/")]));
    }

    #[test]
    fn an_upstream_clears_no_cookies() {
        for (sent, kept) in [
            (&["\"cookies\""][..], None),
            (
                &["\"cache\", \"cookies\" ,\"storage\""],
                Some("\"cache\", \"storage\""),
            ),
            (&["\"*\""], Some("\"cache\", \"storage\"")),
            (
                &["\"cookies\"", "\"executionContexts\""],
                Some("\"executionContexts\""),
            ),
            (&["\"COOKIES\", cookies, \"something new\", \"\", "], None),
        ] {
            let pairs: Vec<_> = sent.iter().map(|line| ("clear-site-data", *line)).collect();
            let mut sent = headers(&pairs);
            strip_response(&mut sent, false, ours);
            let left = sent
                .get("clear-site-data")
                .map(|value| value.to_str().expect("text"));
            assert_eq!(left, kept, "{pairs:?}");
        }
    }

    #[test]
    fn an_upstream_clears_no_key_that_a_session_is_bound_to() {
        for (sent, kept) in [
            ("\"storage\"", None),
            ("\"cache\", \"storage\"", Some("\"cache\"")),
            ("\"*\"", Some("\"cache\"")),
        ] {
            let mut sent = headers(&[("clear-site-data", sent)]);
            strip_response(&mut sent, true, ours);
            let left = sent.get("clear-site-data");
            assert_eq!(left.map(|value| value.to_str().expect("text")), kept);
        }
    }

    #[test]
    fn an_upstream_binds_no_browser_in_our_place() {
        let all = [
            (
                "secure-session-registration",
                "(ES256);path=\"/own\";challenge=\"a\"",
            ),
            ("Secure-Session-Challenge", "\"a\";id=\"b\""),
            ("secure-session-challenge", "\"c\""),
            ("etag", "\"a\""),
        ];
        let mut sent = headers(&all);
        strip_response(&mut sent, true, ours);
        assert_eq!(sent, headers(&[("etag", "\"a\"")]));
        let mut sent = headers(&all);
        strip_response(&mut sent, false, ours);
        assert_eq!(
            sent,
            headers(&all),
            "where none are bound the header is the upstream's own"
        );
    }

    #[test]
    fn no_proxy_before_us_answers_with_something_else() {
        let mut sent = headers(&[
            ("x-accel-redirect", "/internal/secret"),
            ("X-Sendfile", "/etc/passwd"),
            ("x-reproxy-url", "http://10.0.0.1/"),
            ("x-accel-buffering", "no"),
        ]);
        strip_response(&mut sent, false, ours);
        assert_eq!(sent, headers(&[("x-accel-buffering", "no")]));
    }

    #[test]
    fn no_store_alone_decides() {
        let mut sent = headers(&[
            ("cache-control", "public, max-age=60"),
            ("cache-control", "s-maxage=60"),
            ("CDN-Cache-Control", "max-age=60"),
            ("Cloudflare-CDN-Cache-Control", "max-age=60"),
            ("X-LiteSpeed-Cache-Control", "public"),
            ("Surrogate-Control", "max-age=60"),
            ("Edge-Control", "cache-maxage=60"),
            ("X-Accel-Expires", "60"),
            ("Expires", "Thu, 01 Jan 2099 00:00:00 GMT"),
            ("Age", "0"),
            ("Pragma", "public"),
            ("etag", "\"a\""),
        ]);
        forbid_caching(&mut sent);
        assert_eq!(sent, headers(&[("etag", "\"a\""), ("cache-control", "no-store")]));
    }
}
