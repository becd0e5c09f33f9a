//! Records each request for the operator: its ID, one access record, its metrics.
//!
//! Invariants
//! - The edge makes each request ID and never takes one from a client.
//! - A record holds the path's template and the public handle, never a query, a cookie or an ID.
//!
//! Not recorded: bodies.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::header::USER_AGENT;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use chassis::audit::RequestId;
use chassis::metrics::LimitHits;
use prometheus::core::Collector as _;
use prometheus::{HistogramVec, IntCounterVec, Registry};
use tracing::Span;
use tracing::field::Empty;

use crate::http::errors::Limit;
use crate::values::refusal::{RefusalReason, SignInStep};

/// The response header that carries the request ID.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest user agent in a span, in characters; browsers send about 120.
const USER_AGENT_MAX: usize = 256;
/// Longest unknown method in a span, in characters; the methods of HTTP have at most 8.
const METHOD_MAX: usize = 32;

/// A request's ID as a header value.
#[must_use]
pub(crate) fn id_header(id: RequestId) -> HeaderValue {
    HeaderValue::from_str(id.as_str()).unwrap_or(HeaderValue::from_static(""))
}

/// Response extension: the public handle of the request's session.
#[derive(Clone, Debug)]
pub(crate) struct SessionHandle(pub(crate) String);

/// Response extension: the client whose access token the request carried.
#[derive(Clone, Debug)]
pub(crate) struct ClientOfToken(pub(crate) String);

/// Response extension: the path of the answering route, as the route table writes it.
#[derive(Clone)]
pub(crate) struct AnsweringRoute(pub(crate) Arc<str>);

/// The edge's own metrics.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    /// How long requests take.
    pub(crate) requests: HistogramVec,
    logins: IntCounterVec,
    refusals: IntCounterVec,
    /// Access tokens that clients have sent.
    pub(crate) access_tokens: IntCounterVec,
    /// Answers of decision points.
    pub(crate) decisions: IntCounterVec,
    /// Limits that rejected a request.
    pub(crate) limits: LimitHits,
}

impl Metrics {
    /// Makes the metrics and registers them.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self {
            requests: prometheus::register_histogram_vec_with_registry!(
                "http_server_request_duration_seconds",
                "Time until an answer's head, by route and status.",
                &["http_request_method", "http_route", "http_response_status_code"],
                registry
            )?,
            logins: prometheus::register_int_counter_vec_with_registry!(
                "logins_total",
                "Sign-ins that ended, by result (success, rejected, unavailable or anonymous) and provider.",
                &["result", "provider"],
                registry
            )?,
            refusals: prometheus::register_int_counter_vec_with_registry!(
                "sign_in_refusals_total",
                "Sign-ins and logout tokens that were refused, by step (login, callback or logout_token), reason and provider.",
                &["step", "reason", "provider"],
                registry
            )?,
            access_tokens: prometheus::register_int_counter_vec_with_registry!(
                "access_tokens_total",
                "Access tokens that clients presented, by outcome: accepted, or the reason for the rejection.",
                &["outcome"],
                registry
            )?,
            decisions: prometheus::register_int_counter_vec_with_registry!(
                "decisions_total",
                "Questions to decision points, by result: permit, deny, cached, stale or unavailable.",
                &["result"],
                registry
            )?,
            limits: LimitHits::new(registry, Limit::NAMES)?,
        })
    }

    /// Counts a completed sign-in at the provider with this id. There is one label per configured provider.
    pub(crate) fn login(&self, result: &'static str, provider: &str) {
        self.logins.with_label_values(&[result, provider]).inc();
    }

    /// The failed sign-ins at the provider with this id, by reason.
    pub(crate) fn failed_sign_ins(&self, provider: &str) -> HashMap<String, u64> {
        let mut by_reason = HashMap::new();
        let families = self.refusals.collect();
        for metric in families.iter().flat_map(|family| family.get_metric()) {
            let value = |name| {
                let mut labels = metric.get_label().iter();
                let found = labels.find(|label| label.name() == name);
                found.map_or("", |label| label.value())
            };
            let (step, reason) = (value("step"), value("reason"));
            if value("provider") == provider && step != SignInStep::LogoutToken.name() {
                let counter = self.refusals.with_label_values(&[step, reason, provider]);
                *by_reason.entry(reason.to_owned()).or_default() += counter.get();
            }
        }
        by_reason
    }

    /// Counts a rejected sign-in at the provider with this id; empty before the user has chosen one.
    pub(crate) fn refusal(&self, step: SignInStep, reason: RefusalReason, provider: &str) {
        self.refusals
            .with_label_values(&[step.name(), reason.name(), provider])
            .inc();
    }
}

/// A request in progress: its ID, its span, its start time.
pub(crate) struct Observed {
    /// The request's ID.
    pub(crate) id: RequestId,
    started: Instant,
    method: &'static str,
    /// The edge's own route that answers, if one does.
    pub(crate) route: Option<MatchedPath>,
    /// The span around the answer.
    pub(crate) span: Span,
}

