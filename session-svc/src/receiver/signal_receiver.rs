//! An event that was delivered: verified, judged by the policy, acted upon.

use std::sync::Arc;

use chassis::audit::{AuditRecord, Event, Outcome};
use chassis::secret::{Reloading, Secret};
use oidc::{
    MAX_SECURITY_EVENT_BYTES, SecurityEventError, SecurityEventErrorCode, SecurityEventKind,
    SecurityEventToken, unverified_issuer,
};
use prometheus::Registry;

use super::configured::{Delivery, ReadyTransmitter, UnusableTransmitter};
use super::metrics::{EventCounts, EventResult};
use super::policy::EventPolicy;
use super::received::Received;
use super::settings::{ConfiguredTransmitter, DeliveryMethod, TransmittersFile};
use super::stream_record::{Confirmed, StreamRecord, StreamRecords};
use super::subjects::SubjectNames;
use crate::keeper::{Keeper, KeeperError};
use crate::sessions::{EventOrder, Sessions, SessionsError};

/// Milliseconds of a second.
const SECOND_MS: u64 = 1_000;

/// Whom we listen to. Clones share it.
#[derive(Clone)]
pub struct SignalReceiver(Arc<Listening>);

struct Listening {
    transmitters: Vec<Arc<HeardTransmitter>>,
    policy: EventPolicy,
    keeper: Keeper,
    counts: EventCounts,
}

/// A transmitter we listen to.
pub(super) struct HeardTransmitter {
    pub(super) configured: ConfiguredTransmitter,
    pub(super) ready: ReadyTransmitter,
    /// The Authorization header its pushes come with, where it is in a file.
    authorization: Option<Reloading<Secret<String>>>,
}

impl SignalReceiver {
    /// Listens to the transmitters of a file; what is known of their streams is in the keeper's store.
    ///
    /// # Errors
    /// Settings by which one cannot be reached, or metrics that are registered already.
    pub fn new(file: &TransmittersFile, keeper: Keeper, registry: &Registry) -> Result<Self, NotListening> {
        let counts = EventCounts::new(registry, file.transmitters.iter().map(|one| one.id.as_str()))?;
        let transmitters = file
            .transmitters
            .iter()
            .map(|one| HeardTransmitter::new(one).map(Arc::new));
        Ok(Self(Arc::new(Listening {
            transmitters: transmitters.collect::<Result<_, _>>()?,
            policy: file.policy.clone(),
            keeper,
            counts,
        })))
    }

    pub(super) fn transmitters(&self) -> &[Arc<HeardTransmitter>] {
        &self.0.transmitters
    }

    pub(super) fn keeper(&self) -> &Keeper {
        &self.0.keeper
    }

