//! Passing requests on to another server, streaming both ways.
//!
//! Invariants: hop-by-hop headers end here (RFC 9110, section 7.6.1), and a client can not make ours end here too;
//! our cookies stay ours, in both directions; who somebody is, and where they come from, the upstream learns from us
//! alone; no redirect is followed. A request is sent a second time only if it is safe (RFC 9110, section 9.2.1) and has no
//! body: when the first one got no answer, or when the answer refused its access token; and any that an upstream refused
//! only to have its nonce repeated (RFC 9449).

mod answer;
mod clients;
mod proof;
mod renewal;
pub(super) mod upgrade;
mod upload;

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::uri::{Authority, PathAndQuery, Scheme};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version, header};
use axum::response::{IntoResponse as _, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use url::Url;

pub use self::clients::{UpstreamTlsError, certificates};

use self::clients::Clients;
use self::renewal::Renewals;
use self::upgrade::Asked;
use super::assertion::{self, Assertions};
use super::guard::{Granted, Passed};
use super::headers;
use super::path::RequestPath;
use super::route_table::{Route, Server};
use crate::edge::Edge;
use crate::errors::Failure;
use crate::protect::security_headers::FromUpstream;
use crate::protect::slow_client;
use crate::request;
use crate::settings::UpstreamSettings;

/// Longest body kept until an upstream that may want its nonce repeated has answered, in bytes.
const MAX_KEPT_BYTES: u64 = 64 * 1024;

/// The methods that every upstream may be asked by; others pass too, but for CONNECT and TRACE.
const PASSED_ON: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Passes requests on.
#[derive(Clone)]
pub(super) struct Proxy {
    clients: Clients,
    renewals: Renewals,
    head_timeout: Duration,
    idle_timeout: Option<Duration>,
    max_body_bytes: u64,
}

/// Where a request goes, and on whose behalf.
pub(super) struct Way<'a> {
    /// The edge.
    pub edge: &'a Edge,
    /// The upstream.
    pub server: &'a Server,
    /// The rule that leads there.
    pub route: &'a Route,
    /// The path as it was read.
    pub path: &'a RequestPath,
    /// What the guard learned.
    pub passed: &'a Passed,
}

type Answer = hyper::Response<Incoming>;

impl Proxy {
    /// A proxy with its own connections. Does no IO but reading authorities.
    pub(super) fn new(settings: &UpstreamSettings) -> Result<Self, UpstreamTlsError> {
        Ok(Self {
            clients: Clients::new(settings)?,
            renewals: Renewals::default(),
            head_timeout: settings.head_timeout,
            idle_timeout: settings.idle_timeout,
            max_body_bytes: settings.max_body_bytes,
        })
    }

    /// Passes a request on and the answer back.
    pub(super) async fn forward(&self, way: &Way<'_>, mut request: Request) -> Response {
        let Some(uri) = target(
            &way.server.url,
            way.path,
            way.route.stripped(),
            request.uri().query(),
        ) else {
            return Failure::BadRequest("The path can not be passed on.").into_response();
        };
        let limit = way.route.max_body_bytes.unwrap_or(self.max_body_bytes);
        if limit > 0 && request.body().size_hint().lower() > limit {
            return Failure::TooLarge.into_response();
        }
        let asked = upgrade::asked(&request);
        // A tunnel to anywhere else, and an echo of what is for the upstream alone.
        if asked.is_none() && matches!(*request.method(), Method::CONNECT | Method::TRACE) {
            return Failure::MethodNotAllowed(PASSED_ON).into_response();
        }
        let client = asked.map(|asked| (asked, hyper::upgrade::on(&mut request)));
        let peer = request::peer(request.extensions());
        let (mut head, body) = request.into_parts();
        // What follows an upgrade is no body: the joined connections carry it.
        let body = if asked.is_some() { Body::empty() } else { body };
        let repeatable = head.method.is_safe() && body.is_end_stream() && asked.is_none();
        dress(&mut head, way, uri, peer, asked);
        match self.exchange(way, head, body, repeatable, limit).await {
            Ok(answer) => self.back(way.edge, answer, client),
            Err(failure) => failure.into_response(),
        }
    }

    /// Sends a request, and once more where that is safe and helps.
    async fn exchange(
        &self,
        way: &Way<'_>,
        head: Parts,
        body: Body,
        repeatable: bool,
        limit: u64,
    ) -> Result<Answer, Failure> {
        if !repeatable {
            return self.once_with_body(way, head, body, limit).await;
        }
        let again = head.clone();
        let first = self.once(way, head).await;
        let answer = match first {
            Err(unanswered) if unanswered.may_pass() => self.once(way, again.clone()).await,
            other => other,
        };
        let mut answer = answer.map_err(|unanswered| unanswered.told(way))?;
        if wants_nonce(way, &again.uri, &answer) {
            let repeated = self.once(way, again.clone()).await;
            answer = repeated.map_err(|unanswered| unanswered.told(way))?;
        }
        match self.other_token(way, &answer).await {
            Some(token) => {
                drop(answer);
                let mut again = again;
                attach(&mut again.headers, &token);
                self.once(way, again)
                    .await
                    .map_err(|unanswered| unanswered.told(way))
            }
            None => Ok(answer),
        }
    }

