//! The trace context between processes (W3C Trace Context).
//!
//! Only `traceparent` and `tracestate` travel: baggage is neither read nor sent.

use axum::http::{HeaderMap, HeaderName};
use opentelemetry::propagation::{Extractor, Injector};
use opentelemetry::trace::{SpanContext, TraceContextExt as _, TraceFlags, TraceState};
use opentelemetry::{Context, global};
use opentelemetry_sdk::trace::{IdGenerator as _, RandomIdGenerator};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

pub use crate::trace_id::trace_id;

struct HeaderExtractor<'a>(&'a HeaderMap);

impl Extractor for HeaderExtractor<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

struct HeaderInjector(HeaderMap);

impl Injector for HeaderInjector {
    fn set(&mut self, key: &str, value: String) {
        // An empty tracestate has no meaning.
        if let (Ok(name), Ok(value), false) = (HeaderName::try_from(key), value.parse(), value.is_empty()) {
            self.0.insert(name, value);
        }
    }
}

/// The header that names the trace and the caller's span.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Whether the fields have their exact lengths and characters, which the propagator does not check (W3C Trace
/// Context, section 3.2.2). Later versions may append fields.
fn is_valid(traceparent: &str) -> bool {
    let fields: Vec<&str> = traceparent.split('-').collect();
    let hex = |field: &str| field.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    match fields.as_slice() {
        [version, trace, span, flags, rest @ ..] => {
            let lengths = (version.len(), trace.len(), span.len(), flags.len()) == (2, 32, 16, 2);
            let version_fits = *version != "ff" && (*version != "00" || rest.is_empty());
            lengths && version_fits && [version, trace, span, flags].into_iter().all(|field| hex(field))
        }
        _ => false,
    }
}

/// Whether a peer sent exactly one well-formed context.
#[must_use]
pub fn is_begun(headers: &HeaderMap) -> bool {
    let mut sent = headers.get_all(TRACEPARENT).iter();
    let valid = sent
        .next()
        .and_then(|value| value.to_str().ok())
        .is_some_and(is_valid);
    valid && sent.next().is_none()
}

/// The context a peer sent; an invalid one counts as none (W3C Trace Context, section 4.3).
fn extract(headers: &HeaderMap) -> Context {
    if !is_begun(headers) {
        return Context::new();
    }
    global::get_text_map_propagator(|propagator| propagator.extract(&HeaderExtractor(headers)))
}

/// Makes a span continue the trace of a peer, if the peer sent one.
pub fn continue_from(span: &tracing::Span, headers: &HeaderMap) {
    if headers.contains_key(&TRACEPARENT) {
        // If this fails, the span starts its own trace.
        let _ = span.set_parent(extract(headers));
    }
}

/// Renames a span once more is known about it.
pub fn rename(span: &tracing::Span, name: String) {
    span.context().span().update_name(name);
}

/// Links the current span to another one that it waits for (OpenTelemetry, "Links between spans").
pub fn link_to(other: &tracing::Span) {
    let context = other.context().span().span_context().clone();
    if context.is_valid() {
        tracing::Span::current().add_link(context);
    }
}

/// The context of an unsampled trace (W3C Trace Context, section 3.2.2.5.1: the flag `sampled` is not set).
fn unrecorded() -> Context {
    let ids = RandomIdGenerator::default();
    Context::new().with_remote_span_context(SpanContext::new(
        ids.new_trace_id(),
        ids.new_span_id(),
        TraceFlags::NOT_SAMPLED,
        false,
        TraceState::NONE,
    ))
}

/// The headers that let a call continue the current span; empty without traces. For a call outside of any
/// request, such as a health probe, they ask the server not to record a trace.
#[must_use]
pub fn outgoing() -> HeaderMap {
    let mut context = tracing::Span::current().context();
    if !context.span().span_context().is_valid() {
        // Without traces, skip the propagator: all cores share it.
        if !crate::traces::are_recorded() {
            return HeaderMap::new();
        }
        context = unrecorded();
    }
    let mut written = HeaderInjector(HeaderMap::new());
    global::get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut written));
    written.0
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn two_traceparents_are_none() {
        global::set_text_map_propagator(opentelemetry_sdk::propagation::TraceContextPropagator::new());
        let value = HeaderValue::from_static("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        let is_taken = |headers: &HeaderMap| extract(headers).span().span_context().is_valid();
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT, value.clone());
        assert!(is_taken(&headers));
        headers.append(TRACEPARENT, value);
        assert!(!is_taken(&headers));
    }

    #[test]
    fn a_traceparent_is_taken_only_with_its_exact_form() {
        let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        for valid in [
            format!("00-{trace}-{span}-01"),
            format!("01-{trace}-{span}-00-more"),
        ] {
            assert!(is_valid(&valid), "{valid}");
        }
        let upper = trace.to_uppercase();
        for invalid in [
            String::new(),
            format!("ff-{trace}-{span}-01"),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-01-more"),
            format!("00-{upper}-{span}-01"),
            format!("00-{trace}0-{span}-01"),
            format!("00-1-{span}-01"),
            format!("00-{trace}-+0f067aa0ba902b7-01"),
            format!("0-{trace}-{span}-01"),
        ] {
            assert!(!is_valid(&invalid), "{invalid}");
        }
    }
}
