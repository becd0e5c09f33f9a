//! Pushing what waits for a receiver, page by page, and what follows from its answers.
//!
//! Invariant: events begin to be pushed in the order they were noted, a bounded number at a time; after one that failed none begins.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use tokio::time::Instant;

use super::{AT_ONCE, Deliverer, PAGE};
use crate::keeper::KeeperError;
use crate::session::Name;
use crate::transmitter::holder::Holder;
use crate::transmitter::measures::SignalOutcome;
use crate::transmitter::note::SignalNote;
use crate::transmitter::push::{Fault, NotTold, Pushed, push};
use crate::transmitter::queue::QueueEntry;
use crate::transmitter::reading::{Read, read};

/// Milliseconds of a second.
const SECOND_MS: u64 = 1_000;

/// The pause from which a replica that cannot reach a receiver leaves it to others.
const YIELDED_AFTER: Duration = Duration::from_secs(30);

/// What became of a note in one round.
struct ToldNote {
    entry: QueueEntry,
    event: String,
    /// `None` where it was not sent.
    pushed: Option<Pushed>,
}

impl Deliverer {
    /// Pushes everything that waits, as long as it goes well.
    pub(super) async fn push_all(&mut self, holder: &mut Holder) -> Result<(), KeeperError> {
        if self.retry_at.is_some() {
            self.unreached.failed(&self.receiver.id);
            return Ok(());
        }
        let queue = &self.queue;
        self.unexplained.keep(|entry| queue.holds(entry));
        let mut page = self.queue.oldest(PAGE);
        while let Some(last) = page.last().copied() {
            let keeper = self.context.keeper.clone();
            if self.context.shutdown.is_cancelled() || !holder.hold(&keeper).await? {
                break;
            }
            let read = read(&self.context, &self.receiver, &page).await?;
            let told = self.push_page(read, holder.begins_until()).await;
            if !self.take_over(told).await {
                break;
            }
            page = self.queue.behind(last, PAGE);
        }
        Ok(())
    }

    /// Pushes what is ready of a page.
    async fn push_page(&mut self, page: Vec<(QueueEntry, Read)>, until: Option<Instant>) -> Vec<ToldNote> {
        let mut ready = Vec::new();
        for (entry, read) in page {
            match read {
                Read::Ready(note) => ready.push((entry, note)),
                Read::Waits => {}
                Read::Gone => self.queue.forget(&entry),
            }
        }
        let stopped = AtomicBool::new(false);
        let (this, is_stopped) = (&*self, &stopped);
        let pushes = stream::iter(ready).map(|(entry, note)| async move {
            let is_late = until.is_none_or(|until| Instant::now() >= until);
            let is_over = is_stopped.load(Ordering::Relaxed) || this.context.shutdown.is_cancelled();
            let pushed = if is_late || is_over {
                None
            } else {
                Some(this.push_one(&note).await)
            };
            if matches!(pushed, Some(Pushed::Again { .. })) {
                is_stopped.store(true, Ordering::Relaxed);
            }
            ToldNote {
                entry,
                event: note.event,
                pushed,
            }
        });
        pushes.buffer_unordered(AT_ONCE).collect().await
    }

    async fn push_one(&self, note: &SignalNote) -> Pushed {
        let now_ms = self.context.keeper.now_ms();
        let pushed = match self.context.receivers.token(&self.receiver, note, now_ms) {
            Ok(token) => push(&self.receiver.push, token, now_ms / SECOND_MS).await,
            Err(fault) => {
                return Pushed::Again {
                    why: fault.into(),
                    after: None,
                    fault: Fault::Receiver,
                };
            }
        };
        if let Pushed::Done | Pushed::Refused(_) = pushed {
            self.remove(note.name(&self.receiver)).await;
        }
        pushed
    }

    /// Removes a note that is done with; one that stays is told once more.
    async fn remove(&self, name: Name) {
        let store = self.context.keeper.store();
        if let Err(error) = store.remove(name, Vec::new()).await {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(
                receiver = self.receiver.id,
                error,
                "a note that is done with stays for now"
            );
        }
    }

    /// Takes over what became of a page; false if the receiver is to be left alone.
    async fn take_over(&mut self, told: Vec<ToldNote>) -> bool {
        let id = self.receiver.id.clone();
        let mut failed: Option<(NotTold, Option<Duration>)> = None;
        let (mut is_reached, mut is_whole, mut is_out_of_reach) = (false, true, true);
        for ToldNote { entry, event, pushed } in told {
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
                Some(Pushed::Again {
                    fault: Fault::Event, ..
                }) if self.unexplained.is_enough(entry) => {
                    tracing::warn!(
                        receiver = id,
                        event,
                        "a receiver refused an event time and again: it is not told again"
                    );
                    self.remove(entry.name).await;
                    SignalOutcome::Refused
                }
                Some(Pushed::Again { why, after, fault }) => {
                    is_out_of_reach &= fault == Fault::Network;
                    self.context.measures.signal(&id, &event, SignalOutcome::Failed);
                    let longest = failed.as_ref().and_then(|(_, longest)| *longest).max(after);
                    failed = Some((why, longest));
                    continue;
                }
            };
            is_reached = true;
            self.queue.forget(&entry);
            self.unexplained.forget(&entry);
            self.context.measures.signal(&id, &event, outcome);
        }
        if is_reached {
            self.back_off.end();
            self.unreached.reached(&id);
        }
        match failed {
            None => is_whole,
            Some((why, after)) => {
                self.leave_alone(&why, after, is_out_of_reach && !is_reached);
                false
            }
        }
    }

    /// Leaves the receiver alone for a while, to other replicas where this one has not reached it for long.
    fn leave_alone(&mut self, why: &NotTold, after: Option<Duration>, is_out_of_reach: bool) {
        let pause = self.back_off.next(after);
        self.retry_at = Some(Instant::now() + pause);
        if is_out_of_reach && pause >= YIELDED_AFTER {
            self.yielded_until = self.retry_at;
        }
        self.unreached.failed(&self.receiver.id);
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(
            receiver = self.receiver.id,
            error = why as &dyn std::error::Error,
            pause_ms,
            "a receiver could not be told: it is tried again"
        );
    }
}
