//! An event that was delivered: verified, judged by the policy, acted upon.

use std::path::Path;
use std::sync::Arc;

use chassis::audit::{AuditRecord, Event, Outcome};
use chassis::secret::{Reloading, Secret};
use oidc::{
    BuildError, MAX_SECURITY_EVENT_BYTES, SecurityEventError, SecurityEventErrorCode, SecurityEventToken,
    Transmitter, unverified_issuer,
};
use prometheus::Registry;

use super::metrics::{EventCounts, EventResult};
use super::policy::EventPolicy;
use super::settings::{ConfiguredTransmitter, TransmittersFile};
use super::subjects::SubjectNames;
use crate::sessions::{EventOrder, Sessions, SessionsError};

/// Milliseconds of a second.
const SECOND_MS: u64 = 1_000;

/// What a transmitter is told of a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// It was taken.
    Taken,
    /// It was not, and never will be.
    Refused {
        /// Its code in the registry of Security Event Token Error Codes.
        code: SecurityEventErrorCode,
        /// What is wrong.
        description: String,
    },
}

/// Whom we listen to. Clones share it.
#[derive(Clone)]
pub struct Receiver(Arc<Listening>);

struct Listening {
    transmitters: Vec<Listened>,
    policy: EventPolicy,
    counts: EventCounts,
}

/// A transmitter we listen to.
struct Listened {
    configured: ConfiguredTransmitter,
    transmitter: Transmitter,
    /// The Authorization header its pushes come with.
    authorization: Option<Reloading<Secret<String>>>,
}

impl Receiver {
    /// Listens to the transmitters of a file.
    ///
    /// # Errors
    /// Settings by which one cannot be reached, or metrics that are registered already.
    pub fn new(file: &TransmittersFile, registry: &Registry) -> Result<Self, NotListening> {
        let counts = EventCounts::new(registry, file.transmitters.iter().map(|one| one.id.as_str()))?;
        let transmitters = file.transmitters.iter().map(Listened::new);
        Ok(Self(Arc::new(Listening {
            transmitters: transmitters.collect::<Result<_, _>>()?,
            policy: file.policy.clone(),
            counts,
        })))
    }

    /// Takes an event that was pushed, with the Authorization header it came with.
    pub(crate) async fn receive(
        &self,
        sessions: &Sessions,
        token: &str,
        authorization: &str,
    ) -> Result<Received, SessionsError> {
        let issuer = Some(token).filter(|token| token.len() <= MAX_SECURITY_EVENT_BYTES);
        let issuer = issuer.and_then(unverified_issuer);
        let named = |one: &&Listened| issuer.as_deref() == Some(one.configured.settings.issuer.as_str());
        let Some(listened) = self.0.transmitters.iter().find(named) else {
            self.0.counts.count(None, None, EventResult::Refused);
            let refused = if issuer.is_some() {
                SecurityEventError::Issuer
            } else {
                SecurityEventError::Malformed
            };
            return Ok(Received::of(&refused).unwrap_or(Received::Taken));
        };
        if !listened.is_authorized(authorization) {
            let id = Some(listened.configured.id.as_str());
            self.0.counts.count(id, None, EventResult::Refused);
            return Ok(Received::Refused {
                code: SecurityEventErrorCode::AuthenticationFailed,
                description: "the Authorization header is not the one of the stream".to_owned(),
            });
        }
        self.take(sessions, listened, token).await
    }

    /// Verifies an event, and does what the policy says of it.
    async fn take(
        &self,
        sessions: &Sessions,
        listened: &Listened,
        token: &str,
    ) -> Result<Received, SessionsError> {
        let id = listened.configured.id.as_str();
        let now = sessions.now_ms() / SECOND_MS;
        let audience = &listened.configured.audience;
        let event = match listened.transmitter.verify(token, audience, now).await {
            Ok(event) => event,
            Err(error) => return self.not_taken(id, &error),
        };
        let name = event.event.name();
        let done = self.act(sessions, listened, &event).await;
        let result = match &done {
            Ok(result) => *result,
            Err(error) => {
                let error = error as &dyn std::error::Error;
                tracing::warn!(
                    transmitter = id,
                    event = name,
                    error,
                    "a security event could not be acted upon"
                );
                EventResult::Undecided
            }
        };
        self.0.counts.count(Some(id), Some(name), result);
        done.map(|_| Received::Taken)
    }

