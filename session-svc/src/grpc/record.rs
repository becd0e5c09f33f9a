//! What is kept of a call: one audit record, one measure, one span.
//!
//! Invariants: every call is recorded once, also one whose caller hung up; a record names the caller, the method, the
//! session's handle and the outcome, never an ID, a token, a claim or a person.
//!
//! The record's target is `audit`, for reads that succeed or find nothing `audit::read`, so that an operator can keep
//! them elsewhere or leave them out (`RUST_LOG=info,audit::read=off`).

use std::sync::Arc;
use std::time::Instant;

use prometheus::HistogramVec;
use session_proto::v1::ErrorReason;
use tonic::{Code, Status};
use tracing::Span;

use super::call::Call;
use super::method::{Method, Recorded};
use crate::sessions::AUDIT_TARGET;

/// A record that is being made; written once the outcome is there, or when it is dropped.
pub(super) struct CallRecord {
    method: Method,
    call: Call,
    durations: Arc<HistogramVec>,
    began: Instant,
    trace_id: Option<String>,
    span: Span,
    written: bool,
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
struct CallOutcome {
    code: Code,
    reason: Option<ErrorReason>,
}

macro_rules! write_record {
    ($level:ident, $target:expr, $record:expr, $outcome:expr) => {{
        let (record, outcome): (&CallRecord, CallOutcome) = ($record, $outcome);
        let endings = record.call.endings();
        tracing::$level!(
            target: $target,
            { rpc.method = record.method.name,
            rpc.response.status_code = code_name(outcome.code),
            error.type = outcome.reason.map(|reason| reason.as_str_name()),
            caller = record.call.caller.shown().unwrap_or_default(),
            network.peer.address = record.call.peer.map(|peer| tracing::field::display(peer.ip())),
            network.peer.port = record.call.peer.map(|peer| peer.port()),
            session = record.call.session().map(tracing::field::display),
             sessions = record.call.batch(),
             cause = endings.map(|(cause, _)| cause.name()),
            ended_count = endings.map(|(_, count)| count),
            duration_us = u64::try_from(record.began.elapsed().as_micros()).unwrap_or(u64::MAX),
            trace_id = record.trace_id.as_deref() },
            "call"
        );
    }};
}

impl CallRecord {
    /// Begins the record of a call.
    pub(super) fn begin(method: Method, call: Call, durations: Arc<HistogramVec>, span: Span) -> Self {
        Self {
            method,
            call,
            durations,
            began: Instant::now(),
            trace_id: chassis::propagation::trace_id(&span),
            span,
            written: false,
        }
    }

    /// The call was answered: with a failure, or well.
    pub(super) fn answered(mut self, failure: Option<&Status>) {
        self.write(CallOutcome {
            code: failure.map_or(Code::Ok, Status::code),
            reason: failure.and_then(session_proto::error::reason_of),
        });
    }

    fn write(&mut self, outcome: CallOutcome) {
        self.written = true;
        let code = code_name(outcome.code);
        self.durations
            .with_label_values(&[self.method.name, code])
            .observe(self.began.elapsed().as_secs_f64());
        self.span.record("rpc.response.status_code", code);
        if let Some(reason) = outcome.reason {
            self.span.record("error.type", reason.as_str_name());
        }
        if is_our_fault(outcome.code) {
            self.span.record("otel.status_code", "ERROR");
        }
        let turned_away = matches!(outcome.code, Code::Unauthenticated | Code::PermissionDenied);
        match self.method.recorded {
            Recorded::AsRead if !turned_away => write_record!(info, "audit::read", self, outcome),
            Recorded::ForDebugging if !turned_away => write_record!(debug, "audit::open", self, outcome),
            _ => write_record!(info, AUDIT_TARGET, self, outcome),
        }
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        if !self.written {
            self.write(CallOutcome {
                code: Code::Cancelled,
                reason: None,
            });
        }
    }
}

/// The span of a call, which continues the caller's trace.
pub(super) fn span(method: Method, headers: &axum::http::HeaderMap) -> Span {
    let span = tracing::info_span!(
        target: chassis::traces::TARGET,
        "call",
        otel.name = method.name,
        otel.kind = "server",
        otel.status_code = tracing::field::Empty,
        rpc.system.name = "grpc",
        rpc.method = method.name,
        rpc.response.status_code = tracing::field::Empty,
        error.type = tracing::field::Empty,
    );
    chassis::propagation::continue_from(&span, headers);
    span
}

/// Whether a server's span counts as failed (OpenTelemetry semantic conventions for gRPC, server spans): a session that
/// is not there is no fault.
fn is_our_fault(code: Code) -> bool {
    matches!(
        code,
        Code::Unknown
            | Code::DeadlineExceeded
            | Code::Unimplemented
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
    )
}

pub(super) fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
