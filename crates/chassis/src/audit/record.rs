//! One audit record: callers fill in what they know and write it.

use std::path::Path;

use tracing::Span;

use super::TARGET;
use super::origin::{Operator, Origin};
use super::schema::Event;
use crate::trace_id::trace_id;

/// How something ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It succeeded.
    #[default]
    Success,
    /// It was refused or it failed.
    Failure,
}

impl Outcome {
    /// The outcome's name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }
}

/// One record; unknown fields are left out. `docs/audit-log.md` explains the fields.
#[derive(Clone, Debug, Default)]
pub struct AuditRecord<'a> {
    /// What happened.
    pub event: Event,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed, as a stable word.
    pub reason: Option<&'a str>,
    /// Issuer identifier and subject of the user.
    pub actor: Option<(&'a str, &'a str)>,
    /// The session's handle.
    pub session: Option<&'a str>,
    /// Handles of several sessions, separated by spaces.
    pub sessions: Option<&'a str>,
    /// The caller; by default the caller of the current request.
    pub caller: Option<&'a str>,
    /// Address and port of the peer that opened the connection.
    pub peer: Option<(&'a str, u16)>,
    /// The operator who ordered it; by default the operator of the current request.
    pub operator: Option<&'a Operator>,
    /// The kind and value of an operator's filter.
    pub filter: Option<(&'a str, &'a str)>,
    /// How many entries the answer has.
    pub found_count: Option<u32>,
    /// The browser's own address.
    pub client_address: Option<&'a str>,
    /// The browser's `User-Agent`.
    pub user_agent: Option<&'a str>,
    /// The request's ID; by default that of the current request.
    pub request_id: Option<&'a str>,
    /// The trace ID; by default that of the current span.
    pub trace_id: Option<&'a str>,
    /// The provider's id.
    pub provider: Option<&'a str>,
    /// The error code that the provider sent with its answer.
    pub provider_error: Option<&'a str>,
    /// The step of signing in or out.
    pub step: Option<&'a str>,
    /// The error, with its causes.
    pub error: Option<&'a (dyn std::error::Error + 'static)>,
    /// The method of the session API, and the status of the answer.
    pub rpc: Option<(&'a str, &'a str)>,
    /// The type of a security event, without the URI around it.
    pub security_event: Option<&'a str>,
    /// The result of a refresh, or the action taken on a security event.
    pub result: Option<&'a str>,
    /// Whether the refresh started ahead of time, before a request needed the token.
    pub ahead: Option<bool>,
    /// The audience of a token for one API.
    pub audience: Option<&'a str>,
    /// The resource of a token for one API.
    pub resource: Option<&'a str>,
    /// Why sessions ended.
    pub cause: Option<&'a str>,
    /// How many sessions ended.
    pub ended_count: Option<u32>,
    /// The release of the process.
    pub version: Option<&'a str>,
    /// Number of events that this record stands for: repeated or lost ones. The default is 1.
    pub count: Option<u64>,
    /// The setting that was reloaded.
    pub setting: Option<&'a str>,
    /// The file that was read.
    pub path: Option<&'a str>,
    /// The header that the application does not receive. `header.claim` means that only this claim is missing.
    pub header: Option<&'a str>,
    /// The duration in microseconds.
    pub duration_us: Option<u64>,
}

impl AuditRecord<'_> {
    /// Starts a record of this event.
    #[must_use]
    pub fn new(event: Event, outcome: Outcome) -> Self {
        Self {
            event,
            outcome,
            ..Self::default()
        }
    }

    /// Writes it.
    pub fn write(&self) {
        if !tracing::enabled!(target: TARGET, tracing::Level::INFO) {
            return;
        }
        let (event, outcome) = (self.event, self.outcome);
        let origin = Origin::current();
        let origin = origin.as_ref();
        let caller = self.caller.or_else(|| origin?.caller.as_deref());
        let request_id = self.request_id.or_else(|| Some(origin?.request_id.as_str()));
        let operator = self.operator.or_else(|| origin?.operator.as_deref());
        let of_operator = |field: fn(&Operator) -> &String| {
            let text = operator.map(|operator| field(operator).as_str());
            text.filter(|text| !text.is_empty())
        };
        let trace = match self.trace_id {
            Some(_) => None,
            None => trace_id(&Span::current()),
        };
        tracing::info!(
            target: TARGET,
            {
                event = event.name(),
                outcome = outcome.name(),
                reason = self.reason,
                actor.issuer = self.actor.map(|(issuer, _)| issuer),
                actor.subject = self.actor.map(|(_, subject)| subject),
                session = self.session,
                sessions = self.sessions,
                caller,
                network.peer.address = self.peer.map(|(address, _)| address),
                network.peer.port = self.peer.map(|(_, port)| port),
                operator.issuer = of_operator(|operator| &operator.issuer),
                operator.subject = of_operator(|operator| &operator.subject),
                operator.session = of_operator(|operator| &operator.session),
                operator.purpose = of_operator(|operator| &operator.purpose),
                filter = self.filter.map(|(kind, _)| kind),
                filter.value = self.filter.map(|(_, value)| value).filter(|value| !value.is_empty()),
                found_count = self.found_count,
                client.address = self.client_address,
                user_agent.original = self.user_agent,
                request_id,
                trace_id = self.trace_id.or(trace.as_deref()),
                provider = self.provider,
                provider.error = self.provider_error,
                step = self.step,
                error = self.error,
                rpc.method = self.rpc.map(|(method, _)| method),
                rpc.response.status_code = self.rpc.map(|(_, code)| code),
                security_event = self.security_event,
                result = self.result,
                ahead = self.ahead,
                audience = self.audience,
                resource = self.resource,
                cause = self.cause,
                ended_count = self.ended_count,
                service.version = self.version,
                count = self.count,
                setting = self.setting,
                path = self.path,
                header = self.header,
                duration_us = self.duration_us
            },
            "{}",
            event.name()
        );
    }
}

/// Records, in the audit log and in the log, that the file of a setting was reloaded or refused.
pub fn reloaded(setting: &str, path: Option<&Path>, outcome: Result<(), &(dyn std::error::Error + 'static)>) {
    let path = path.map(|path| path.display().to_string());
    let judged = match outcome {
        Ok(()) => {
            tracing::info!(setting, path, "the changed file is in use");
            Outcome::Success
        }
        Err(error) => {
            tracing::warn!(
                setting,
                path,
                error,
                "the changed file is refused: the old value stays in use"
            );
            Outcome::Failure
        }
    };
    AuditRecord {
        setting: Some(setting),
        path: path.as_deref(),
        reason: outcome.is_err().then_some("refused"),
        error: outcome.err(),
        ..AuditRecord::new(Event::ConfigurationReload, judged)
    }
    .write();
}
