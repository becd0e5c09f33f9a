//! The security headers, which restrict what a browser lets a page do.
//!
//! Every answer gets `nosniff`, a referrer policy and, over https, HSTS. HTML pages also get a content security
//! policy without `unsafe-inline`, `X-Frame-Options` for old browsers and a cross-origin opener policy. JSON,
//! redirects and empty answers get a policy that allows nothing. The resource policy of all is `same-origin`. Headers
//! from handlers stay. Upstream answers get only the first three: a policy could break them. Not sent: CORS headers,
//! since all routes of the edge are same-origin.

use axum::response::Response;
use http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};

/// What a page from a directory may load: its own origin, and pictures from `data:` and https.
///
/// `form-action` is missing on purpose: signing out is a form whose answer redirects to the provider, and
/// browsers apply the directive to the redirect.
pub(crate) const PAGE_POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self'; \
     img-src 'self' data: https:; font-src 'self'; connect-src 'self'; object-src 'none'; base-uri 'none'; \
     frame-ancestors 'none'";

/// The policy of an answer that is no page, in case a browser renders it: no content and no frame.
const NO_PAGE_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; base-uri 'none'");

/// A year, the least that browsers' preload lists accept.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000; includeSubDomains");

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Response extension: an upstream made this answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FromUpstream;

/// Adds the missing headers to an answer; `https` says whether the edge's base URL is https.
#[must_use]
pub(crate) fn add(mut response: Response, https: bool) -> Response {
    let from_upstream = response.extensions().get::<FromUpstream>().is_some();
    let status = response.status();
    let headers = response.headers_mut();
    let (is_html, is_no_page) = (is_html(headers), is_no_page(headers, status));
    // The older header must not forbid frames that a page's own policy allows.
    let may_be_framed = headers.get(CONTENT_SECURITY_POLICY).is_some_and(allows_frames);
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
        return response;
    }
    if is_html {
        add(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
        add(OPENER_POLICY, HeaderValue::from_static("same-origin"));
        if !may_be_framed {
            add(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        }
    } else if is_no_page {
        add(CONTENT_SECURITY_POLICY, NO_PAGE_POLICY);
    }
    add(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    response
}

fn is_html(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| {
        kind.as_bytes()
            .get(..9)
            .is_some_and(|kind| kind.eq_ignore_ascii_case(b"text/html"))
    })
}

/// Whether an answer is JSON or has no body. Scripts and pictures of a folder get no policy: a script's policy also
/// applies to its worker. The headers of a 304 replace the stored page's (RFC 9111, section 3.2).
fn is_no_page(headers: &HeaderMap, status: StatusCode) -> bool {
    match headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes) {
        None => status != StatusCode::NOT_MODIFIED,
        Some(kind) => {
            let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default();
            let essence = essence.trim_ascii().to_ascii_lowercase();
            essence.ends_with(b"/json") || essence.ends_with(b"+json")
        }
    }
}

fn allows_frames(policy: &HeaderValue) -> bool {
    let policy = String::from_utf8_lossy(policy.as_bytes());
    !policy.contains("frame-ancestors 'none'")
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;
    use http::header;

    use super::*;

    const OK: StatusCode = StatusCode::OK;

    fn apply(headers: &mut HeaderMap, status: StatusCode, https: bool, from_upstream: bool) {
        let mut response = status.into_response();
        *response.headers_mut() = std::mem::take(headers);
        if from_upstream {
            response.extensions_mut().insert(FromUpstream);
        }
        *headers = add(response, https).headers().clone();
    }

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
        apply(&mut headers, OK, true, false);
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
        apply(&mut headers, OK, false, false);
        assert!(!headers.contains_key("strict-transport-security"));
    }

    #[test]
    fn what_a_handler_set_stays() {
        let mut headers = html();
        headers.insert(
            "content-security-policy",
            HeaderValue::from_static("frame-ancestors https://op.example"),
        );
        apply(&mut headers, OK, true, false);
        assert_eq!(
            headers["content-security-policy"],
            "frame-ancestors https://op.example"
        );
        assert!(!headers.contains_key("x-frame-options"));
    }

    #[test]
    fn an_upstreams_page_keeps_its_own_policy() {
        let mut headers = html();
        apply(&mut headers, OK, true, true);
        assert!(!headers.contains_key("content-security-policy"));
        assert!(!headers.contains_key("cross-origin-resource-policy"));
        assert_eq!(headers["x-content-type-options"], "nosniff");
    }

    #[test]
    fn an_answer_without_a_page_may_do_nothing() {
        let policy_of = |status, kind: Option<&'static str>, from_upstream| {
            let mut headers = HeaderMap::new();
            if let Some(kind) = kind {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            }
            apply(&mut headers, status, true, from_upstream);
            headers.remove(header::CONTENT_SECURITY_POLICY)
        };
        let nothing = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'";
        let json = "application/json";
        for (status, kind) in [
            (OK, Some(json)),
            (StatusCode::NOT_FOUND, Some("Application/JSON; charset=utf-8")),
            (OK, Some("application/jwk-set+json")),
            (OK, None),
            (StatusCode::NO_CONTENT, None),
            (StatusCode::FOUND, None),
            (StatusCode::TEMPORARY_REDIRECT, None),
        ] {
            assert_eq!(
                policy_of(status, kind, false).unwrap(),
                nothing,
                "{status} {kind:?}"
            );
        }
        for (status, kind) in [
            (StatusCode::NOT_MODIFIED, None),
            (OK, Some("text/javascript")),
            (OK, Some("image/svg+xml")),
            (OK, Some("application/manifest")),
        ] {
            assert_eq!(policy_of(status, kind, false), None, "{status} {kind:?}");
        }
        for (status, kind) in [(OK, Some(json)), (StatusCode::FOUND, None)] {
            assert_eq!(policy_of(status, kind, true), None, "{status} {kind:?}");
        }
    }
}
