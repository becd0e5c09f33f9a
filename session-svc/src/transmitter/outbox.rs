//! Noting what receivers are to be told.
//!
//! Invariants: nobody who ends a session waits for a receiver, nor longer than [`NOTE_TIMEOUT`] for the store, and nobody who begins or uses one
//! waits at all; a note that the store did not take is tried again in the background, and counted where that is given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use super::event;
use super::measures::{Measures, SignalOutcome};
use super::note::{SessionEvent, SignalNote};
use super::receiver::{EventType, Receiver, Receivers};
use crate::keeper::{Keeper, KeeperError};
use crate::session::Session;
use crate::sessions::ports::{SessionEnding, SignalOutbox};
use crate::store::{Inserted, Replaced, StoreError};

/// Longest that a note is waited for: an ending waits for the store no longer than that.
const NOTE_TIMEOUT: Duration = Duration::from_secs(2);

/// Notes at once that the store did not take and that are tried again: fewer than what endings themselves may need of the same kind.
const MADE_UP_MAX: usize = 256;

/// Events at once that are noted while nobody waits.
const LATER_MAX: usize = 64;

/// How often a note is written that another one, or a removal, was faster than.
const WRITE_ATTEMPTS: usize = 8;

/// Writes notes; clones share everything.
#[derive(Clone)]
pub(super) struct Outbox {
    receivers: Arc<[Arc<Receiver>]>,
    keeper: Keeper,
    measures: Measures,
    /// Changes when there may be something to tell.
    wakes: watch::Sender<()>,
    /// Room for notes that the store did not take.
    made_up: Arc<Semaphore>,
    /// Room for notes that nobody waits for.
    later: Arc<Semaphore>,
}

impl Outbox {
    pub(super) fn new(receivers: &Receivers, keeper: Keeper, measures: Measures) -> Self {
        Self {
            receivers: receivers.all.clone().into(),
            keeper,
            measures,
            wakes: watch::Sender::new(()),
            made_up: Arc::new(Semaphore::new(MADE_UP_MAX)),
            later: Arc::new(Semaphore::new(LATER_MAX)),
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
        let (store, now_ms) = (self.keeper.store(), self.keeper.now_ms());
        let record = note.record(receiver, &self.keeper, now_ms)?;
        for _ in 0..WRITE_ATTEMPTS {
            // An empty event: watchers pass it over.
            let inserted = store.insert(record.clone(), Vec::new()).await?;
            if inserted == Inserted::Done || note.ending().is_none() {
                return Ok(());
            }
            // One that is there may be of an ending that failed, and about to be dropped.
            let Some(there) = store.load(record.name).await? else {
                continue;
            };
            let renewed = note.renewed(&there, &self.keeper, now_ms)?;
            if store.replace(renewed, there.version, None).await? == Replaced::Done {
                return Ok(());
            }
        }
        Err(KeeperError::StaleVersion)
    }

    /// Who is to hear of an event of a session.
    fn hearing(&self, event: EventType, session: &Session) -> impl Iterator<Item = &Arc<Receiver>> {
        self.receivers
            .iter()
            .filter(move |receiver| receiver.events.contains(&event) && receiver.hears_of(&session.issuer))
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
        let notes = self.hearing(event, session).map(|receiver| {
            let sub_id = event::subject(receiver.subject, session, by_handle);
            let note = SignalNote::of_session(receiver, event, &what, &sub_id, claims);
            async move {
                if let Err(error) = self.keep_in_time(receiver, &note).await {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(receiver = receiver.id, event = event.name(), session = %session.handle, error, "an event for a receiver could not be noted at once");
                    self.make_up(receiver, event, note);
                }
            }
        });
        join_all(notes).await;
    }

    /// Writes a note in the background, as often as it takes; one that is given up is counted as lost.
    fn make_up(&self, receiver: &Arc<Receiver>, event: EventType, note: SignalNote) {
        let Ok(permit) = Arc::clone(&self.made_up).try_acquire_owned() else {
            self.measures
                .signal(&receiver.id, event.name(), SignalOutcome::Lost);
            return;
        };
        let unwritten = Arc::new(Unwritten {
            measures: self.measures.clone(),
            receiver: Arc::clone(receiver),
            event,
            is_written: AtomicBool::new(false),
            _permit: permit,
        });
        let (outbox, note) = (self.clone(), Arc::new(note));
        self.keeper.make_up("an event for a receiver", move || {
            let (outbox, note, unwritten) = (outbox.clone(), Arc::clone(&note), Arc::clone(&unwritten));
            async move {
                outbox.keep_in_time(&unwritten.receiver, &note).await?;
                unwritten.is_written.store(true, Ordering::Relaxed);
                outbox.changed();
                Ok::<(), KeeperError>(())
            }
        });
    }

    /// Notes what has happened, in the background: nobody waits for it.
    fn note_later(&self, event: EventType, session: &Session, number: u64, claims: serde_json::Value) {
        if self.hearing(event, session).next().is_none() {
            return;
        }
        let Ok(permit) = Arc::clone(&self.later).try_acquire_owned() else {
            for receiver in self.hearing(event, session) {
                self.measures
                    .signal(&receiver.id, event.name(), SignalOutcome::Lost);
            }
            return;
        };
        let (outbox, session) = (self.clone(), session.clone());
        tokio::spawn(async move {
            let what = SessionEvent {
                handle: &session.handle,
                number,
                ending: None,
            };
            let noting = outbox.note_for_all(event, &session, what, false, &claims);
            noting.await;
            outbox.changed();
            drop(permit);
        });
    }

    async fn keep_in_time(&self, receiver: &Receiver, note: &SignalNote) -> Result<(), KeeperError> {
        let kept = timeout(NOTE_TIMEOUT, self.keep(receiver, note)).await;
        kept.unwrap_or_else(|_| {
            let source = "the note was not written in time".into();
            Err(StoreError::Unavailable(source).into())
        })
    }
}

/// A note that is being made up for: counted as lost unless it is written before this is dropped.
struct Unwritten {
    measures: Measures,
    receiver: Arc<Receiver>,
    event: EventType,
    is_written: AtomicBool,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        if !self.is_written.load(Ordering::Relaxed) {
            let (receiver, event) = (&self.receiver.id, self.event.name());
            self.measures.signal(receiver, event, SignalOutcome::Lost);
        }
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
        let revoked = self.note_for_all(EventType::SessionRevoked, session, what, goes_on, &claims);
        let level = async {
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
        };
        tokio::join!(revoked, level);
    }

    fn note_beginning(&self, session: &Session) {
        self.note_later(
            EventType::SessionEstablished,
            session,
            0,
            event::established(session),
        );
    }

    fn note_use(&self, session: &Session) {
        let at_ms = session.rolled_at_ms;
        self.note_later(
            EventType::SessionPresented,
            session,
            at_ms,
            event::presented(at_ms),
        );
    }

    fn wake(&self) {
        self.changed();
    }
}
