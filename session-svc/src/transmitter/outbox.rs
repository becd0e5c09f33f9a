//! Writes the notes of endings.
//!
//! Invariants: an ending does not wait for a receiver, nor longer than [`NOTE_TIMEOUT`] for the store. A note
//! that the store rejects is retried in the background, and counted as lost if that fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use prometheus::Registry;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use super::measures::{Measures, SignalOutcome};
use super::note::SignalNote;
use super::receiver::{Receiver, Receivers};
use crate::error::SessionsError;
use crate::session::change::SessionEnding;
use crate::session_store::SessionStore;
use crate::store::StoreError;

/// How long an ending waits for a note to be written.
const NOTE_TIMEOUT: Duration = Duration::from_secs(2);

/// Notes retried at once: fewer than the retries of endings themselves.
const RETRIED_MAX: usize = 256;

/// Writes notes; clones share everything.
#[derive(Clone)]
pub(crate) struct Outbox {
    pub(super) receivers: Receivers,
    pub(super) session_store: SessionStore,
    pub(super) measures: Measures,
    /// Changes when an event may be ready to send.
    wakes: watch::Sender<()>,
    retried: Arc<Semaphore>,
}

impl Outbox {
    /// Reports endings of this store's sessions.
    ///
    /// # Errors
    /// The metrics are registered already.
    pub(crate) fn new(
        receivers: Receivers,
        session_store: SessionStore,
        metrics: &Registry,
    ) -> Result<Self, prometheus::Error> {
        Ok(Self {
            receivers,
            session_store,
            measures: Measures::new(metrics)?,
            wakes: watch::Sender::new(()),
            retried: Arc::new(Semaphore::new(RETRIED_MAX)),
        })
    }

    /// Changes when an event may be ready to send.
    pub(super) fn wakes(&self) -> watch::Receiver<()> {
        self.wakes.subscribe()
    }

    /// Writes a note. An existing note is from an earlier try to end the same session.
    async fn keep(&self, receiver: &Receiver, note: &SignalNote) -> Result<(), SessionsError> {
        let record = note.record(receiver, &self.session_store)?;
        // An empty event: watchers ignore it.
        let written = timeout(
            NOTE_TIMEOUT,
            self.session_store.store().insert(record, Vec::new()),
        )
        .await;
        let written = written.unwrap_or_else(|_| {
            let source = "the note was not written in time".into();
            Err(StoreError::Unavailable(source))
        });
        Ok(written.map(|_| ())?)
    }

    /// Stores notes of a session that is about to end, so that another replica can report it if this one
    /// dies. A failed write delays nothing.
    pub(crate) async fn note_ending(&self, ending: SessionEnding<'_>) {
        let now_ms = self.session_store.now_ms();
        let receivers = self.receivers.all.iter();
        let receivers = receivers.filter(|receiver| receiver.receives(&ending.session.issuer));
        let notes = receivers.map(|receiver| async move {
            let note = SignalNote::of(receiver, &ending, now_ms);
            if let Err(error) = self.keep(receiver, &note).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(receiver = receiver.id, session = %ending.session.handle, error, "an event for a receiver could not be noted and is retried");
                self.retry(receiver, note);
            }
        });
        join_all(notes).await;
    }

    /// A session that was about to end is gone.
    pub(crate) fn wake(&self) {
        self.wakes.send_replace(());
    }

    /// Retries to write a note in the background; a note that is never written is counted as lost.
    fn retry(&self, receiver: &Arc<Receiver>, note: SignalNote) {
        let Ok(permit) = Arc::clone(&self.retried).try_acquire_owned() else {
            self.measures.signal(&receiver.id, SignalOutcome::Lost);
            return;
        };
        let unwritten = Arc::new(Unwritten {
            outbox: self.clone(),
            receiver: Arc::clone(receiver),
            note,
            is_written: AtomicBool::new(false),
            _permit: permit,
        });
        let keep = |unwritten: Arc<Unwritten>| async move {
            let outbox = &unwritten.outbox;
            outbox.keep(&unwritten.receiver, &unwritten.note).await?;
            unwritten.is_written.store(true, Ordering::Relaxed);
            outbox.wake();
            Ok::<(), SessionsError>(())
        };
        self.session_store
            .retry_later("an event for a receiver", unwritten, keep);
    }
}

/// A note that is retried: counted as lost unless it is written before this is dropped.
struct Unwritten {
    outbox: Outbox,
    receiver: Arc<Receiver>,
    note: SignalNote,
    is_written: AtomicBool,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        if !self.is_written.load(Ordering::Relaxed) {
            let measures = &self.outbox.measures;
            measures.signal(&self.receiver.id, SignalOutcome::Lost);
        }
    }
}
