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
use super::{identity_headers, upgrade};
use crate::cookies;
use crate::edge::Edge;
use crate::errors::Failure;
use crate::protect::security_headers::FromUpstream;
use crate::request;

/// A server on the same network accepts in a millisecond; three seconds mean it is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Time until an upstream's head: beyond a minute browsers and people give up.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Idle connections kept for each upstream.
const IDLE_MAX: usize = 64;

/// An idle connection is closed before a usual server closes it (60 to 75 s), so that no request meets a closed one.
const IDLE_TIMEOUT: Duration = Duration::from_secs(50);

/// Headers of one connection (RFC 9110, section 7.6.1), besides those that `Connection` names.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What a client says about itself and the way it came; we tell it anew, from what we have seen.
const FORWARDING: [&str; 7] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-forwarded-prefix",
    "x-real-ip",
];

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
        let connector = HttpsConnectorBuilder::new().with_webpki_roots().https_or_http().enable_http1().wrap_connector(connector);
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
        let Some(uri) = target(server, path, route.strip, request.uri().query()) else {
            return Failure::BadRequest("The path can not be passed on.").into_response();
        };
        let wanted = upgrade::wanted(request.headers());
        let client = wanted.is_some().then(|| hyper::upgrade::on(&mut request));
        let peer = request::peer(request.extensions());
        let (mut parts, body) = request.into_parts();
        let client_address = edge.trusted_proxies.client_address(peer, &parts.headers);
        let host = parts.headers.get(header::HOST).cloned().or_else(|| of_authority(&parts.uri));

        strip_hop_by_hop(&mut parts.headers);
        identity_headers::strip(&mut parts.headers);
        for name in FORWARDING {
            parts.headers.remove(name);
        }
        keep_our_cookies(edge, &mut parts.headers);
        identity_headers::add(&mut parts.headers, passed);
        if let Some(token) = passed.access_token.as_ref().and_then(|token| bearer(token)) {
            parts.headers.insert(header::AUTHORIZATION, token);
        }
        tell(&mut parts.headers, "x-forwarded-for", HeaderValue::try_from(client_address.to_string()).ok());
        tell(&mut parts.headers, "x-forwarded-proto", Some(HeaderValue::from_static(if edge.settings.https() { "https" } else { "http" })));
        tell(&mut parts.headers, "x-forwarded-host", host);
        if let Some(protocol) = wanted {
            parts.headers.insert(header::UPGRADE, protocol);
            parts.headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        }
        parts.headers.remove(header::HOST);
        parts.uri = uri;
        parts.version = Version::HTTP_11;
        parts.extensions.clear();

        let answer = tokio::time::timeout(HEAD_TIMEOUT, self.client.request(Request::from_parts(parts, body))).await;
        match answer {
            Err(_elapsed) => Failure::UpstreamSlow.into_response(),
            Ok(Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, http.route = &*route.name, "an upstream cannot be reached");
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
        let Some(client) = client else { return Failure::UpstreamDown.into_response() };
        upgrade::join(client, hyper::upgrade::on(&mut answer));
        strip_hop_by_hop(answer.headers_mut());
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        tell(answer.headers_mut(), "upgrade", protocol);
    } else {
        strip_hop_by_hop(answer.headers_mut());
    }
    drop_our_set_cookies(edge, answer.headers_mut());
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
    Uri::builder().scheme(scheme).authority(authority).path_and_query(target).build().ok()
}

/// HTTP/2 has no `Host` header but an authority.
fn of_authority(uri: &Uri) -> Option<HeaderValue> {
    HeaderValue::try_from(uri.authority()?.as_str()).ok()
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

/// Runs before our own headers are added, so that a `Connection` that names them removes nothing of ours.
fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::try_from(name.trim()).ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Whether a cookie of this name belongs to the edge.
fn is_ours(edge: &Edge, name: &str) -> bool {
    name == edge.cookies.name() || edge.pending.owns(name)
}

/// The upstream gets every cookie but ours.
fn keep_our_cookies(edge: &Edge, headers: &mut HeaderMap) {
    if !headers.contains_key(header::COOKIE) {
        return;
    }
    let theirs: Vec<String> =
        cookies::pairs(headers).filter(|(name, _)| !is_ours(edge, name)).map(|(name, value)| format!("{name}={value}")).collect();
    headers.remove(header::COOKIE);
    if let Ok(value) = HeaderValue::try_from(theirs.join("; "))
        && !value.is_empty()
    {
        headers.insert(header::COOKIE, value);
    }
}

/// An upstream sets every cookie but ours.
fn drop_our_set_cookies(edge: &Edge, headers: &mut HeaderMap) {
    let all: Vec<HeaderValue> = headers.get_all(header::SET_COOKIE).iter().cloned().collect();
    if all.is_empty() {
        return;
    }
    headers.remove(header::SET_COOKIE);
    for value in all {
        let name = value.as_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
        let name = String::from_utf8_lossy(name);
        if !is_ours(edge, name.trim()) {
            headers.append(header::SET_COOKIE, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_connection_end_here_with_those_it_names() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("connection", "keep-alive, x-private"), ("x-private", "1"), ("te", "trailers"), ("transfer-encoding", "chunked"), ("x-kept", "1")] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        strip_hop_by_hop(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-kept"]);
    }

    #[test]
    fn the_target_is_the_normalised_path_at_the_configured_server() {
        let server = Url::parse("http://orders:8080").unwrap();
        let path = RequestPath::parse("/api/./orders/a%20b").unwrap();
        let uri = target(&server, &path, 0, Some("q=http://evil.example/")).unwrap();
        assert_eq!(uri.to_string(), "http://orders:8080/api/orders/a%20b?q=http://evil.example/");
        assert_eq!(target(&server, &path, 2, None).unwrap().to_string(), "http://orders:8080/a%20b");
    }
}
