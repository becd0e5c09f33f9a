//! The audit record of a refresh: one for each that this replica led.
//!
//! Invariant: a record names the caller that started it, the session's handle and the outcome, never a token.

use std::time::Instant;

use chassis::audit::{AuditRecord, Event, Outcome};
use chassis::traces::TARGET;
use tracing::Span;
use tracing::field::Empty;

use super::measures::FlightOutcome;
use crate::session::{ApiTarget, Handle, Session};

/// The span of a refresh if traces are recorded, in the trace of its first call; waiting calls link to it.
pub(super) fn span(session: Handle, ahead: bool) -> Span {
    if !chassis::traces::are_recorded() || Span::current().is_none() {
        return Span::none();
    }
    tracing::trace_span!(
        target: TARGET,
        "refresh",
        session.handle = %session,
        ahead,
        outcome = Empty
    )
}

/// The record of a running refresh. Its request ID is that of the current task.
pub(super) struct RefreshRecord {
    session: Handle,
    /// Issuer and subject.
    person: (String, String),
    caller: String,
    /// Whether it started before any caller needed it.
    ahead: bool,
    trace_id: Option<String>,
    began: Instant,
}

impl RefreshRecord {
    /// Starts the record of a refresh that the current call of `caller` causes.
    pub(super) fn begin(seen: &Session, caller: &str, ahead: bool) -> Self {
        Self {
            session: seen.handle,
            person: (seen.issuer.clone(), seen.subject.clone()),
            caller: caller.to_owned(),
            ahead,
            trace_id: chassis::propagation::trace_id(&tracing::Span::current()),
            began: Instant::now(),
        }
    }

    /// Writes the outcome and the API, if any. Another replica's outcome is in that replica's records.
    pub(super) fn write(&self, outcome: FlightOutcome, target: Option<&ApiTarget>) {
        tracing::record_all!(Span::current(), outcome = outcome.name());
        if matches!(outcome, FlightOutcome::Joined) {
            return;
        }
        let judged = match outcome {
            FlightOutcome::Refreshed => Outcome::Success,
            _ => Outcome::Failure,
        };
        let named = |name: fn(&ApiTarget) -> &String| target.map(name).filter(|name| !name.is_empty());
        AuditRecord {
            reason: (judged == Outcome::Failure).then(|| outcome.name()),
            actor: Some((&self.person.0, &self.person.1)),
            session: Some(&self.session.to_string()),
            caller: Some(self.caller.as_str()).filter(|caller| !caller.is_empty()),
            trace_id: self.trace_id.as_deref(),
            result: Some(outcome.name()),
            ahead: Some(self.ahead),
            audience: named(|target| &target.audience).map(String::as_str),
            resource: named(|target| &target.resource).map(String::as_str),
            duration_us: Some(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)),
            ..AuditRecord::new(Event::TokenRefresh, judged)
        }
        .write();
    }
}
