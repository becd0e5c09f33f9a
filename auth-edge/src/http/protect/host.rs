//! Rejects requests without a host or with two, which programs around the edge could read differently.
//!
//! RFC 9112, section 3.2: the edge answers 400. If providers have their own hosts, the edge writes the host that
//! the browser requested into `Host`.

use axum::extract::Request;
use axum::http::{HeaderValue, Version, header};

use crate::http::errors::HttpError;
use crate::http::request;
use crate::values::forwarded::TrustedProxies;

/// Checks that a request names exactly one host.
///
/// # Errors
/// The request names no host, or two.
pub(crate) fn check_host(request: &Request) -> Result<(), HttpError> {
    let named = request.headers().get_all(header::HOST).iter().count();
    let least = usize::from(request.version() == Version::HTTP_11);
    if named > 1 || named < least {
        return Err(HttpError::BadRequest("The request must name exactly one host."));
    }
    Ok(())
}

/// Writes the host that the browser requested into `Host`: by a trusted proxy's header, else by the target's
/// authority, over HTTP/1.1 too (RFC 9112, section 3.2.2).
pub(crate) fn write(request: &mut Request, trusted: &TrustedProxies) {
    if let Some(host) = by_others(request, trusted) {
        request.headers_mut().insert(header::HOST, host);
    }
}

/// The host from a source that has priority over `Host`.
fn by_others(request: &Request, trusted: &TrustedProxies) -> Option<HeaderValue> {
    let by_proxy = || {
        let peer = request::peer(request.extensions());
        let forwarded = request.headers().get_all("x-forwarded-host");
        let mut forwarded = forwarded.iter().filter(|_| trusted.trusts(peer));
        forwarded.next().filter(|_| forwarded.next().is_none()).cloned()
    };
    let authority = || {
        let authority = request.uri().authority()?;
        HeaderValue::try_from(authority.as_str()).ok()
    };
    by_proxy().or_else(authority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_of_the_target_counts_before_host() {
        for (target, expected) in [
            ("/a", "a.example"),
            ("http://b.example/a", "b.example"),
            ("http://b.example:8443/", "b.example:8443"),
        ] {
            let mut request = axum::http::Request::new(axum::body::Body::empty());
            *request.uri_mut() = target.parse().unwrap();
            let host = HeaderValue::from_static("a.example");
            request.headers_mut().insert(header::HOST, host);
            write(&mut request, &TrustedProxies::default());
            assert_eq!(request.headers()[header::HOST], expected, "{target}");
        }
    }
}
