//! The trace context between processes (W3C Trace Context).
//!
//! Only `traceparent` and `tracestate` travel: baggage is neither read nor sent.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::propagation::{Extractor, Injector};
use opentelemetry::{Context, global};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

struct Read<'a>(&'a HeaderMap);

impl Extractor for Read<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

struct Written(Vec<(String, String)>);

impl Injector for Written {
    fn set(&mut self, key: &str, value: String) {
        self.0.push((key.to_owned(), value));
    }
}

/// The context a peer sent; an invalid one counts as none (W3C Trace Context, section 4.3).
#[must_use]
pub fn extract(headers: &HeaderMap) -> Context {
    global::get_text_map_propagator(|propagator| propagator.extract(&Read(headers)))
}

/// What to send with a call so that it continues the current span: nothing when there are no traces.
#[must_use]
pub fn outgoing() -> Vec<(String, String)> {
    let context = tracing::Span::current().context();
    let mut written = Written(Vec::new());
    global::get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut written));
    written.0
}

/// Adds [`outgoing`] to the headers of a request.
pub fn inject(headers: &mut HeaderMap) {
    for (name, value) in outgoing() {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
}