    fn not_taken(&self, id: &str, error: &SecurityEventError) -> Result<Received, SessionsError> {
        let reason = error.reason();
        let told = error as &dyn std::error::Error;
        let refused = Received::of(error);
        let result = match &refused {
            Some(_) => {
                tracing::warn!(
                    transmitter = id,
                    reason,
                    error = told,
                    "a security event was refused"
                );
                EventResult::Refused
            }
            None => {
                tracing::warn!(
                    transmitter = id,
                    reason,
                    error = told,
                    "a security event cannot be judged now"
                );
                EventResult::Undecided
            }
        };
        self.0.counts.count(Some(id), None, result);
        refused.ok_or(SessionsError::ProviderUnavailable)
    }

    async fn act(
        &self,
        sessions: &Sessions,
        listened: &Listened,
        token: &SecurityEventToken,
    ) -> Result<EventResult, SessionsError> {
        let configured = &listened.configured;
        let names = SubjectNames {
            transmitter: &configured.settings.issuer,
            provider: &configured.provider,
            by_email: configured.by_email,
        };
        let (action, word) = configured.policy.action(&self.0.policy, &token.event);
        let order = EventOrder {
            transmitter: configured.settings.issuer.clone(),
            token_id: token.jti.clone(),
            provider: configured.provider.clone(),
            subjects: names.selectors(&token.subject),
            occurred_at_ms: token.occurred_at().saturating_mul(SECOND_MS),
            action,
        };
        let outcome = sessions.apply_event(&order).await?;
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

impl Listened {
    fn new(configured: &ConfiguredTransmitter) -> Result<Self, NotListening> {
        let authorization = match configured.authorization_file.as_deref() {
            Some(path) => Some(authorization(path)?),
            None => None,
        };
        Ok(Self {
            transmitter: Transmitter::new(configured.settings.clone())?,
            configured: configured.clone(),
            authorization,
        })
    }

    /// Whether a push comes with what was agreed on, if anything was.
    fn is_authorized(&self, given: &str) -> bool {
        self.authorization
            .as_ref()
            .is_none_or(|agreed| agreed.load().is(given))
    }
}

impl Received {
    /// What a transmitter is told of a token that was not taken; `None` where nothing was found out about it. A key that is not known may
    /// not be published yet, and an event is lost if it is refused for that.
    fn of(error: &SecurityEventError) -> Option<Self> {
        let code = error.code().filter(|_| !error.is_undecided())?;
        Some(Self::Refused {
            code,
            description: error.to_string(),
        })
    }
}

/// The header in a file, which is followed.
fn authorization(path: &Path) -> Result<Reloading<Secret<String>>, NotListening> {
    let read = |text: &str| -> Result<Secret<String>, EmptyFile> {
        Some(text.trim())
            .filter(|text| !text.is_empty())
            .map(|text| Secret::new(text.to_owned()))
            .ok_or(EmptyFile)
    };
    let bytes = chassis::files::read_bounded(path).map_err(NotListening::AuthorizationFile)?;
    let secret = read(&String::from_utf8_lossy(&bytes)).map_err(NotListening::Empty)?;
    let reloading = Reloading::new(secret);
    reloading.follow("authorization_file", path, read);
    Ok(reloading)
}

/// There is nothing in a file.
#[derive(Debug, thiserror::Error)]
#[error("the file is empty: write the value of the Authorization header into it")]
pub struct EmptyFile;

/// Why nobody can be listened to.
#[derive(Debug, thiserror::Error)]
pub enum NotListening {
    /// A transmitter's settings.
    #[error("a transmitter's settings cannot be used")]
    Settings(#[from] BuildError),
    /// The file of a header.
    #[error("an authorization_file cannot be read")]
    AuthorizationFile(#[source] std::io::Error),
    /// The same, without anything in it.
    #[error("an authorization_file cannot be used")]
    Empty(#[source] EmptyFile),
    /// The metrics.
    #[error("the metrics cannot be registered")]
    Metrics(#[from] prometheus::Error),
}
