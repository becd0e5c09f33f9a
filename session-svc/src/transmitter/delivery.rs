//! Sends the events of one receiver: a task in each replica, which sends while it holds the receiver's lease.
//!
//! Invariants
//! - A note is removed once its receiver accepted or rejected the event, or it exceeds the limit of age or number.
//! - Events are sent in the order of their notes, [`AT_ONCE`] at a time; after a failure no new push begins.
//! - A push begins only if the lease lasts as long as the push may take. If a full store grants no lease, two
//!   replicas may send the same event: receivers recognize it by its `jti`.
//! - No event is sent while its session still exists.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use chassis::random::NoRandomness;
use futures_util::future::join_all;
use ssf::{PushError, PushFailure};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::measures::SignalOutcome;
use super::note::{KEPT_MS, SignalNote, list_of};
use super::outbox::Outbox;
use super::receiver::Receiver;
use crate::session::{Name, SessionId};
use crate::store::{Lease, StoreError};

/// How often a replica looks for notes.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// Endings at the same time are sent together.
const GATHER_PAUSE: Duration = Duration::from_millis(10);

/// The most notes that wait for one receiver, about 100 MB of a store.
pub(crate) const QUEUED_MAX: usize = 100_000;

/// Names of notes read at once.
const PAGE: usize = 1_000;

/// Pushes at once.
const AT_ONCE: usize = 16;

/// The deadline of a receiver's answer: it stores the event and answers, and acts afterwards.
pub(crate) const PUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// How long other replicas wait if the sending replica dies.
const LEASE: Duration = Duration::from_secs(15);

/// The age at which a lease is renewed.
const RENEWED_AFTER: Duration = Duration::from_secs(3);

/// Pauses of a receiver that fails: doubled from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(300);

/// How long an event is retried that its receiver rejects without a reason; it delays all others meanwhile.
const UNEXPLAINED_MS: u64 = 600_000;

/// A note: when it was written, in milliseconds since the Unix epoch, and its record.
type QueuedNote = (u64, Name);

/// Starts a task for each receiver. The tasks end when the service stops; then the tracker is empty.
///
/// # Errors
/// The operating system gave no random bytes for the replica's name.
pub(crate) fn deliver(
    outbox: &Arc<Outbox>,
    shutdown: &CancellationToken,
) -> Result<TaskTracker, NoRandomness> {
    let holder = SessionId::random(&SystemRandom::new())?.handle().to_string();
    let tasks = TaskTracker::new();
    for receiver in &outbox.receivers.all {
        let deliverer = Deliverer {
            outbox: Arc::clone(outbox),
            receiver: Arc::clone(receiver),
            shutdown: shutdown.clone(),
            holder: holder.clone(),
            held: None,
            pause: None,
            retry_at: None,
            is_yielded: false,
        };
        tasks.spawn(deliverer.run());
    }
    tasks.close();
    Ok(tasks)
}

/// Sends the events of one receiver.
struct Deliverer {
    outbox: Arc<Outbox>,
    receiver: Arc<Receiver>,
    shutdown: CancellationToken,
    /// The name of this replica in the lease.
    holder: String,
    /// Since when the lease is held; no lease if the store was too full for it.
    held: Option<(Instant, Option<Lease>)>,
    /// The last pause; `None` if the last push succeeded.
    pause: Option<Duration>,
    retry_at: Option<Instant>,
    /// Whether another replica may reach the receiver during the pause.
    is_yielded: bool,
}

impl Deliverer {
    /// Sends until the service stops.
    async fn run(mut self) {
        let mut wakes = self.outbox.wakes();
        let shutdown = self.shutdown.clone();
        while !shutdown.is_cancelled() {
            let sends_at_once = self.round().await.unwrap_or_else(|error| {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(
                    receiver = self.receiver.id,
                    error,
                    "the notes for a receiver cannot be listed"
                );
                false
            });
            let retry = self.retry_at.map(|at| at.duration_since(Instant::now()));
            let pause = retry.unwrap_or(LOOK_PAUSE).clamp(GATHER_PAUSE, LOOK_PAUSE);
            let woken = async {
                if !sends_at_once || wakes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(GATHER_PAUSE).await;
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = woken => {}
                () = shutdown.cancelled() => {}
            }
        }
        self.release().await;
    }