    pub(super) fn records(&self) -> StreamRecords<'_> {
        StreamRecords::of(&self.0.keeper)
    }

    /// What is kept of the stream of a transmitter; none of a transmitter that had this id before.
    pub(super) async fn stream_of(
        &self,
        heard: &HeardTransmitter,
    ) -> Result<Option<StreamRecord>, KeeperError> {
        let kept = self.records().load(heard.id()).await?;
        let stream = kept.map(|kept| kept.stream);
        Ok(stream.filter(|stream| stream.issuer == heard.issuer()))
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
        let named = |one: &&Arc<HeardTransmitter>| issuer.as_deref() == Some(one.issuer());
        let Some(heard) = self.0.transmitters.iter().find(named) else {
            self.0.counts.count(None, None, EventResult::Refused);
            return Ok(Received::of(&match issuer {
                Some(_) => SecurityEventError::Issuer,
                None => SecurityEventError::Malformed,
            }));
        };
        if heard.configured.delivery == DeliveryMethod::Poll {
            self.0.counts.count(Some(heard.id()), None, EventResult::Refused);
            return Ok(Received::Refused {
                code: SecurityEventErrorCode::AccessDenied,
                description: "events of this issuer are fetched, and not pushed".to_owned(),
            });
        }
        let stream = self.stream_of(heard).await?;
        if !heard.is_authorized(stream.as_ref(), authorization) {
            self.0.counts.count(Some(heard.id()), None, EventResult::Refused);
            return Ok(Received::Refused {
                code: SecurityEventErrorCode::AuthenticationFailed,
                description: "the Authorization header is not the one of the stream".to_owned(),
            });
        }
        self.take(sessions, heard, stream, token).await
    }

    /// Takes an event that was fetched from this transmitter.
    pub(super) async fn receive_polled(
        &self,
        sessions: &Sessions,
        heard: &HeardTransmitter,
        token: &str,
    ) -> Result<Received, SessionsError> {
        let stream = self.stream_of(heard).await.inspect_err(|error| {
            let (transmitter, error) = (heard.id(), error as &dyn std::error::Error);
            tracing::warn!(transmitter, error, "a security event cannot be judged now");
            self.0
                .counts
                .count(Some(heard.id()), None, EventResult::Undecided);
        })?;
        self.take(sessions, heard, stream, token).await
    }

    /// Verifies an event, and does what it says of the stream, or what the policy says of it.
    async fn take(
        &self,
        sessions: &Sessions,
        heard: &HeardTransmitter,
        stream: Option<StreamRecord>,
        token: &str,
    ) -> Result<Received, SessionsError> {
        let id = heard.id();
        let now_ms = sessions.now_ms();
        let audience = &heard.configured.audience;
        let verified = heard
            .ready
            .transmitter
            .verify(token, audience, now_ms / SECOND_MS);
        let event = match verified.await {
            Ok(event) => event,
            Err(error) => return Ok(self.not_taken(id, &error)),
        };
        let name = event.event.name();
        let done = match event.stream_id() {
            Some(stream_id) => self.about_stream(heard, stream_id, &event.event.kind).await,
            None => self.act(sessions, heard, &event).await,
        };
        let result = match &done {
            Ok((result, _)) => *result,
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
        if stream.is_some_and(|stream| stream.is_event_news(now_ms))
            && let Err(error) = self.records().note_event(id).await
        {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(transmitter = id, error, "when an event came is not noted");
        }
        done.map(|(_, received)| received)
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

    /// An event about the stream it came on (OpenID Shared Signals Framework 1.0, sections 8.1.4.1 and 8.1.5). One about a stream that was
    /// made by hand, of which nothing is known here, says that it works and is taken.
    async fn about_stream(
        &self,
        heard: &HeardTransmitter,
        stream_id: &str,
        kind: &SecurityEventKind,
    ) -> Result<(EventResult, Received), SessionsError> {
        let (id, issuer) = (heard.id(), heard.issuer());
        match kind {
            SecurityEventKind::Verification { state } => {
                let confirmed = self.records().confirm(id, issuer, stream_id, state.as_deref());
                let is_ours = match confirmed.await? {
                    Confirmed::Yes => true,
                    Confirmed::OtherStream => state.is_none(),
                    Confirmed::OtherState => false,
                };
                if !is_ours {
                    tracing::warn!(
                        transmitter = id,
                        "a verification repeats nothing that was asked for"
                    );
                    return Ok((
                        EventResult::Refused,
                        Received::Refused {
                            code: SecurityEventErrorCode::InvalidState,
                            description: "state is not the one that was given".to_owned(),
                        },
                    ));
                }
                tracing::info!(transmitter = id, "a stream of security events is verified");
            }
            SecurityEventKind::StreamUpdated { status, reason } => {
                let updated = self.records().edit(id, |stream| {
                    if stream.stream_id == stream_id && stream.issuer == issuer {
                        stream.status = *status;
                    }
                });
                let _no_such_record = updated.await?;
                tracing::warn!(
                    transmitter = id,
                    ?status,
                    reason = reason.as_deref(),
                    "a transmitter has changed the status of its stream"
                );
            }
            _ => {}
        }
        Ok((EventResult::Noted, Received::Taken))
    }

    async fn act(
        &self,
        sessions: &Sessions,
        heard: &HeardTransmitter,
        token: &SecurityEventToken,
    ) -> Result<(EventResult, Received), SessionsError> {
        let configured = &heard.configured;
        let names = SubjectNames {
            transmitter: heard.issuer(),
            provider: &configured.provider,
            by_email: configured.by_email,
        };
        let (action, word) = configured.policy.action(&self.0.policy, &token.event);
        let order = EventOrder {
            transmitter: heard.issuer().to_owned(),
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
            transmitter = heard.id(),
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
            return Ok((EventResult::Repeated, Received::Taken));
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
        let result = match (word, outcome.sessions) {
            ("note", _) => EventResult::Noted,
            (_, 0) => EventResult::Nobody,
            _ => EventResult::Acted,
        };
        Ok((result, Received::Taken))
    }
}

impl HeardTransmitter {
    pub(super) fn new(configured: &ConfiguredTransmitter) -> Result<Self, NotListening> {
        let ready = ReadyTransmitter::new(configured)?;
        let authorization = match &ready.delivery {
            Delivery::Push {
                authorization: Some(header),
                ..
            } => Some(Reloading::new(header.clone())),
            Delivery::Push { .. } | Delivery::Poll => None,
        };
        Ok(Self {
            configured: configured.clone(),
            ready,
            authorization,
        })
    }

    /// What it is called here.
    pub(super) fn id(&self) -> &str {
        &self.configured.id
    }

    /// Who it is.
    pub(super) fn issuer(&self) -> &str {
        &self.configured.settings.issuer
    }

    /// Whether a push comes with what was agreed on, if anything was: as the file says now, else as when the stream was created.
    fn is_authorized(&self, stream: Option<&StreamRecord>, given: &str) -> bool {
        let agreed_then = || stream.and_then(|stream| stream.push_authorization.as_ref());
        match &self.authorization {
            Some(agreed) => agreed.load().is(given),
            None => agreed_then().is_none_or(|agreed| agreed.is(given)),
        }
    }

    /// Follows the files of the transmitter's secrets, from within a runtime.
    pub(super) fn follow(&self) {
        let id = self.configured.id.clone();
        if let Some(credentials) = self.configured.credentials.clone() {
            let _ends_with_the_runtime = credentials.follow(id, self.ready.transmitter.clone());
        }
        if let (Some(header), Some(path)) = (&self.authorization, &self.configured.authorization_file) {
            header.follow("authorization_file", path, |text| {
                let text = text.trim();
                if text.is_empty() {
                    Err(EmptyFile)
                } else {
                    Ok(Secret::new(text.to_owned()))
                }
            });
        }
    }
}

/// There is nothing in a file.
#[derive(Debug, thiserror::Error)]
#[error("the file is empty: write the value of the Authorization header into it")]
struct EmptyFile;

/// Why nobody can be listened to.
#[derive(Debug, thiserror::Error)]
pub enum NotListening {
    /// A transmitter.
    #[error(transparent)]
    Transmitter(#[from] UnusableTransmitter),
    /// The metrics.
    #[error("the metrics cannot be registered")]
    Metrics(#[from] prometheus::Error),
}
