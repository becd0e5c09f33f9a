//! Telling one receiver: the task that each replica has for each, and that tells while it holds the receiver's lease.
//!
//! Invariants
//! - Events begin to be pushed in the order they were noted, a bounded number at a time; after one that failed none begins.
//! - A note goes once it is acknowledged or refused for good, is too old, or is one too many: the oldest first, and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use oidc::SecurityEventPush;
use tokio::time::Instant;

use super::Context;
use super::holder::Holder;
use super::measures::SignalOutcome;
use super::note::{KEPT_MS, SignalNote};
use super::push::{BackOff, Pushed, push};
use super::queue::Queue;
use super::reading::{Place, Read, read};
use super::receiver::{Delivery, Receiver};
use super::stream::StreamState;
use super::unreached::Unreached;
use crate::keeper::KeeperError;
use crate::store::StoreError;

/// How often a replica looks whether there is something to tell.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// Events that happen at the same time are told together.
const GATHER_PAUSE: Duration = Duration::from_millis(10);

/// Notes that wait for one receiver at most, some 100 MB of a store.
pub(super) const QUEUED_MAX: usize = 100_000;

/// Notes read at once.
const PAGE: usize = 128;

/// Pushes, or removals, in flight at once for one receiver.
const AT_ONCE: usize = 16;

/// How often an event is sent that its receiver refuses without saying why: it may be that event alone.
const UNEXPLAINED_MAX: u32 = 10;

/// How long an event waits to be fetched before its receiver counts as one that cannot be told.
const FETCHED_WITHIN_MS: u64 = 60_000;

/// Tells one receiver.
pub(super) struct Deliverer {
    context: Arc<Context>,
    receiver: Arc<Receiver>,
    unreached: Unreached,
    queue: Queue,
    queued_max: usize,
    back_off: BackOff,
    alone_until: Option<Instant>,
    unexplained: Option<(Place, u32)>,
    state: Option<(Instant, Arc<StreamState>)>,
}

/// What became of a note in one round.
struct Told {
    place: Place,
    event: String,
    /// `None` where it was not sent.
    pushed: Option<Pushed>,
}

impl Deliverer {
    pub(super) fn new(context: Arc<Context>, receiver: Arc<Receiver>, unreached: Unreached) -> Self {
        Self {
            queue: Queue::new(&receiver),
            queued_max: context.receivers.queued_max,
            context,
            receiver,
            unreached,
            back_off: BackOff::default(),
            alone_until: None,
            unexplained: None,
            state: None,
        }
    }

    /// Tells until the service stops.
    pub(super) async fn run(mut self) {
        let Some(mut holder) = Holder::new(&self.receiver) else {
            tracing::error!(
                receiver = self.receiver.id,
                "the operating system gave no random bytes: the receiver is left to other replicas"
            );
            return;
        };
        let mut wakes = self.context.outbox.wakes();
        let shutdown = self.context.shutdown.clone();
        while !shutdown.is_cancelled() {
            let holds = self.round(&mut holder).await.unwrap_or_else(|error| {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(
                    receiver = self.receiver.id,
                    error,
                    "notes for a receiver cannot be looked through"
                );
                false
            });
            let pause = self.alone_until.map_or(LOOK_PAUSE, |until| {
                LOOK_PAUSE.min(until.duration_since(Instant::now()))
            });
            let woken = async {
                // Whoever does not tell has nothing to do sooner.
                if !holds || wakes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(GATHER_PAUSE).await;
            };
            tokio::select! {
                () = tokio::time::sleep(pause.max(GATHER_PAUSE)) => {}
                () = woken => {}
                () = shutdown.cancelled() => {}
            }
        }
        holder.release(&self.context.keeper).await;
    }

    /// Looks once; true while this replica is the one that tells.
    async fn round(&mut self, holder: &mut Holder) -> Result<bool, KeeperError> {
        let state = self.state().await?;
        let keeper = self.context.keeper.clone();
        if !holder.hold(&keeper).await? {
            self.unreached.reached(&self.receiver.id);
            self.context.measures.waiting(&self.receiver.id, 0, 0);
            return Ok(false);
        }
        self.queue.look(keeper.store()).await?;
        self.clear(&state).await?;
        if state.is_told() {
            let receiver = Arc::clone(&self.receiver);
            match &receiver.delivery {
                Delivery::Push(to) => self.push_all(to, holder).await?,
                Delivery::Poll => self.watch_fetching(),
            }
        }
        let waits_ms = self
            .queue
            .oldest_ms()
            .map_or(0, |at_ms| keeper.now_ms().saturating_sub(at_ms));
        let measures = &self.context.measures;
        measures.waiting(&self.receiver.id, self.queue.len(), waits_ms);
        Ok(true)
    }

