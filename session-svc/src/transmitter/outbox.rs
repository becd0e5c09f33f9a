//! Noting what receivers are to be told.
//!
//! Invariants: nobody who ends a session waits for a receiver, nor longer than [`NOTE_TIMEOUT`] for the store; a note that cannot be written
//! is counted.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::timeout;

use super::event;
use super::measures::{Measures, SignalOutcome};
use super::note::{SessionEvent, SignalNote};
use super::receiver::{EventType, Receiver, Receivers};
use super::stream::Streams;
use crate::keeper::{Keeper, KeeperError};
use crate::session::Session;
use crate::sessions::ports::{SessionEnding, SignalOutbox};
use crate::store::StoreError;

/// Longest that a note is waited for: an ending waits for the store no longer than that.
const NOTE_TIMEOUT: Duration = Duration::from_secs(2);

/// Writes notes.
pub(super) struct Outbox {
    receivers: Vec<Arc<Receiver>>,
    keeper: Keeper,
    streams: Streams,
    measures: Measures,
    /// Changes when there may be something to tell.
    wakes: watch::Sender<()>,
}

impl Outbox {
    pub(super) fn new(receivers: &Receivers, keeper: Keeper, streams: Streams, measures: Measures) -> Self {
        Self {
            receivers: receivers.all.clone(),
            keeper,
            streams,
            measures,
            wakes: watch::Sender::new(()),
        }
    }

    /// Changes when there may be something to tell.
    pub(super) fn wakes(&self) -> watch::Receiver<()> {
        self.wakes.subscribe()
    }

    /// There may be something to tell.
    pub(super) fn changed(&self) {
        self.wakes.send_replace(());
    }

    /// Keeps a note as of now.
    pub(super) async fn keep(&self, receiver: &Receiver, note: &SignalNote) -> Result<(), KeeperError> {
        let record = note.record(receiver, &self.keeper, self.keeper.now_ms())?;
        // An empty event: watchers pass it over. One that is there already says the same.
        self.keeper.store().insert(record, Vec::new()).await?;
        Ok(())
    }

    /// Notes an event of a session for everybody who is to hear of it.
    async fn note_for_all(
        &self,
        event: EventType,
        session: &Session,
        what: SessionEvent<'_>,
        by_handle: bool,
        claims: &serde_json::Value,
    ) {
        let hears = |receiver: &&Arc<Receiver>| {
            let state = self.streams.known(receiver);
            receiver.events.contains(&event)
                && receiver.hears_of(&session.issuer)
                && state.takes_notes()
                && state.wants(event)
        };
        let notes = self.receivers.iter().filter(hears).map(|receiver| {
            let sub_id = event::subject(receiver.subject, session, by_handle);
            let note = SignalNote::of_session(receiver, event, &what, &sub_id, claims);
            async move {
                if let Err(error) = self.keep_in_time(receiver, &note).await {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(receiver = receiver.id, event = event.name(), session = %session.handle, error, "a receiver may not be told: the event could not be noted");
                    self.measures.signal(&receiver.id, event.name(), SignalOutcome::Lost);
                }
            }
        });
        join_all(notes).await;
    }

    async fn keep_in_time(&self, receiver: &Receiver, note: &SignalNote) -> Result<(), KeeperError> {
        let kept = timeout(NOTE_TIMEOUT, self.keep(receiver, note)).await;
        kept.unwrap_or_else(|_| {
            let source = "the note was not written in time".into();
            Err(StoreError::Unavailable(source).into())
        })
    }
}

#[async_trait]
impl SignalOutbox for Outbox {
    async fn note_ending(&self, ending: SessionEnding<'_>) {
        let SessionEnding {
            session,
            cause,
            replaced_by,
        } = ending;
        let now_ms = self.keeper.now_ms();
        let what = SessionEvent {
            handle: &session.handle,
            number: 0,
            ending: Some(session.handle),
        };
        // The provider's session goes on where the new one belongs to it: named by it, the new one would be meant as well.
        let goes_on = replaced_by.is_some_and(|new| {
            new.issuer == session.issuer
                && new.provider_sid.is_some()
                && new.provider_sid == session.provider_sid
        });
        let claims = event::revoked(cause, now_ms);
        self.note_for_all(EventType::SessionRevoked, session, what, goes_on, &claims)
            .await;
        let Some(new) = replaced_by else { return };
        if let Some(claims) = event::level_change(session, new, now_ms) {
            let what = SessionEvent {
                handle: &new.handle,
                number: 0,
                ending: Some(session.handle),
            };
            self.note_for_all(EventType::AssuranceLevelChange, new, what, false, &claims)
                .await;
        }
    }

    async fn note_beginning(&self, session: &Session) {
        let what = SessionEvent {
            handle: &session.handle,
            number: 0,
            ending: None,
        };
        let claims = event::established(session);
        self.note_for_all(EventType::SessionEstablished, session, what, false, &claims)
            .await;
        self.changed();
    }

    async fn note_use(&self, session: &Session) {
        let what = SessionEvent {
            handle: &session.handle,
            number: session.rolled_at_ms,
            ending: None,
        };
        let claims = event::presented(session.rolled_at_ms);
        self.note_for_all(EventType::SessionPresented, session, what, false, &claims)
            .await;
        self.changed();
    }

    fn wake(&self) {
        self.changed();
    }
}