    /// Sends a request with its body: once, unless the upstream only wants its nonce repeated and the body is small enough
    /// to be kept until it has said so.
    async fn once_with_body(
        &self,
        way: &Way<'_>,
        mut head: Parts,
        body: Body,
        limit: u64,
    ) -> Result<Answer, Failure> {
        let kept = proof::is_needed(way)
            && body
                .size_hint()
                .upper()
                .is_some_and(|bytes| bytes <= MAX_KEPT_BYTES);
        let mut again = head.clone();
        sign(&mut head, way)?;
        if !kept {
            let sent = self.send(way, head, body, limit).await;
            return sent.map_err(|unanswered| unanswered.told(way));
        }
        let reading = axum::body::to_bytes(body, usize::try_from(MAX_KEPT_BYTES).unwrap_or(usize::MAX));
        let body = tokio::time::timeout(self.head_timeout, reading)
            .await
            .map_err(|_late| Failure::BadRequest("The request's body did not arrive in time."))?
            .map_err(|_broken| Failure::BadRequest("The request's body could not be read."))?;
        let sent = self.send(way, head, Body::from(body.clone()), limit).await;
        let answer = sent.map_err(|unanswered| unanswered.told(way))?;
        if !wants_nonce(way, &again.uri, &answer) {
            return Ok(answer);
        }
        sign(&mut again, way)?;
        let sent = self.send(way, again, Body::from(body), limit).await;
        sent.map_err(|unanswered| unanswered.told(way))
    }

    /// Sends a request without a body.
    async fn once(&self, way: &Way<'_>, mut head: Parts) -> Result<Answer, Unanswered> {
        // Each with an assertion of its own: an upstream may refuse one that comes twice.
        sign(&mut head, way).map_err(Unanswered::Ours)?;
        self.send(way, head, Body::empty(), 0).await
    }

    async fn send(&self, way: &Way<'_>, head: Parts, body: Body, limit: u64) -> Result<Answer, Unanswered> {
        let switches = head.headers.contains_key(header::UPGRADE);
        let (body, progress) = upload::watched(body, limit);
        let sent = self
            .clients
            .here()
            .speaking_to(way.server, switches)
            .request(Request::from_parts(head, body));
        match upload::within(self.head_timeout, &progress, sent).await {
            Err(upload::Stalled) => Err(Unanswered::TooLate),
            Ok(Err(error)) => Err(Unanswered::Broken(error)),
            Ok(Ok(answer)) => Ok(answer),
        }
    }

    /// Another access token, if the upstream has refused this one for a reason another one does away with.
    async fn other_token(&self, way: &Way<'_>, answer: &Answer) -> Option<Granted> {
        let (granted, current) = (way.passed.access_token.as_ref()?, way.passed.current.as_ref()?);
        if !renewal::refuses(
            answer.status(),
            answer.headers(),
            granted,
            way.edge.clock.now_ms(),
        ) {
            return None;
        }
        self.renewals
            .renew(way.edge, current, &way.route.asks.scopes, granted)
            .await
    }

    /// The answer as the client gets it.
    fn back(
        &self,
        edge: &Edge,
        mut answer: Answer,
        client: Option<(Asked, hyper::upgrade::OnUpgrade)>,
    ) -> Response {
        let switched = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
        if switched {
            let is_websocket = answer
                .headers()
                .get(header::UPGRADE)
                .is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"));
            let Some((asked, client)) = client.filter(|_| is_websocket) else {
                return Failure::UpstreamDown.into_response();
            };
            upgrade::join(client, hyper::upgrade::on(&mut answer));
            headers::strip_response(answer.headers_mut(), |name| is_ours(edge, name));
            answer.extensions_mut().insert(FromUpstream);
            return upgrade::consent(asked, answer.map(Body::new));
        }
        headers::strip_response(answer.headers_mut(), |name| is_ours(edge, name));
        answer.extensions_mut().insert(FromUpstream);
        let idle = self.idle_timeout.filter(|_| !answer::is_stream(answer.headers()));
        answer.map(|body| Body::new(answer::Passing::new(body, idle)))
    }
}

/// Why there is no answer.
enum Unanswered {
    /// The upstream took too long.
    TooLate,
    /// The connection could not be made or broke.
    Broken(hyper_util::client::legacy::Error),
    /// The fault is ours.
    Ours(Failure),
}

impl Unanswered {
    /// Whether asking again at once may help: a connection that was just being closed, a server that was just restarted.
    fn may_pass(&self) -> bool {
        matches!(self, Self::Broken(_))
    }

    fn told(self, way: &Way<'_>) -> Failure {
        let error = match self {
            Self::TooLate => return Failure::UpstreamSlow,
            Self::Ours(failure) => return failure,
            Self::Broken(error) => error,
        };
        let cause = &error as &(dyn std::error::Error + 'static);
        if slow_client::caused(cause) {
            return Failure::TooSlow;
        }
        if is_caused_by::<upload::TooLarge>(cause) {
            return Failure::TooLarge;
        }
        tracing::warn!(
            error = cause,
            http.route = &*way.route.name,
            "an upstream cannot be reached"
        );
        let timed_out = std::iter::successors(Some(cause), |error| error.source()).any(|error| {
            error
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut)
        });
        if timed_out {
            Failure::UpstreamSlow
        } else {
            Failure::UpstreamDown
        }
    }
}

fn is_caused_by<E: std::error::Error + 'static>(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<E>())
}

/// Makes a client's head the upstream's: nothing of this hop or of somebody's invention is left, what we know is told.
fn dress(head: &mut Parts, way: &Way<'_>, uri: Uri, peer: std::net::IpAddr, asked: Option<Asked>) {
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
fn sign(head: &mut Parts, way: &Way<'_>) -> Result<(), Failure> {
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

fn wants_nonce(way: &Way<'_>, uri: &Uri, answer: &Answer) -> bool {
    proof::wants_nonce(way, uri, answer.status(), answer.headers())
}

fn attach(headers: &mut HeaderMap, granted: &Granted) {
    let scheme = if granted.bound { "DPoP" } else { "Bearer" };
    if let Ok(mut value) = HeaderValue::try_from(format!("{scheme} {}", granted.token)) {
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
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