    /// The stream's state, no older than a look.
    async fn state(&mut self) -> Result<Arc<StreamState>, KeeperError> {
        if let Some((read_at, _)) = &self.state
            && read_at.elapsed() < LOOK_PAUSE / 2
        {
            // What this replica changed itself it knows at once.
            return Ok(self.context.streams.known(&self.receiver));
        }
        let state = self.context.streams.read(&self.receiver).await?;
        self.state = Some((Instant::now(), Arc::clone(&state)));
        Ok(state)
    }

    /// Drops what is not to be told any more, and what is too old or too much.
    async fn clear(&mut self, state: &StreamState) -> Result<(), StoreError> {
        let now_ms = self.context.keeper.now_ms();
        let unwanted = |(at_ms, _): &Place| !state.takes_notes() || *at_ms < state.since_ms;
        loop {
            let mut oldest = self.queue.oldest(PAGE);
            oldest.retain(unwanted);
            if oldest.is_empty() {
                break;
            }
            self.drop_notes(&oldest, false).await?;
        }
        let mut dropped = 0;
        loop {
            let beyond = self.queue.len().saturating_sub(self.queued_max);
            let mut oldest = self.queue.oldest(PAGE);
            let old = |(at_ms, _): &Place| now_ms.saturating_sub(*at_ms) > KEPT_MS;
            let count = oldest.iter().filter(|place| old(place)).count();
            oldest.truncate(count.max(beyond));
            if oldest.is_empty() {
                break;
            }
            dropped += oldest.len();
            self.drop_notes(&oldest, true).await?;
        }
        if dropped > 0 {
            tracing::warn!(
                receiver = self.receiver.id,
                dropped,
                "a receiver misses events: they were too old, or too many"
            );
        }
        Ok(())
    }

    async fn drop_notes(&mut self, places: &[Place], is_missed: bool) -> Result<(), StoreError> {
        let context = Arc::clone(&self.context);
        let keeper = &context.keeper;
        let mut removed = stream::iter(places.iter().copied())
            .map(|place| async move { (place, keeper.store().remove(place.1, Vec::new()).await) })
            .buffer_unordered(AT_ONCE);
        while let Some((place, removed)) = removed.next().await {
            match removed {
                Ok(Some(record)) if is_missed => {
                    let note = SignalNote::open(&record, keeper).unwrap_or_default();
                    let measures = &context.measures;
                    measures.signal(&self.receiver.id, &note.event, SignalOutcome::Dropped);
                }
                Ok(_) | Err(StoreError::Corrupt) => {}
                Err(error) => return Err(error),
            }
            self.queue.forget(&place);
        }
        Ok(())
    }

    /// Pushes everything that waits, as long as it goes well.
    async fn push_all(&mut self, to: &SecurityEventPush, holder: &mut Holder) -> Result<(), KeeperError> {
        if self.alone_until.is_some_and(|until| Instant::now() < until) {
            self.unreached.failed(&self.receiver.id);
            return Ok(());
        }
        self.alone_until = None;
        let mut page = self.queue.oldest(PAGE);
        while let Some(last) = page.last().copied() {
            let keeper = self.context.keeper.clone();
            if self.context.shutdown.is_cancelled() || !holder.hold(&keeper).await? {
                break;
            }
            let read = read(&self.context, &self.receiver, &page).await?;
            let told = self.push_page(to, read, holder.begins_until()).await;
            if !self.take_over(told).await? {
                break;
            }
            page = self.queue.behind(last, PAGE);
        }
        Ok(())
    }

