//! Telling one receiver: the task that each replica has for each, and that tells while it holds the receiver's lease.
//!
//! Invariant: a note is removed once its event is acknowledged or refused for good, or it is too old or one too many (`clearing`).

mod clearing;
mod pushing;
mod unexplained;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use self::unexplained::Unexplained;
use super::Context;
use super::holder::Holder;
use super::push::BackOff;
use super::queue::Queue;
use super::receiver::Receiver;
use super::unreached::Unreached;
use crate::keeper::KeeperError;

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

/// How often it is logged that nothing can be looked through.
const WARNED_PAUSE: Duration = Duration::from_secs(60);

/// Tells one receiver.
pub(super) struct Deliverer {
    context: Arc<Context>,
    receiver: Arc<Receiver>,
    unreached: Unreached,
    queue: Queue,
    queued_max: usize,
    back_off: BackOff,
    /// When the receiver is tried again; `None` while nothing has failed, or once it may be.
    retry_at: Option<Instant>,
    /// Until when the receiver is left to other replicas, which may reach it.
    yielded_until: Option<Instant>,
    unexplained: Unexplained,
    warned_at: Option<Instant>,
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
            retry_at: None,
            yielded_until: None,
            unexplained: Unexplained::default(),
            warned_at: None,
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
            let is_awake = self.round(&mut holder).await.unwrap_or_else(|error| {
                self.could_not_look(&error);
                false
            });
            let pause = self
                .retry_at
                .map_or(LOOK_PAUSE, |at| LOOK_PAUSE.min(at.duration_since(Instant::now())));
            let woken = async {
                if !is_awake || wakes.changed().await.is_err() {
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

    /// Looks once; true if this replica would tell what is noted from now on at once.
    async fn round(&mut self, holder: &mut Holder) -> Result<bool, KeeperError> {
        let now = Instant::now();
        // Whatever comes of this round: a time that is past would be waited for without a pause.
        self.retry_at = self.retry_at.filter(|at| now < *at);
        self.yielded_until = self.yielded_until.filter(|until| now < *until);
        let keeper = self.context.keeper.clone();
        if self.yielded_until.is_some() {
            holder.release(&keeper).await;
            self.unreached.failed(&self.receiver.id);
            return Ok(false);
        }
        if !holder.hold(&keeper).await? {
            self.unreached.reached(&self.receiver.id);
            self.context.measures.waiting(&self.receiver.id, 0, 0);
            return Ok(false);
        }
        self.queue.look(keeper.store()).await?;
        self.clear().await?;
        self.push_all(holder).await?;
        let waits_ms = self
            .queue
            .oldest_ms()
            .map_or(0, |at_ms| keeper.now_ms().saturating_sub(at_ms));
        let measures = &self.context.measures;
        measures.waiting(&self.receiver.id, self.queue.len(), waits_ms);
        Ok(self.retry_at.is_none())
    }

    /// Nobody is told while the store cannot be read, or what is in it.
    fn could_not_look(&mut self, error: &KeeperError) {
        self.unreached.failed(&self.receiver.id);
        if self.warned_at.is_some_and(|at| at.elapsed() < WARNED_PAUSE) {
            return;
        }
        self.warned_at = Some(Instant::now());
        let error = error as &dyn std::error::Error;
        tracing::warn!(
            receiver = self.receiver.id,
            error,
            "notes for a receiver cannot be looked through: it is not told meanwhile"
        );
    }
}