impl Observed {
    /// Begins the record of a request.
    #[must_use]
    pub(crate) fn begin(request: &Request) -> Self {
        // The ID is no secret, so the process's own generator is good enough.
        let id = RequestId::of(rand::random());
        let method = known_method(request.method());
        let route = request.extensions().get::<MatchedPath>().cloned();
        let name = route.as_ref().map(MatchedPath::as_str);
        let span = tracing::info_span!(
            target: chassis::traces::TARGET,
            "request",
            otel.name = Empty,
            otel.kind = "server",
            otel.status_code = Empty,
            http.request.method = method,
            http.request.method_original = Empty,
            http.route = name,
            http.response.status_code = Empty,
            user_agent.original = Empty,
            error.type = Empty,
            session.handle = Empty,
            request_id = id.as_str()
        );
        if chassis::traces::are_recorded() {
            tracing::record_all!(
                span,
                otel.name = span_name(method, name),
                http.request.method_original = original(request.method()),
                user_agent.original = user_agent(request.headers()),
            );
        }
        chassis::propagation::continue_from(&span, request.headers());
        Self {
            id,
            started: Instant::now(),
            method,
            route,
            span,
        }
    }

    /// Adds the ID to the answer, and writes the metrics and the access record.
    #[must_use]
    pub(crate) fn end(self, mut response: Response, requests: &HistogramVec) -> Response {
        response.headers_mut().insert(X_REQUEST_ID, id_header(self.id));
        let status = response.status();
        let seconds = self.started.elapsed().as_secs_f64();
        let extensions = response.extensions();
        let named = extensions.get::<AnsweringRoute>().map(|route| &*route.0);
        let route = named.or(self.route.as_ref().map(MatchedPath::as_str));
        let handle = extensions.get::<SessionHandle>().map_or("", |handle| &handle.0);
        let client = if handle.is_empty() {
            extensions.get::<ClientOfToken>().map(|client| client.0.as_str())
        } else {
            None
        };
        requests
            .with_label_values(&[self.method, route.unwrap_or_default(), status.as_str()])
            .observe(seconds);
        let reason = extensions.get::<RefusalReason>().map(|reason| reason.name());
        let mut trace_id = None;
        if chassis::traces::are_recorded() {
            self.describe(status, route, handle, reason);
            trace_id = chassis::propagation::trace_id(&self.span);
        }
        tracing::info!(
            http.request.method = self.method,
            http.route = route,
            http.response.status_code = status.as_u16(),
            duration_ms = seconds * 1000.0,
            request_id = self.id.as_str(),
            session.handle = handle,
            oauth.client_id = client,
            reason,
            trace_id,
            "request"
        );
        response
    }

    /// Writes the outcome into the span. Only a fault of the edge is an error (OpenTelemetry semantic
    /// conventions, HTTP spans).
    fn describe(&self, status: StatusCode, route: Option<&str>, handle: &str, reason: Option<&'static str>) {
        let is_fault = status.is_server_error();
        tracing::record_all!(
            self.span,
            http.response.status_code = i64::from(status.as_u16()),
            session.handle = Some(handle).filter(|handle| !handle.is_empty()),
            error.type = reason.or(is_fault.then_some(status.as_str())),
            otel.status_code = is_fault.then_some("ERROR"),
        );
        // For a route of the edge's own the span has the route from the start.
        if self.route.is_none()
            && let Some(route) = route
        {
            tracing::record_all!(self.span, http.route = route);
            chassis::propagation::rename(&self.span, span_name(self.method, Some(route)));
        }
    }
}

/// The client's `User-Agent`, cut to [`USER_AGENT_MAX`].
fn user_agent(headers: &HeaderMap) -> Option<&str> {
    let agent = headers.get(USER_AGENT)?.to_str().ok()?;
    Some(agent.get(..USER_AGENT_MAX).unwrap_or(agent))
}

/// The method as a metric label. Clients can send any word as a method, so only OpenTelemetry's methods are
/// labels.
pub(crate) fn known_method(method: &axum::http::Method) -> &'static str {
    const KNOWN: [&str; 10] = [
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "QUERY",
    ];
    let known = KNOWN.into_iter().find(|known| *known == method.as_str());
    known.unwrap_or(OTHER)
}

/// The label of any other method.
const OTHER: &str = "_OTHER";

/// A span's name: the method and any known route (OpenTelemetry semantic conventions, HTTP spans, "Name").
pub(crate) fn span_name(method: &'static str, route: Option<&str>) -> String {
    let method = if method == OTHER { "HTTP" } else { method };
    match route {
        Some(route) => format!("{method} {route}"),
        None => method.to_owned(),
    }
}

/// The word that the client sent, if it is no known method.
pub(crate) fn original(method: &axum::http::Method) -> Option<&str> {
    let sent = method.as_str();
    (known_method(method) == OTHER).then(|| sent.get(..METHOD_MAX).unwrap_or(sent))
}

#[cfg(test)]
mod tests {
    use axum::http::Method;

    use super::{known_method, original, span_name};

    #[test]
    fn a_span_is_named_by_a_method_that_is_known_and_a_route_that_is() {
        let method = |text: &str| Method::from_bytes(text.as_bytes()).unwrap();
        let name = |text: &str, route| span_name(known_method(&method(text)), route);
        assert_eq!(name("GET", Some("/orders/*")), "GET /orders/*");
        assert_eq!(name("QUERY", None), "QUERY");
        assert_eq!(name("BREW", Some("/orders/*")), "HTTP /orders/*");
        assert_eq!(name("get", None), "HTTP");
        let long = "B".repeat(100);
        for (sent, expected) in [("GET", None), ("BREW", Some("BREW")), (&long, Some(&long[..32]))] {
            assert_eq!(original(&method(sent)), expected);
        }
    }
}
