//! The names by which records of one request are found at every hop: the request ID, and the trace (W3C Trace Context).
//!
//! A trace that somebody has begun goes on: through a span of our own where traces are recorded here, unchanged where they are
//! not. Where nobody has, one begins that nobody records yet; it is named by the request ID.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use chassis::audit::RequestId;
use chassis::propagation::{self, TRACEPARENT};
use chassis::traces::TARGET;
use tracing::Span;
use tracing::field::Empty;

use crate::http::observe::{X_REQUEST_ID, id_header, known_method};

const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Writes both into a request for an upstream, whose headers are otherwise the client's.
pub(super) fn continue_trace(headers: &mut HeaderMap, id: Option<RequestId>) {
    if let Some(id) = id {
        headers.insert(X_REQUEST_ID, id_header(id));
    }
    let ours = propagation::outgoing();
    if ours.is_empty() && propagation::is_begun(headers) {
        return;
    }
    headers.remove(TRACEPARENT);
    headers.remove(TRACESTATE);
    for (name, value) in &ours {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    if ours.is_empty()
        && let Some(begun) = id.and_then(begin)
    {
        headers.insert(TRACEPARENT, begun);
    }
}

/// The span of a request to an upstream, where traces are recorded. It names no path and no query: they are the application's.
pub(super) fn of_request(request: &Request) -> Span {
    if !chassis::traces::are_recorded() {
        return Span::none();
    }
    let method = known_method(request.method());
    tracing::trace_span!(
        target: TARGET,
        "upstream",
        otel.name = method,
        otel.kind = "client",
        otel.status_code = Empty,
        http.request.method = method,
        http.response.status_code = Empty,
        server.address = request.uri().host(),
        server.port = request.uri().port_u16().map(i64::from),
        error.type = Empty,
    )
}

/// Says in it what came of the request; `None` is a connection that broke.
pub(super) fn answered(span: &Span, status: Option<StatusCode>) {
    if let Some(status) = status {
        tracing::record_all!(span, http.response.status_code = i64::from(status.as_u16()));
    }
    if status.is_none_or(|status| status.is_client_error() || status.is_server_error()) {
        let reason = status.as_ref().map_or("broken", StatusCode::as_str);
        tracing::record_all!(span, error.type = reason, otel.status_code = "ERROR");
    }
}

/// A trace of this request's ID that is not recorded (W3C Trace Context, section 3.2).
fn begin(id: RequestId) -> Option<HeaderValue> {
    let mut digits = [0; 16];
    // All zeros would be no span.
    let span = rand::random::<u64>().max(1).to_be_bytes();
    let span = base16ct::lower::encode_str(&span, &mut digits).ok()?;
    HeaderValue::try_from(["00-", id.as_str(), "-", span, "-00"].concat()).ok()
}
