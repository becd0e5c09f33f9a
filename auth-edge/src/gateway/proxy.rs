//! Passing requests on to another server, streaming both ways.
//!
//! Invariants: hop-by-hop headers end here (RFC 9110, section 7.6.1), and a client can not make ours end here too;
//! our cookies stay ours, in both directions; who somebody is, and where they come from, the upstream learns from us
//! alone; no redirect is followed. Deliberately absent: retries of anything that may have had an effect.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::uri::{Authority, PathAndQuery, Scheme};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, Version, header};
use axum::response::{IntoResponse as _, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use url::Url;

use super::guard::Passed;
use super::path::RequestPath;
use super::route_table::Route;
use super::{headers, upgrade, upload};
use crate::edge::Edge;
use crate::errors::Failure;
use crate::protect::security_headers::FromUpstream;
use crate::request;

/// A server on the same network accepts in a millisecond; three seconds mean it is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Time until an upstream's head, counted from the last byte of the request: beyond a minute browsers and people give up.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Idle connections kept for each upstream.
const IDLE_MAX: usize = 64;

/// An idle connection is closed before a usual server closes it (60 to 75 s), so that no request meets a closed one.
const IDLE_TIMEOUT: Duration = Duration::from_secs(50);

/// Passes requests on.
#[derive(Clone)]
pub(super) struct Proxy {
    client: Client<HttpsConnector<HttpConnector>, Body>,
}

impl Proxy {
    /// A proxy with its own connections. Does no IO.
    pub(super) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        connector.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_MAX)
            .build(connector);
        Self { client }
    }

    /// Passes a request on and the answer back.
    pub(super) async fn forward(
        &self,
        edge: &Edge,
        server: &Url,
        route: &Route,
        path: &RequestPath,
        passed: &Passed,
        mut request: Request,
    ) -> Response {
        let Some(uri) = target(server, path, route.stripped(), request.uri().query()) else {
            return Failure::BadRequest("The path can not be passed on.").into_response();
        };
        let wanted = upgrade::wanted(request.headers());
        let client = wanted.is_some().then(|| hyper::upgrade::on(&mut request));
        let peer = request::peer(request.extensions());
        let (mut parts, body) = request.into_parts();
        let client_address = edge.trusted_proxies.client_address(peer, &parts.headers);
        headers::strip_request(&mut parts.headers, |name| is_ours(edge, name));
        headers::add_identity(&mut parts.headers, passed);
        if route.asks.access_token {
            // Whatever a client sent under this name is not the token this upstream trusts.
            parts.headers.remove(header::AUTHORIZATION);
        }
        if let Some(token) = passed.access_token.as_ref().and_then(|token| bearer(token)) {
            parts.headers.insert(header::AUTHORIZATION, token);
        }
        tell(
            &mut parts.headers,
            "x-forwarded-for",
            HeaderValue::try_from(client_address.to_string()).ok(),
        );
        tell(
            &mut parts.headers,
            "x-forwarded-proto",
            Some(HeaderValue::from_static(if edge.settings.https() {
                "https"
            } else {
                "http"
            })),
        );
        tell(
            &mut parts.headers,
            "x-forwarded-host",
            own_host(&edge.settings.base_url),
        );
        if let Some(protocol) = wanted {
            parts.headers.insert(header::UPGRADE, protocol);
            parts
                .headers
                .insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        }
        parts.headers.remove(header::HOST);
        parts.uri = uri;
        parts.version = Version::HTTP_11;
        parts.extensions.clear();

        let (body, progress) = upload::watched(body);
        let answer = self.client.request(Request::from_parts(parts, body));
        match upload::within(HEAD_TIMEOUT, &progress, answer).await {
            Err(upload::Stalled) => Failure::UpstreamSlow.into_response(),
            Ok(Err(error)) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    http.route = &*route.name,
                    "an upstream cannot be reached"
                );
                Failure::UpstreamDown.into_response()
            }
            Ok(Ok(answer)) => back(edge, answer, client),
        }
    }
}

/// The answer as the client gets it.
fn back(
    edge: &Edge,
    mut answer: hyper::Response<hyper::body::Incoming>,
    client: Option<hyper::upgrade::OnUpgrade>,
) -> Response {
    let switched = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
    if switched {
        let protocol = answer.headers().get(header::UPGRADE).cloned();
        let Some(client) = client else {
            return Failure::UpstreamDown.into_response();
        };
        upgrade::join(client, hyper::upgrade::on(&mut answer));
        headers::strip_response(answer.headers_mut(), |name| is_ours(edge, name));
        answer
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        tell(answer.headers_mut(), "upgrade", protocol);
    } else {
        headers::strip_response(answer.headers_mut(), |name| is_ours(edge, name));
    }
    answer.extensions_mut().insert(FromUpstream);
    answer.map(Body::new)
}

fn target(server: &Url, path: &RequestPath, strip: usize, query: Option<&str>) -> Option<Uri> {
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

fn bearer(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn tell(headers: &mut HeaderMap, name: &'static str, value: Option<HeaderValue>) {
    if let Some(value) = value {
        headers.insert(HeaderName::from_static(name), value);
    }
}

/// Whether a cookie of this name belongs to the edge.
fn is_ours(edge: &Edge, name: &str) -> bool {
    // Some browsers and frameworks compare names, or their prefixes, without regard to case.
    name.eq_ignore_ascii_case(edge.cookies.name()) || edge.pending.owns(name)
}

#[cfg(test)]
mod tests {
    use super::*;

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
