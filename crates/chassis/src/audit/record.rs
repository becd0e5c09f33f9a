//! One record, filled in by whoever knows what happened, and written.

use std::path::Path;

use tracing::Span;

use super::TARGET;
use super::origin::Origin;
use super::schema::Event;
use crate::trace_id::trace_id;

/// How something ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Well.
    #[default]
    Success,
    /// Not: refused, or failed.
    Failure,
}

impl Outcome {
    /// As records have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }
}

/// One record; what is not known stays out. The fields' meanings are in `docs/audit-log.md`.
#[derive(Clone, Debug, Default)]
pub struct AuditRecord<'a> {
    /// What happened.
    pub event: Event,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed: a stable word.
    pub reason: Option<&'a str>,
    /// Issuer identifier and subject of the person.
    pub actor: Option<(&'a str, &'a str)>,
    /// The session's handle.
    pub session: Option<&'a str>,
    /// Handles of several sessions, separated by spaces.
    pub sessions: Option<&'a str>,
    /// Who called; the caller of the request that is being answered if it is not said.
    pub caller: Option<&'a str>,
    /// Who opened the connection: address and port.
    pub peer: Option<(&'a str, u16)>,
    /// Where the browser is, by its own address.
    pub client_address: Option<&'a str>,
    /// What the browser calls itself.
    pub user_agent: Option<&'a str>,
    /// The request's ID; that of the request that is being answered if it is not said.
    pub request_id: Option<&'a str>,
    /// The trace; that of the current span if it is not said.
    pub trace_id: Option<&'a str>,
    /// The provider's id.
    pub provider: Option<&'a str>,
    /// The error code that the provider sent with its answer.
    pub provider_error: Option<&'a str>,
    /// The step of signing in or out.
    pub step: Option<&'a str>,
    /// What an error said, with its causes.
    pub error: Option<&'a (dyn std::error::Error + 'static)>,
    /// The method of the session API and the status it was answered with.
    pub rpc: Option<(&'a str, &'a str)>,
    /// The type of a security event, without the URI around it.
    pub security_event: Option<&'a str>,
    /// What a refresh came to, or what was done about a security event.
    pub result: Option<&'a str>,
    /// Whether a refresh was begun before anybody needed it.
    pub ahead: Option<bool>,
    /// The audience of a token for one API.
    pub audience: Option<&'a str>,
    /// The resource of a token for one API.
    pub resource: Option<&'a str>,
    /// Why sessions ended.
    pub cause: Option<&'a str>,
    /// How many sessions ended.
    pub ended_count: Option<u32>,
    /// The release of a process that starts.
    pub version: Option<&'a str>,
    /// How many repetitions, or lost records, the record stands for; one if it is not said.
    pub count: Option<u64>,
    /// The setting that was read again.
    pub setting: Option<&'a str>,
    /// The file it was read from.
    pub path: Option<&'a str>,
    /// The header that an application does not get; with a claim behind a dot, what its assertion lacks.
    pub header: Option<&'a str>,
    /// How long it took, in microseconds.
    pub duration_us: Option<u64>,
}

impl AuditRecord<'_> {
    /// A record of this event.
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

/// Records that what a setting's file holds is used now, or is refused, in the audit log and in the log.
pub fn reloaded(setting: &str, path: Option<&Path>, outcome: Result<(), &(dyn std::error::Error + 'static)>) {
    let path = path.map(|path| path.display().to_string());
    let judged = match outcome {
        Ok(()) => {
            tracing::info!(setting, path, "a file is used as it is now");
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