    /// Pushes what is ready of a page.
    async fn push_page(
        &mut self,
        to: &SecurityEventPush,
        page: Vec<(Place, Read)>,
        until: Option<Instant>,
    ) -> Vec<Told> {
        let mut ready = Vec::new();
        for (place, read) in page {
            match read {
                Read::Ready(note) => ready.push((place, note)),
                Read::Waits => {}
                Read::Gone => self.queue.forget(&place),
            }
        }
        let stopped = AtomicBool::new(false);
        let (this, is_stopped) = (&*self, &stopped);
        let pushes = stream::iter(ready).map(|(place, note)| async move {
            let is_late = until.is_none_or(|until| Instant::now() >= until);
            let is_over = is_stopped.load(Ordering::Relaxed) || this.context.shutdown.is_cancelled();
            let pushed = if is_late || is_over {
                None
            } else {
                Some(this.push_one(to, &note).await)
            };
            if matches!(pushed, Some(Pushed::Again { .. })) {
                is_stopped.store(true, Ordering::Relaxed);
            }
            Told {
                place,
                event: note.event,
                pushed,
            }
        });
        pushes.buffer_unordered(AT_ONCE).collect().await
    }

    async fn push_one(&self, to: &SecurityEventPush, note: &SignalNote) -> Pushed {
        let now_ms = self.context.keeper.now_ms();
        let pushed = match self.context.receivers.token(&self.receiver, note, now_ms) {
            Ok(token) => push(to, token).await,
            Err(fault) => {
                return Pushed::Again {
                    why: fault.to_string(),
                    after: None,
                    by_event: false,
                };
            }
        };
        if let Pushed::Done | Pushed::Refused(_) = pushed {
            self.remove(note).await;
        }
        pushed
    }

    /// Removes a note that is done with; one that stays is told once more.
    async fn remove(&self, note: &SignalNote) {
        let removed = self.context.keeper.store();
        if let Err(error) = removed.remove(note.name(&self.receiver), Vec::new()).await {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(
                receiver = self.receiver.id,
                error,
                "a note that is done with stays for now"
            );
        }
    }

    /// Takes over what became of a page; false if the receiver is to be left alone.
    async fn take_over(&mut self, told: Vec<Told>) -> Result<bool, StoreError> {
        let id = self.receiver.id.clone();
        let mut failed: Option<(String, Option<Duration>)> = None;
        let (mut is_reached, mut is_whole) = (false, true);
        for Told { place, event, pushed } in told {
            let outcome = match pushed {
                None => {
                    is_whole = false;
                    continue;
                }
                Some(Pushed::Done) => SignalOutcome::Delivered,
                Some(Pushed::Refused(code)) => {
                    tracing::warn!(
                        receiver = id,
                        event,
                        code,
                        "a receiver refused an event: it is not told again"
                    );
                    SignalOutcome::Refused
                }
                Some(Pushed::Again { by_event: true, .. }) if self.is_given_up(place) => {
                    tracing::warn!(
                        receiver = id,
                        event,
                        "a receiver refused an event time and again: it is not told again"
                    );
                    self.drop_notes(&[place], false).await?;
                    SignalOutcome::Refused
                }
                Some(Pushed::Again { why, after, .. }) => {
                    self.context.measures.signal(&id, &event, SignalOutcome::Failed);
                    let longest = failed.as_ref().and_then(|(_, longest)| *longest).max(after);
                    failed = Some((why, longest));
                    continue;
                }
            };
            is_reached = true;
            self.queue.forget(&place);
            self.context.measures.signal(&id, &event, outcome);
        }
        if is_reached {
            self.back_off.end();
            self.unreached.reached(&id);
        }
        let Some((why, after)) = failed else {
            return Ok(is_whole);
        };
        let pause = self.back_off.next(after);
        self.alone_until = Some(Instant::now() + pause);
        self.unreached.failed(&id);
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(
            receiver = id,
            reason = why,
            pause_ms,
            "a receiver could not be told: it is tried again"
        );
        Ok(false)
    }

    /// Whether an event has been refused without a reason often enough.
    fn is_given_up(&mut self, place: Place) -> bool {
        let times = match self.unexplained {
            Some((other, times)) if other == place => times + 1,
            _ => 1,
        };
        self.unexplained = Some((place, times));
        times >= UNEXPLAINED_MAX
    }

    /// Whether a receiver that fetches its events does.
    fn watch_fetching(&self) {
        let now_ms = self.context.keeper.now_ms();
        let oldest_ms = self.queue.oldest_ms();
        let id = &self.receiver.id;
        if oldest_ms.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) > FETCHED_WITHIN_MS) {
            self.unreached.failed(id);
        } else {
            self.unreached.reached(id);
        }
    }
}
