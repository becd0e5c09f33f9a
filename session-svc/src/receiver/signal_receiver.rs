//! Receives pushed events, verifies them and applies the policy.

use std::sync::Arc;

use chassis::audit::{AuditRecord, Event, Outcome};
use oidc::{BuildError, unverified_issuer};
use prometheus::Registry;
use ssf::{ErrorCode, SecurityEventError, SecurityEventToken, StreamEvent, Transmitter};

use super::metrics::{EventCounts, EventResult};
use super::policy::EventPolicy;
use super::settings::{ConfiguredTransmitter, TransmittersFile};
use super::subjects::SubjectNames;
use crate::sessions::{EventOrder, Sessions, SessionsError, TokenRefreshError};

/// Milliseconds of a second.
pub(super) const SECOND_MS: u64 = 1_000;

/// A permanent rejection of a push: the code for its transmitter, and an English text for people.
pub(crate) type Refusal = (ErrorCode, String);

/// The receiver of a running service. Clones share it.
#[derive(Clone)]
pub struct SignalReceiver(pub(super) Arc<ReceiverState>);

pub(super) struct ReceiverState {
    pub(super) transmitters: Vec<TrustedTransmitter>,
    policy: EventPolicy,
    counts: EventCounts,
}

/// A configured transmitter, ready to verify its events.
pub(super) struct TrustedTransmitter {
    pub(super) configured: ConfiguredTransmitter,
    pub(super) transmitter: Transmitter,
}

impl SignalReceiver {
    /// Prepares the transmitters of a file without network access, and follows the files of their
    /// Authorization headers. Needs a tokio runtime.
    ///
    /// # Errors
    /// A transmitter has unusable settings, or the metrics are registered already.
    pub fn new(file: TransmittersFile, registry: &Registry) -> Result<Self, ReceiverError> {
        let counts = EventCounts::new(registry, file.transmitters.iter().map(|one| one.id.as_str()))?;
        let mut transmitters = Vec::new();
        for configured in file.transmitters {
            let transmitter = match Transmitter::new(configured.settings.clone()) {
                Ok(transmitter) => transmitter,
                Err(source) => {
                    let id = configured.id;
                    return Err(ReceiverError::Settings { id, source });
                }
            };
            configured.follow_file();
            transmitters.push(TrustedTransmitter {
                configured,
                transmitter,
            });
        }
        Ok(Self(Arc::new(ReceiverState {
            transmitters,
            policy: file.policy,
            counts,
        })))
    }

    /// Receives a pushed event with its push's Authorization header. `None` if it is accepted, now or earlier.
    ///
    /// # Errors
    /// There is no verdict now: the transmitter must send the event again.
    pub(crate) async fn receive(
        &self,
        sessions: &Sessions,
        token: &str,
        authorization: &str,
    ) -> Result<Option<Refusal>, SessionsError> {
        let issuer = unverified_issuer(token);
        let named = |one: &&TrustedTransmitter| issuer.as_deref() == Some(one.issuer());
        let Some(trusted) = self.0.transmitters.iter().find(named) else {
            let error = match issuer {
                Some(_) => SecurityEventError::unknown_issuer(),
                None => SecurityEventError::malformed(),
            };
            return self.reject(None, &error);
        };
        let id = trusted.id();
        if !trusted.configured.is_authorized(authorization) {
            let error = SecurityEventError::Refused {
                code: ErrorCode::AuthenticationFailed,
                part: "the Authorization header",
                fault: "is not the configured one",
            };
            return self.reject(Some(id), &error);
        }
        let now = sessions.now_ms() / SECOND_MS;
        let audience = &trusted.configured.audience;
        let event = match trusted.transmitter.verify(token, audience, now).await {
            Ok(event) => event,
            Err(error) => return self.reject(Some(id), &error),
        };
        let name = event.event.name;
        if let Some(stream) = &event.event.stream {
            log_stream_event(id, stream);
            self.0.counts.count(Some(id), Some(name), EventResult::Noted);
            return Ok(None);
        }
        let done = self.act(sessions, trusted, &event).await;
        self.conclude(trusted, name, done)
    }

