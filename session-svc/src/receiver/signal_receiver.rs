//! Receives pushed events: verifies them, judges them by the policy, acts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chassis::audit::{AuditRecord, Event, Outcome};
use chassis::files::read_bounded;
use chassis::secret::{Reloading, Secret};
use oidc::{
    BuildError, MAX_SECURITY_EVENT_BYTES, SecurityEventError, SecurityEventErrorCode, SecurityEventKind,
    SecurityEventToken, Transmitter, unverified_issuer,
};
use prometheus::Registry;

use super::metrics::{EventCounts, EventResult};
use super::policy::EventPolicy;
use super::received::Received;
use super::settings::{ConfiguredTransmitter, TransmittersFile};
use super::subjects::SubjectNames;
use crate::sessions::{EventOrder, Sessions, SessionsError};

/// Milliseconds of a second.
const SECOND_MS: u64 = 1_000;

/// The receiver of a running service. Clones share it.
#[derive(Clone)]
pub struct SignalReceiver(Arc<ReceiverState>);

struct ReceiverState {
    transmitters: Vec<TrustedTransmitter>,
    policy: EventPolicy,
    counts: EventCounts,
}

/// A transmitter of the file, ready to verify its events.
struct TrustedTransmitter {
    configured: ConfiguredTransmitter,
    transmitter: Transmitter,
    /// The Authorization header of its pushes, if a file has it.
    authorization: Option<Reloading<Secret<String>>>,
}

impl SignalReceiver {
    /// Prepares the transmitters of a file, without any network.
    ///
    /// # Errors
    /// A transmitter with settings that cannot be used, or metrics that are registered already.
    pub fn new(file: &TransmittersFile, registry: &Registry) -> Result<Self, ReceiverError> {
        let counts = EventCounts::new(registry, file.transmitters.iter().map(|one| one.id.as_str()))?;
        let transmitters = file.transmitters.iter().map(TrustedTransmitter::new);
        Ok(Self(Arc::new(ReceiverState {
            transmitters: transmitters.collect::<Result<_, _>>()?,
            policy: file.policy.clone(),
            counts,
        })))
    }

    /// Follows the files of Authorization headers. Needs a tokio runtime; ends with it.
    pub(crate) fn follow_files(&self) {
        self.0
            .transmitters
            .iter()
            .for_each(TrustedTransmitter::follow_file);
    }

    /// Receives a pushed event, with the Authorization header of the push.
    pub(crate) async fn receive(
        &self,
        sessions: &Sessions,
        token: &str,
        authorization: &str,
    ) -> Result<Received, SessionsError> {
        let issuer = Some(token).filter(|token| token.len() <= MAX_SECURITY_EVENT_BYTES);
        let issuer = issuer.and_then(unverified_issuer);
        let named = |one: &&TrustedTransmitter| issuer.as_deref() == Some(one.issuer());
        let Some(trusted) = self.0.transmitters.iter().find(named) else {
            self.0.counts.count(None, None, EventResult::Refused);
            return Ok(Received::of(&match issuer {
                Some(_) => SecurityEventError::Issuer,
                None => SecurityEventError::Malformed,
            }));
        };
        let id = trusted.id();
        if !trusted.is_authorized(authorization) {
            self.0.counts.count(Some(id), None, EventResult::Refused);
            return Ok(Received::Refused {
                code: SecurityEventErrorCode::AuthenticationFailed,
                description: "the Authorization header is not the configured one".to_owned(),
            });
        }
        let now = sessions.now_ms() / SECOND_MS;
        let audience = &trusted.configured.audience;
        let event = match trusted.transmitter.verify(token, audience, now).await {
            Ok(event) => event,
            Err(error) => return Ok(self.not_taken(id, &error)),
        };
        let name = event.event.name();
        if event.stream_id().is_some() {
            log_stream_event(id, &event.event.kind);
            self.0.counts.count(Some(id), Some(name), EventResult::Noted);
            return Ok(Received::Taken);
        }
        let done = self.act(sessions, trusted, &event).await;
        let result = *done.as_ref().unwrap_or_else(|error| {
            let error = error as &dyn std::error::Error;
            tracing::warn!(
                transmitter = id,
                event = name,
                error,
                "a security event could not be acted upon"
            );
            &EventResult::Undecided
        });
        self.0.counts.count(Some(id), Some(name), result);
        done.map(|_| Received::Taken)
    }

    fn not_taken(&self, id: &str, error: &SecurityEventError) -> Received {
        let (reason, told) = (error.reason(), error as &dyn std::error::Error);
        let received = Received::of(error);
        let result = if received == Received::Undecided {
            tracing::warn!(
                transmitter = id,
                reason,
                error = told,
                "a security event cannot be judged now"
            );
            EventResult::Undecided
        } else {
            tracing::warn!(
                transmitter = id,
                reason,
                error = told,
                "a security event was refused"
            );
            EventResult::Refused
        };
        self.0.counts.count(Some(id), None, result);
        received
    }

