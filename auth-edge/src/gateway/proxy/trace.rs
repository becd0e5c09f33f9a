//! The names by which records of one request are found at every hop: the request ID, and the trace (W3C Trace Context).
//!
//! A trace that somebody has begun goes on: through a span of our own where traces are recorded here, unchanged where they are
//! not. Where nobody has, one begins that nobody records yet; it is named by the request ID.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use chassis::propagation::{self, TRACEPARENT};

use crate::http::observe::{RequestId, X_REQUEST_ID};

const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Writes both into a request for an upstream, whose headers are otherwise the client's.
pub(super) fn continue_trace(headers: &mut HeaderMap, id: Option<&RequestId>) {
    if let Some(id) = id {
        headers.insert(X_REQUEST_ID, id.header());
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

/// A trace of this request's ID that is not recorded (W3C Trace Context, section 3.2).
fn begin(id: &RequestId) -> Option<HeaderValue> {
    let mut digits = [0; 16];
    // All zeros would be no span.
    let span = rand::random::<u64>().max(1).to_be_bytes();
    let span = base16ct::lower::encode_str(&span, &mut digits).ok()?;
    HeaderValue::try_from(["00-", id.as_str(), "-", span, "-00"].concat()).ok()
}
