//! A client's request made the upstream's.
//!
//! Invariants: hop-by-hop headers end here (RFC 9110, section 7.6.1); who somebody is, and where they come from, the upstream learns
//! from us alone; it is asked at the address it was configured with, whatever the client says.

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::uri::{Authority, PathAndQuery, Scheme};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, Version, header};
use url::Url;

use super::super::assertion::{self, Assertions};
use super::super::guard::Granted;
use super::super::headers;
use super::super::path::RequestPath;
use super::upgrade::{self, Asked};
use super::{Way, is_ours, proof};
use crate::errors::Failure;

/// Makes a client's head the upstream's: nothing of this hop or of somebody's invention is left, what we know is told.
pub(super) fn dress(head: &mut Parts, way: &Way<'_>, uri: Uri, peer: IpAddr, asked: Option<Asked>) {
    let edge = way.edge;
    let client_address = edge.trusted_proxies.client_address(peer, &head.headers);
    let host = own_host(edge.sites.of(&head.headers).base_url());
    let may_speak_http2 = way.server.prior_knowledge || way.server.url.scheme() == "https";
    let wants_trailers = may_speak_http2 && headers::is_grpc(&head.headers);
    headers::strip_request(&mut head.headers, |name| is_ours(edge, name));
    headers::add_identity(&mut head.headers, way.passed, edge.providers.several());
    if way.route.asks.access_token {
        // Whatever a client sent under this name is not the token this upstream trusts.
        head.headers.remove(header::AUTHORIZATION);
    }
    if let Some(granted) = &way.passed.access_token {
        attach(&mut head.headers, granted);
    }
    let scheme = if edge.settings.https() { "https" } else { "http" };
    tell(
        &mut head.headers,
        "x-forwarded-for",
        HeaderValue::try_from(client_address.to_string()).ok(),
    );
    tell(
        &mut head.headers,
        "x-forwarded-proto",
        Some(HeaderValue::from_static(scheme)),
    );
    tell(&mut head.headers, "x-forwarded-host", host);
    if wants_trailers {
        // gRPC needs it to be said, hop by hop.
        head.headers
            .insert(header::TE, HeaderValue::from_static("trailers"));
    }
    if let Some(asked) = asked {
        upgrade::ask(asked, &mut head.method, &mut head.headers);
    }
    head.headers.remove(header::HOST);
    head.uri = uri;
    head.version = Version::HTTP_11;
    head.extensions.clear();
}

/// Adds what is made for one sending: the proof of a bound token, and the signed assertion where the rule asks for it. Without
/// them the request does not go out.
pub(super) fn sign(head: &mut Parts, way: &Way<'_>) -> Result<(), Failure> {
    proof::prove(head, way)?;
    let Some(current) = way.passed.current.as_ref().filter(|_| way.route.upstream_jwt) else {
        return Ok(());
    };
    let sign = |assertions: &Assertions| {
        let audience = way.server.origin();
        assertions
            .sign(&current.session, &audience, way.edge.clock.now_secs())
            .ok()
    };
    let value = way.edge.gateway.assertions.as_ref().and_then(sign);
    match value.and_then(|token| HeaderValue::try_from(token).ok()) {
        Some(mut value) => {
            value.set_sensitive(true);
            head.headers
                .insert(HeaderName::from_static(assertion::HEADER), value);
            Ok(())
        }
        None => {
            tracing::error!(http.route = &*way.route.name, "an assertion cannot be signed");
            Err(Failure::Internal)
        }
    }
}

/// Puts the access token into a request.
pub(super) fn attach(headers: &mut HeaderMap, granted: &Granted) {
    let scheme = if granted.bound { "DPoP" } else { "Bearer" };
    if let Ok(mut value) = HeaderValue::try_from(format!("{scheme} {}", granted.token)) {
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
}

/// Where a request goes: the path, as it was read and without its first `strip` segments, at the server; nothing if that is no address.
pub(super) fn target(server: &Url, path: &RequestPath, strip: usize, query: Option<&str>) -> Option<Uri> {
    let scheme: Scheme = server.scheme().parse().ok()?;
    let host = server.host_str()?;
    let authority = match server.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let authority: Authority = authority.parse().ok()?;
    let mut target = path.to_encoded(strip);
    if let Some(query) = query {
        target.push('?');
        target.push_str(query);
    }
    let target: PathAndQuery = target.parse().ok()?;
    Uri::builder()
        .scheme(scheme)
        .authority(authority)
        .path_and_query(target)
        .build()
        .ok()
}

/// Host and port of the base URL: what a client says in `Host` is its own invention.
fn own_host(base: &Url) -> Option<HeaderValue> {
    HeaderValue::try_from(base.origin().ascii_serialization().split_once("://")?.1).ok()
}

fn tell(headers: &mut HeaderMap, name: &'static str, value: Option<HeaderValue>) {
    if let Some(value) = value {
        headers.insert(HeaderName::from_static(name), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // conformance: B-038
    #[test]
    fn the_target_is_the_normalised_path_at_the_configured_server() {
        let server = Url::parse("http://orders:8080").unwrap();
        let path = RequestPath::parse("/api/./orders/a%20b").unwrap();
        let uri = target(&server, &path, 0, Some("q=http://evil.example/")).unwrap();
        assert_eq!(
            uri.to_string(),
            "http://orders:8080/api/orders/a%20b?q=http://evil.example/"
        );
        assert_eq!(
            target(&server, &path, 2, None).unwrap().to_string(),
            "http://orders:8080/a%20b"
        );
    }
}