    async fn act(
        &self,
        sessions: &Sessions,
        trusted: &TrustedTransmitter,
        token: &SecurityEventToken,
    ) -> Result<EventResult, SessionsError> {
        let configured = &trusted.configured;
        let names = SubjectNames {
            transmitter: trusted.issuer(),
            provider: &configured.provider,
            by_email: configured.by_email,
        };
        let (action, word) = configured.policy.action(&self.0.policy, &token.event);
        let order = EventOrder {
            transmitter: trusted.issuer().to_owned(),
            token_id: token.jti.clone(),
            provider: configured.provider.clone(),
            subjects: names.selectors(&token.subject),
            occurred_at_ms: token.occurred_at().saturating_mul(SECOND_MS),
            action,
        };
        let outcome = sessions.apply_event(&order).await?;
        // What its transmitter's people look for it by, and what they say.
        let reason = token.event.reason_admin.get("en");
        tracing::info!(
            transmitter = trusted.id(),
            event = token.event.name(),
            jti = token.jti,
            txn = token.txn,
            initiating_entity = ?token.event.initiating_entity,
            reason = reason.or_else(|| token.event.reason_admin.values().next()),
            sessions = outcome.sessions,
            repeated = outcome.is_repeated,
            "took a security event"
        );
        if outcome.is_repeated {
            return Ok(EventResult::Repeated);
        }
        let person = order.subjects.iter().find_map(|one| one.subject.as_deref());
        AuditRecord {
            actor: person.map(|subject| (configured.provider.as_str(), subject)),
            provider: Some(&configured.id),
            security_event: Some(token.event.name()),
            result: Some(word),
            ended_count: (word == "end").then_some(outcome.sessions),
            ..AuditRecord::new(Event::SecurityEvent, Outcome::Success)
        }
        .write();
        Ok(match (word, outcome.sessions) {
            ("note", _) => EventResult::Noted,
            (_, 0) => EventResult::Nobody,
            _ => EventResult::Acted,
        })
    }
}

/// Logs an event about its stream (OpenID Shared Signals Framework 1.0, sections 8.1.4.1 and 8.1.5). The operator manages streams, so the
/// state of a verification is for the operator to compare.
fn log_stream_event(transmitter: &str, kind: &SecurityEventKind) {
    match kind {
        SecurityEventKind::Verification { state } => {
            let state = state.as_deref();
            tracing::info!(transmitter, state, "a transmitter has verified its stream");
        }
        SecurityEventKind::StreamUpdated { status, reason } => {
            let reason = reason.as_deref();
            tracing::warn!(
                transmitter,
                ?status,
                reason,
                "a transmitter has changed the status of its stream"
            );
        }
        _ => {}
    }
}

impl TrustedTransmitter {
    fn new(configured: &ConfiguredTransmitter) -> Result<Self, ReceiverError> {
        let id = &configured.id;
        let header = configured.authorization_file.as_deref();
        let header = header.map(|path| read_header(id, path)).transpose()?;
        let transmitter = Transmitter::new(configured.settings.clone());
        Ok(Self {
            configured: configured.clone(),
            transmitter: transmitter.map_err(|source| ReceiverError::Settings {
                id: id.clone(),
                source,
            })?,
            authorization: header.map(Reloading::new),
        })
    }

    fn id(&self) -> &str {
        &self.configured.id
    }

    fn issuer(&self) -> &str {
        &self.configured.settings.issuer
    }

    /// Whether a push has the header that the file has now. Without a file every push passes: the signature decides.
    fn is_authorized(&self, given: &str) -> bool {
        let header = self.authorization.as_ref();
        header.is_none_or(|header| header.load().is(given))
    }

    fn follow_file(&self) {
        if let (Some(header), Some(path)) = (&self.authorization, &self.configured.authorization_file) {
            header.follow("authorization_file", path, parse_header);
        }
    }
}

fn read_header(id: &str, path: &Path) -> Result<Secret<String>, ReceiverError> {
    let bytes = read_bounded(path).map_err(|source| ReceiverError::Unreadable {
        id: id.to_owned(),
        path: path.to_owned(),
        source,
    })?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    parse_header(text).map_err(|source| ReceiverError::Header {
        id: id.to_owned(),
        path: path.to_owned(),
        source,
    })
}

fn parse_header(text: &str) -> Result<Secret<String>, EmptyFile> {
    let text = text.trim();
    if text.is_empty() {
        return Err(EmptyFile);
    }
    Ok(Secret::new(text.to_owned()))
}

/// A file without a header.
#[derive(Debug, thiserror::Error)]
#[error("the file is empty or no text: write the value of the Authorization header into it")]
pub struct EmptyFile;

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
    /// A file that cannot be read.
    #[error("transmitter {id:?}: the file {path} cannot be read")]
    Unreadable {
        /// Name of the transmitter.
        id: String,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file without an Authorization header.
    #[error("transmitter {id:?}: {path}")]
    Header {
        /// Name of the transmitter.
        id: String,
        /// The file.
        path: PathBuf,
        /// Why.
        source: EmptyFile,
    },
    /// The metrics.
    #[error("the metrics cannot be registered")]
    Metrics(#[from] prometheus::Error),
}
