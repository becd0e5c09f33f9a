//! The span of a call, for whoever records traces (OpenTelemetry semantic conventions, RPC).
//!
//! Invariants: it names the method and what came of it, never a session. Calls outside of any trace, such as those that look whether
//! a service is there, begin none.

use tracing::field::Empty;
use tracing::{Level, Span};

use super::SessionError;

const TARGET: &str = "otel::tracing";

pub(super) fn of_call(method: &'static str) -> Span {
    if !tracing::enabled!(target: TARGET, Level::TRACE) || Span::current().is_none() {
        return Span::none();
    }
    tracing::trace_span!(
        target: TARGET,
        "session call",
        otel.name = method,
        otel.kind = "client",
        otel.status_code = Empty,
        rpc.system.name = "grpc",
        rpc.method = method,
        error.type = Empty,
    )
}

pub(super) fn failed(span: &Span, error: &SessionError) {
    let reason = error.reason.as_str_name();
    tracing::record_all!(span, error.type = reason, otel.status_code = "ERROR");
}
