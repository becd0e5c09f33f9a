//! The audit record, the metric and the span of a call.
//!
//! Invariants: every call is recorded once, even if its caller hung up. A record names the caller, the
//! method, the session's handle and the outcome, but never an ID, a token or a claim.
//!
//! Calls that a browser can repeat without a change are counted: one audit record a minute gives their number.
//!
//! A call is an audit record if it changes data, returns a token, is rejected, or reads a user's data by a
//! handle or the user's name. Other reads are the session's own use: log records with the target
//! `audit::read`, which operators can turn off (`RUST_LOG=info,audit::read=off`).

use std::sync::Arc;
use std::time::Instant;

use chassis::audit::{AuditRecord, Event, Outcome, RepeatedRecords};
use prometheus::HistogramVec;
use session_proto::error::code_name;
use session_proto::v1::ErrorReason;
use tonic::{Code, Status};
use tracing::Span;

use super::call::Call;
use super::call_context::CallContext;
use super::method::{AuditLevel, Method};
use crate::callers::Rpc;

/// A record in progress; it is written with the outcome, or when it is dropped.
pub(super) struct CallRecord {
    method: Method,
    call: Call,
    durations: HistogramVec,
    records: Arc<RepeatedRecords>,
    began: Instant,
    trace_id: Option<String>,
    span: Span,
    /// Cancelled until the call is answered.
    outcome: CallOutcome,
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
struct CallOutcome {
    code: Code,
    reason: Option<ErrorReason>,
}

macro_rules! write_read {
    ($level:ident, $target:expr, $record:expr, $outcome:expr) => {{
        let (record, outcome): (&CallRecord, CallOutcome) = ($record, $outcome);
        tracing::$level!(
            target: $target,
            { rpc.method = record.method.name,
            rpc.response.status_code = code_name(outcome.code),
            error.type = outcome.reason.map(|reason| reason.as_str_name()),
            caller = record.call.caller.log_name().unwrap_or_default(),
            network.peer.address = record.call.peer.map(|peer| tracing::field::display(peer.ip())),
            network.peer.port = record.call.peer.map(|peer| peer.port()),
            session = record.call.notes.session.get().map(tracing::field::display),
            sessions = record.call.batch(),
            duration_us = record.duration_us(),
            request_id = record.call.requests(),
            trace_id = record.trace_id.as_deref() },
            "call"
        );
    }};
}

impl CallRecord {
    /// Begins the record of a call.
    pub(super) fn begin(method: Method, call: Call, calls: &CallContext, span: Span) -> Self {
        Self {
            method,
            call,
            durations: calls.durations.clone(),
            records: Arc::clone(&calls.records),
            began: Instant::now(),
            trace_id: chassis::propagation::trace_id(&span),
            span,
            outcome: CallOutcome {
                code: Code::Cancelled,
                reason: None,
            },
        }
    }

    /// The call was answered, with or without a failure.
    pub(super) fn record_answer(mut self, failure: Option<&Status>) {
        self.outcome = CallOutcome {
            code: failure.map_or(Code::Ok, Status::code),
            reason: failure.and_then(session_proto::error::reason_of),
        };
    }

    fn write(&self) {
        let outcome = self.outcome;
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
        // A read without a result has read nothing.
        let reads_others = self.call.notes.is_administrative.get().is_some() && outcome.code == Code::Ok;
        // Any client of the edge can post events, even while the service receives none.
        let is_off =
            self.method.rpc == Some(Rpc::ReceiveSecurityEvent) && outcome.code == Code::Unimplemented;
        match self.method.audit_level {
            _ if is_off => write_read!(debug, "audit::read", self, outcome),
            AuditLevel::ForDebugging if !turned_away => write_read!(debug, "audit::open", self, outcome),
            AuditLevel::AsRead if !(turned_away || reads_others) => {
                write_read!(info, "audit::read", self, outcome);
            }
            _ => self.write_audit(outcome),
        }
    }

    fn write_audit(&self, outcome: CallOutcome) {
        let (call, notes) = (&self.call, &self.call.notes);
        let session = notes.session.get().map(ToString::to_string);
        let sessions = call.batch();
        let peer = call.peer.map(|peer| (peer.ip().to_string(), peer.port()));
        let judged = match outcome.code {
            Code::Ok => Outcome::Success,
            _ => Outcome::Failure,
        };
        let record = AuditRecord {
            reason: outcome.reason.map(|reason| reason.as_str_name()),
            actor: notes
                .person
                .get()
                .map(|(issuer, subject)| (issuer.as_str(), subject.as_str())),
            session: session.as_deref(),
            sessions: sessions.as_deref(),
            caller: call.caller.log_name(),
            operator: notes.operator.get().map(Arc::as_ref),
            filter: notes.filter.get().map(|(kind, value)| (*kind, value.as_str())),
            found_count: notes.found.get().copied(),
            peer: peer.as_ref().map(|(address, port)| (address.as_str(), *port)),
            request_id: Some(call.requests()),
            trace_id: self.trace_id.as_deref(),
            rpc: Some((self.method.name, code_name(outcome.code))),
            cause: notes.ended.get().map(|(cause, _)| cause.name()),
            ended_count: notes.ended.get().map(|(_, count)| *count),
            duration_us: Some(self.duration_us()),
            ..AuditRecord::new(Event::ApiCall, judged)
        };
        if self.is_repeatable(outcome) {
            self.records.write(&record);
        } else {
            record.write();
        }
    }

    /// Whether a client can cause the same call repeatedly, and it changes nothing.
    fn is_repeatable(&self, outcome: CallOutcome) -> bool {
        if self.call.notes.operator.get().is_some() {
            return false;
        }
        if outcome.code != Code::Ok {
            return true;
        }
        match self.method.rpc {
            // Browsers and unknown clients can cause these calls at any rate.
            Some(
                Rpc::ListSessions
                | Rpc::BeginSignIn
                | Rpc::AbandonSignIn
                | Rpc::BindSession
                | Rpc::RotateCookie
                | Rpc::ReceiveSecurityEvent,
            ) => true,
            Some(Rpc::EndSession | Rpc::EndSessions) => {
                self.call.notes.ended.get().is_none_or(|(_, count)| *count == 0)
            }
            _ => false,
        }
    }

    fn duration_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        self.write();
    }
}

/// The span of a call, which continues the caller's trace.
pub(super) fn span(method: Method, headers: &axum::http::HeaderMap) -> Span {
    let span = tracing::info_span!(
        target: chassis::traces::TARGET,
        "call",
        otel.name = method.span_name(),
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

/// Whether a server's span counts as failed (OpenTelemetry semantic conventions for gRPC, server spans): a
/// missing session is not a failure.
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
