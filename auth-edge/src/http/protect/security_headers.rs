//! The headers that tell a browser how little a page may do.
//!
//! Every answer gets `nosniff`, a referrer policy and, on https, HSTS; every HTML page also a content security policy
//! without `unsafe-inline`, `X-Frame-Options` for old browsers and a cross-origin opener policy; our own JSON is
//! same-origin. A header a handler has set stays. Pages of an upstream keep the policy they came with and get none of
//! ours, which could only break them. Deliberately absent: CORS headers; no route of the edge is for other origins.

use axum::response::Response;
use http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue};

/// What a page served from a directory may do: only what comes from this origin, and pictures from anywhere safe.
///
/// `form-action` is left open on purpose: signing out is a form whose answer redirects to the provider, and browsers
/// apply the directive to the redirect.
pub(crate) const PAGE_POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self'; \
     img-src 'self' data: https:; font-src 'self'; connect-src 'self'; object-src 'none'; base-uri 'none'; \
     frame-ancestors 'none'";

/// A year, the least that browsers' preload lists accept.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000; includeSubDomains");

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Marks, as a response extension, an answer that an upstream made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FromUpstream;

/// Whether the edge's base URL is https.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Https(pub(crate) bool);

/// Adds to an answer what is missing.
#[must_use]
pub(crate) fn add(mut response: Response, https: Https) -> Response {
    let from_upstream = response.extensions().get::<FromUpstream>().is_some();
    apply(response.headers_mut(), https, from_upstream);
    response
}

fn apply(headers: &mut HeaderMap, Https(https): Https, from_upstream: bool) {
    let mut add = |name: HeaderName, value: HeaderValue| {
        headers.entry(name).or_insert(value);
    };
    add(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    add(
        REFERRER_POLICY,
        HeaderValue::from_static("strict-origin-when-cross-origin"),
    );
    if https {
        add(STRICT_TRANSPORT_SECURITY, HSTS);
    }
    if from_upstream {
        return;
    }
    if is_html(headers) {
        let mut add = |name: HeaderName, value: HeaderValue| {
            headers.entry(name).or_insert(value);
        };
        add(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
        add(OPENER_POLICY, HeaderValue::from_static("same-origin"));
        // A page that allows a frame by its own policy must not have it taken away by the older header.
        if headers.get(CONTENT_SECURITY_POLICY).is_some_and(forbids_frames) {
            headers
                .entry(X_FRAME_OPTIONS)
                .or_insert(HeaderValue::from_static("DENY"));
        }
    }
    headers
        .entry(RESOURCE_POLICY)
        .or_insert(HeaderValue::from_static("same-origin"));
}

fn is_html(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| {
        kind.as_bytes()
            .get(..9)
            .is_some_and(|kind| kind.eq_ignore_ascii_case(b"text/html"))
    })
}

fn forbids_frames(policy: &HeaderValue) -> bool {
    policy
        .to_str()
        .is_ok_and(|policy| policy.contains("frame-ancestors 'none'"))
}

#[cfg(test)]
mod tests {
    use super::{Https, PAGE_POLICY, apply};
    use http::{HeaderMap, HeaderValue, header};

    fn html() -> HeaderMap {
        [(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        )]
        .into_iter()
        .collect()
    }

    #[test]
    fn a_page_gets_them_all() {
        let mut headers = html();
        apply(&mut headers, Https(true), false);
        for name in [
            "content-security-policy",
            "x-content-type-options",
            "referrer-policy",
            "strict-transport-security",
            "cross-origin-opener-policy",
            "cross-origin-resource-policy",
            "x-frame-options",
        ] {
            assert!(headers.contains_key(name), "{name}");
        }
        assert!(!PAGE_POLICY.contains("unsafe"));
        assert!(PAGE_POLICY.contains("frame-ancestors 'none'"));
    }

    #[test]
    fn plain_http_promises_no_https() {
        let mut headers = html();
        apply(&mut headers, Https(false), false);
        assert!(!headers.contains_key("strict-transport-security"));
    }

    #[test]
    fn what_a_handler_set_stays() {
        let mut headers = html();
        headers.insert(
            "content-security-policy",
            HeaderValue::from_static("frame-ancestors https://op.example"),
        );
        apply(&mut headers, Https(true), false);
        assert_eq!(
            headers["content-security-policy"],
            "frame-ancestors https://op.example"
        );
        assert!(!headers.contains_key("x-frame-options"));
    }

    #[test]
    fn an_upstreams_page_keeps_its_own_policy() {
        let mut headers = html();
        apply(&mut headers, Https(true), true);
        assert!(!headers.contains_key("content-security-policy"));
        assert!(!headers.contains_key("cross-origin-resource-policy"));
        assert_eq!(headers["x-content-type-options"], "nosniff");
    }
}
