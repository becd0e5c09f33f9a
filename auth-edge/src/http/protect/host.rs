//! Requests that name no host, or two: programs behind and before the edge could disagree on whose they are.
//!
//! RFC 9112, section 3.2: such a request is answered with 400. Where providers have hosts of their own, the host a browser
//! requested is written where everybody reads it.

use axum::extract::Request;
use axum::http::{HeaderValue, Version, header};

use crate::http::errors::HttpError;
use crate::http::request;
use crate::values::forwarded::TrustedProxies;

/// Whether a request names one host, as it has to.
///
/// # Errors
/// It names none, or two.
pub(crate) fn named(request: &Request) -> Result<(), HttpError> {
    let named = request.headers().get_all(header::HOST).iter().count();
    let least = usize::from(request.version() == Version::HTTP_11);
    if named > 1 || named < least {
        return Err(HttpError::BadRequest("The request has to name one host."));
    }
    Ok(())
}

/// Writes into `Host` the host the browser requested: what a trusted proxy says, or the authority of the target, which over
/// HTTP/1.1 too counts where it is there (RFC 9112, section 3.2.2).
pub(crate) fn write(request: &mut Request, trusted: &TrustedProxies) {
    if let Some(host) = by_others(request, trusted) {
        request.headers_mut().insert(header::HOST, host);
    }
}

/// The host that counts before `Host`.
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
