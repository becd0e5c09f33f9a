//! The span of a call, for callers that record traces (OpenTelemetry semantic conventions, RPC).
//!
//! Invariants: it names the method, the service and the result of the call, never a session. Calls outside of
//! a trace, such as health checks, begin no span.

use tonic::Code;
use tracing::field::Empty;
use tracing::{Level, Span};

use super::endpoint::ServiceTarget;
use super::failure::SessionError;
use crate::error::{code, code_name};

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
        rpc.response.status_code = Empty,
        server.address = Empty,
        server.port = Empty,
        error.type = Empty,
    )
}

/// Records the service of the call.
pub(super) fn sent_to(span: &Span, service: &ServiceTarget) {
    tracing::record_all!(
        span,
        server.address = service.host,
        server.port = i64::from(service.port)
    );
}

pub(super) fn record_success(span: &Span) {
    tracing::record_all!(span, rpc.response.status_code = code_name(Code::Ok));
}

pub(super) fn record_failure(span: &Span, error: &SessionError) {
    let reason = error.reason.as_str_name();
    let status = code_name(code(error.reason));
    tracing::record_all!(
        span,
        rpc.response.status_code = status,
        error.type = reason,
        otel.status_code = "ERROR"
    );
}