    /// Sends waiting events; true if this replica sends the next event at once.
    async fn round(&mut self) -> Result<bool, StoreError> {
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            if self.is_yielded {
                self.release().await;
            } else {
                self.hold().await?;
            }
            return Ok(false);
        }
        self.retry_at = None;
        if !self.hold().await? {
            self.outbox.measures.waiting(&self.receiver.id, 0, Duration::ZERO);
            return Ok(false);
        }
        let queue = self.queue().await?;
        let mut sent = 0;
        while sent < queue.len() && !self.shutdown.is_cancelled() && self.hold().await? {
            let page = queue
                .get(sent..(sent + AT_ONCE).min(queue.len()))
                .unwrap_or_default();
            if !self.push_page(page).await? {
                break;
            }
            sent += page.len();
        }
        let oldest_ms = queue.get(sent).map(|(noted_at_ms, _)| *noted_at_ms);
        let waits_ms = oldest_ms.map_or(0, |at_ms| {
            self.outbox.session_store.now_ms().saturating_sub(at_ms)
        });
        let (id, count) = (&self.receiver.id, queue.len() - sent);
        self.outbox
            .measures
            .waiting(id, count, Duration::from_millis(waits_ms));
        Ok(self.retry_at.is_none())
    }

    /// The waiting notes, the oldest first; those beyond the limit of age or number are dropped.
    async fn queue(&self) -> Result<Vec<QueuedNote>, StoreError> {
        let (store, list) = (self.outbox.session_store.store(), list_of(&self.receiver));
        let (mut queue, mut after) = (Vec::new(), None);
        loop {
            let page = store.list(list, after.as_ref(), PAGE).await?;
            queue.extend(page.entries.iter().map(|entry| (entry.created_at_ms, entry.name)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        queue.sort_unstable();
        queue.dedup();
        let now_ms = self.outbox.session_store.now_ms();
        let old = queue.partition_point(|(noted_at_ms, _)| now_ms.saturating_sub(*noted_at_ms) > KEPT_MS);
        let beyond = queue.len().saturating_sub(self.outbox.receivers.queued_max);
        let dropped: Vec<QueuedNote> = queue.drain(..old.max(beyond)).collect();
        for (_, name) in &dropped {
            store.remove(*name, Vec::new()).await?;
            self.count(SignalOutcome::Dropped);
        }
        if !dropped.is_empty() {
            tracing::warn!(
                receiver = self.receiver.id,
                dropped = dropped.len(),
                "events for a receiver were dropped: they were too old, or too many"
            );
        }
        Ok(queue)
    }

    /// Pushes the events of a page whose sessions are gone; false if the receiver failed.
    async fn push_page(&mut self, page: &[QueuedNote]) -> Result<bool, StoreError> {
        let ready = self.ready(page).await?;
        let held = self.held.as_ref().map(|(at, _)| at.elapsed());
        if held.is_none_or(|age| age + PUSH_TIMEOUT > LEASE) {
            return Ok(false);
        }
        let pushes = ready.iter().map(|(queued, note)| self.push(*queued, note));
        let failures = join_all(pushes).await;
        if failures.iter().any(Option::is_none) {
            self.pause = None;
        }
        let Some(failed) = failures.into_iter().flatten().max_by_key(|(_, after)| *after) else {
            return Ok(true);
        };
        self.leave_alone(&failed.0, failed.1);
        Ok(false)
    }

    /// Reads the notes of a page whose sessions are gone. After a failed ending, a note waits for its session's end.
    async fn ready(&self, page: &[QueuedNote]) -> Result<Vec<(QueuedNote, SignalNote)>, StoreError> {
        let session_store = &self.outbox.session_store;
        let names: Vec<Name> = page.iter().map(|(_, name)| *name).collect();
        let loaded = session_store.store().load_many(&names).await?;
        let notes = page.iter().zip(loaded).filter_map(|(queued, loaded)| {
            let Ok(Some(record)) = loaded else {
                return None;
            };
            let note = SignalNote::open(&record, session_store).ok()?;
            Some((*queued, note.session()?, note))
        });
        let notes: Vec<_> = notes.collect();
        let sessions: Vec<Name> = notes.iter().map(|(_, session, _)| *session).collect();
        if sessions.is_empty() {
            return Ok(Vec::new());
        }
        let sessions = session_store.store().load_many(&sessions).await?;
        let gone = notes
            .into_iter()
            .zip(sessions)
            .filter(|(_, session)| matches!(session, Ok(None)));
        Ok(gone.map(|((queued, _, note), _)| (queued, note)).collect())
    }

    /// Pushes one event; on a failure that is retried, the error and the pause that the receiver requests.
    async fn push(&self, (noted_at_ms, name): QueuedNote, note: &SignalNote) -> Option<PushFailure> {
        let now_ms = self.outbox.session_store.now_ms();
        let sent = match self.outbox.receivers.token(&self.receiver, note, now_ms) {
            Ok(token) => self.receiver.push.send(token, now_ms / 1_000).await,
            Err(error) => Err((error.into(), None)),
        };
        let is_old = now_ms.saturating_sub(noted_at_ms) > UNEXPLAINED_MS;
        match sent {
            Ok(()) => self.count(SignalOutcome::Delivered),
            Err((error, _)) if error.is_final() || error.is_unexplained() && is_old => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    receiver = self.receiver.id,
                    error,
                    "a receiver refused an event: it is not sent again"
                );
                self.count(SignalOutcome::Refused);
            }
            Err(failure) => {
                self.count(SignalOutcome::Failed);
                return Some(failure);
            }
        }
        // A note that stays is sent again.
        if let Err(error) = self.outbox.session_store.store().remove(name, Vec::new()).await {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(receiver = self.receiver.id, error, "a note could not be removed");
        }
        None
    }

    /// Begins a pause. If the receiver is unreachable, another replica may take over meanwhile.
    fn leave_alone(&mut self, error: &PushError, retry_after: Option<Duration>) {
        let pause = self.pause.map_or(FIRST_PAUSE, |last| (last * 2).min(LAST_PAUSE));
        self.pause = Some(pause);
        let pause = pause.max(retry_after.unwrap_or_default());
        self.retry_at = Some(Instant::now() + pause);
        self.is_yielded = matches!(error, PushError::Unreachable(_));
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(
            receiver = self.receiver.id,
            error = error as &dyn std::error::Error,
            pause_ms,
            "events could not be sent to a receiver and are retried"
        );
    }

    fn count(&self, outcome: SignalOutcome) {
        self.outbox.measures.signal(&self.receiver.id, outcome);
    }

    /// Takes or renews the lease; false if another replica has it.
    async fn hold(&mut self) -> Result<bool, StoreError> {
        if let Some((at, Some(_))) = &self.held
            && at.elapsed() < RENEWED_AFTER
        {
            return Ok(true);
        }
        let began = Instant::now();
        let (store, name) = (self.outbox.session_store.store(), list_of(&self.receiver));
        let acquired = store.acquire_lease(name, &self.holder, LEASE).await;
        self.held = match acquired {
            Ok(lease) => lease.map(|lease| (began, Some(lease))),
            Err(StoreError::Full) => Some((began, None)),
            Err(error) => {
                self.held = None;
                return Err(error);
            }
        };
        Ok(self.held.is_some())
    }

    async fn release(&mut self) {
        if let Some((_, Some(lease))) = self.held.take()
            && let Err(error) = self.outbox.session_store.store().release_lease(&lease).await
        {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(error, "the lease of a receiver was not released and expires");
        }
    }
}