    /// Counts what an event did, and logs a failure.
    pub(super) fn conclude(
        &self,
        trusted: &TrustedTransmitter,
        name: &str,
        done: Result<EventResult, SessionsError>,
    ) -> Result<Option<Refusal>, SessionsError> {
        let id = trusted.id();
        let result = *done.as_ref().unwrap_or_else(|error| {
            let error = error as &dyn std::error::Error;
            tracing::warn!(
                transmitter = id,
                event = name,
                error,
                "a security event could not be applied"
            );
            &EventResult::Undecided
        });
        self.0.counts.count(Some(id), Some(name), result);
        done.map(|_| None)
    }

    /// Logs and counts a rejected token.
    pub(super) fn reject(
        &self,
        transmitter: Option<&str>,
        error: &SecurityEventError,
    ) -> Result<Option<Refusal>, SessionsError> {
        let refusal = error.code().map(|code| (code, error.to_string()));
        let result = match refusal {
            Some(_) => EventResult::Refused,
            None => EventResult::Undecided,
        };
        // Any client can send a token without a trusted transmitter: it must not fill the log.
        if transmitter.is_some() {
            let error = error as &dyn std::error::Error;
            let outcome = result.name();
            tracing::warn!(transmitter, outcome, error, "a security event was not accepted");
        }
        self.0.counts.count(transmitter, None, result);
        // The transmitter's keys are unavailable, or lack the token's key.
        let unavailable = TokenRefreshError::ProviderUnavailable;
        refusal.map(Some).ok_or(unavailable.into())
    }

    async fn act(
        &self,
        sessions: &Sessions,
        trusted: &TrustedTransmitter,
        token: &SecurityEventToken,
    ) -> Result<EventResult, SessionsError> {
        let configured = &trusted.configured;
        let names = SubjectNames::of(trusted.issuer(), configured);
        let (action, word) = configured.policy.action(&self.0.policy, &token.event);
        let order = EventOrder {
            transmitter: trusted.issuer().to_owned(),
            token_id: token.jti.clone(),
            provider: configured.provider.clone(),
            subjects: names.selectors(&token.subject),
            occurred_at_ms: token.occurred_at.saturating_mul(SECOND_MS),
            action,
        };
        let changed = sessions.apply_event(&order).await?;
        tracing::info!(
            transmitter = trusted.id(),
            event = token.event.name,
            jti = token.jti,
            txn = token.txn,
            initiating_entity = token.event.initiating_entity,
            reason = token.event.reason,
            sessions = changed.unwrap_or_default(),
            repeated = changed.is_none(),
            "accepted a security event"
        );
        Ok(record(trusted, &order, (token.event.name, word), changed))
    }
}

/// Writes the audit record of an event that did this to so many sessions; `None` if it acted before.
pub(super) fn record(
    trusted: &TrustedTransmitter,
    order: &EventOrder,
    (event, word): (&str, &str),
    changed: Option<u32>,
) -> EventResult {
    let Some(changed) = changed else {
        return EventResult::Repeated;
    };
    let person = order.subjects.iter().find_map(|one| one.subject.as_deref());
    AuditRecord {
        actor: person.map(|subject| (order.provider.as_str(), subject)),
        provider: Some(trusted.id()),
        security_event: Some(event),
        result: Some(word),
        ended_count: (word == "end").then_some(changed),
        ..AuditRecord::new(Event::SecurityEvent, Outcome::Success)
    }
    .write();
    match (word, changed) {
        ("note", _) => EventResult::Noted,
        (_, 0) => EventResult::Nobody,
        _ => EventResult::Acted,
    }
}

/// Logs an event about its stream. The operator manages streams, and compares the state of a verification.
fn log_stream_event(transmitter: &str, event: &StreamEvent) {
    match event {
        StreamEvent::Verified(state) => {
            tracing::info!(transmitter, state, "a transmitter has verified its stream");
        }
        StreamEvent::Updated(status, reason) => {
            tracing::warn!(
                transmitter,
                status,
                reason,
                "a transmitter has changed the status of its stream"
            );
        }
    }
}

impl TrustedTransmitter {
    pub(super) fn id(&self) -> &str {
        &self.configured.id
    }

    pub(super) fn issuer(&self) -> &str {
        &self.configured.settings.issuer
    }
}

/// Why the receiver cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ReceiverError {
    /// The settings of a transmitter.
    #[error("transmitter {id:?}: its settings cannot be used")]
    Settings {
        /// Its name.
        id: String,
        /// Why.
        source: BuildError,
    },
    /// The metrics.
    #[error("the metrics cannot be registered")]
    Metrics(#[from] prometheus::Error),
}
