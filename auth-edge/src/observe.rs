//! What an operator sees of a request: its ID, one access record, its metrics.
//!
//! Invariants: a request ID is made here and never taken from a client; a record holds the path's template and the public
//! handle, never a query, a cookie or an ID. Deliberately absent: bodies.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use prometheus::{HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry};
use tracing::Instrument as _;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::keys;

/// The response header that carries the request ID.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The route of requests that no route of our own matched.
const GATEWAY: &str = "gateway";

/// Names a request in the response, on error pages and in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestId(Arc<str>);

impl RequestId {
    fn fresh() -> Self {
        const DIGITS: [u8; 16] = *b"0123456789abcdef";
        // Without randomness nothing else works either; the request still gets its answer.
        let bytes = keys::random::<16>().unwrap_or_default();
        let digit = |value: u8| char::from(DIGITS[usize::from(value & 0x0f)]);
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            text.push(digit(byte >> 4));
            text.push(digit(byte));
        }
        Self(text.into())
    }

    /// The ID: 32 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Response extension: the public handle of the session the request acted for.
#[derive(Clone, Debug)]
pub struct Handle(pub String);

/// Response extension: the route of the route table that answered, for the access record.
#[derive(Clone, Debug)]
pub struct RouteName(pub Arc<str>);

/// The edge's own metrics.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: HistogramVec,
    logins: IntCounterVec,
    callback_rejections: IntCounterVec,
    /// What became of looking a session up in memory.
    pub cache: CacheMetrics,
}

/// How often a session was remembered.
#[derive(Clone, Debug)]
pub struct CacheMetrics {
    hits: IntCounter,
    misses: IntCounter,
    unheard: IntCounter,
}

impl CacheMetrics {
    fn new(lookups: &IntCounterVec) -> Self {
        Self {
            hits: lookups.with_label_values(&["hit"]),
            misses: lookups.with_label_values(&["miss"]),
            unheard: lookups.with_label_values(&["unheard"]),
        }
    }

    /// It was, and what is remembered holds.
    pub fn hit(&self) {
        self.hits.inc();
    }

    /// It was not, or not any more.
    pub fn miss(&self) {
        self.misses.inc();
    }

    /// Nothing that is remembered counts: not every replica of the session service is heard.
    pub fn unheard(&self) {
        self.unheard.inc();
    }
}

impl Metrics {
    /// Makes the metrics and registers them.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let requests = HistogramVec::new(
            HistogramOpts::new(
                "http_server_request_duration_seconds",
                "Time until an answer's head, by route and status.",
            ),
            &["http_request_method", "http_route", "http_response_status_code"],
        )?;
        let logins = IntCounterVec::new(
            Opts::new(
                "logins_total",
                "Sign-ins that ended, by result: success, rejected or unavailable.",
            ),
            &["result"],
        )?;
        let callback_rejections = IntCounterVec::new(
            Opts::new(
                "callback_rejections_total",
                "Callbacks that were refused, by reason.",
            ),
            &["reason"],
        )?;
        let lookups = IntCounterVec::new(
            Opts::new(
                "session_cache_lookups_total",
                "Sessions looked up in memory, by result: hit, miss, or unheard while a replica of the session service is not heard.",
            ),
            &["result"],
        )?;
        registry.register(Box::new(lookups.clone()))?;
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(logins.clone()))?;
        registry.register(Box::new(callback_rejections.clone()))?;
        Ok(Self {
            requests,
            logins,
            callback_rejections,
            cache: CacheMetrics::new(&lookups),
        })
    }

    /// Counts a sign-in that ended.
    pub fn login(&self, result: &'static str) {
        self.logins.with_label_values(&[result]).inc();
    }

    /// Counts a refused callback.
    pub fn callback_rejection(&self, reason: &'static str) {
        self.callback_rejections.with_label_values(&[reason]).inc();
    }
}

/// The outermost layer: gives the request its ID, measures it, writes its record.
pub async fn layer(State(metrics): State<Metrics>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = RequestId::fresh();
    request.extensions_mut().insert(id.clone());
    let method = known_method(request.method());
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map(|path| Arc::<str>::from(path.as_str()));

    let span = tracing::info_span!(
        "request",
        otel.kind = "server",
        http.request.method = method,
        http.route = route.as_deref().unwrap_or(GATEWAY),
        request_id = id.as_str()
    );
    // A context that cannot be taken over only means a trace of its own.
    let _ = span.set_parent(chassis::propagation::extract(request.headers()));
    let mut response = next.run(request).instrument(span).await;

    if let Ok(value) = HeaderValue::try_from(id.as_str()) {
        response.headers_mut().insert(X_REQUEST_ID, value);
    }
    let named = response
        .extensions()
        .get::<RouteName>()
        .map(|name| Arc::clone(&name.0));
    let route = named.or(route).unwrap_or_else(|| GATEWAY.into());
    let status = response.status();
    let seconds = started.elapsed().as_secs_f64();
    metrics
        .requests
        .with_label_values(&[method, &route, status.as_str()])
        .observe(seconds);
    let handle = response
        .extensions()
        .get::<Handle>()
        .map(|handle| handle.0.as_str())
        .unwrap_or_default();
    tracing::info!(
        http.request.method = method,
        http.route = &*route,
        http.response.status_code = status.as_u16(),
        duration_ms = seconds * 1000.0,
        request_id = id.as_str(),
        session.handle = handle,
        "request"
    );
    response
}

/// The method as a label: clients can send any word as a method, labels must stay few.
fn known_method(method: &axum::http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "_OTHER",
    }
}
