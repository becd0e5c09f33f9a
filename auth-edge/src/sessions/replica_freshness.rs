//! Events from the session service: whether every replica reports, and when each session changed.
//!
//! Invariants
//! - While a replica is silent, no cached read is valid.
//! - A cached read is valid only if its call began after the edge received the session's last change.
//!
//! Time is monotonic here: neither a clock change nor a paused process makes an old read look new.

use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use session_proto::client::{SessionClient, WatchItem};
use session_proto::v1::WatchSessionsRequest;
use session_proto::v1::session_event::Kind;

/// A replica is silent if its last report is older than this. Each reports three times within this time, so two
/// reports in a row may be lost. The session service notices a silent store within half a second. So the edge rejects
/// an ended session within a second, whichever part fails.
pub(crate) const SILENCE_MAX: Duration = Duration::from_millis(450);

/// The most changes in memory. Above that, the edge drops all changes and treats every earlier read as stale.
const CHANGES_MAX: usize = 100_000;

/// The public handle of a session.
pub(super) type Handle = Box<str>;

/// The state of all received events.
#[derive(Debug)]
pub(super) struct ReplicaFreshness {
    began: Instant,
    /// How long a change is kept: the maximum age of a cached read.
    kept: Duration,
    /// From `since` on, all replicas have reported without a gap. This is valid up to `until`. Both are in
    /// microseconds after `began`; 0 is never.
    since: AtomicU64,
    until: AtomicU64,
    /// The last value of `until` while all replicas reported; 0 is never.
    last_complete_until: AtomicU64,
    /// The numbers of replicas that report, and of silent ones.
    replicas: [AtomicUsize; 2],
    /// When each session last changed.
    changes: RwLock<HashMap<Handle, Moment>>,
}

/// A moment, in microseconds after `began`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(super) u64);

impl Moment {
    /// How much later this is than `earlier`; zero if it is not.
    pub(super) fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    fn plus(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)),
        )
    }
}

impl ReplicaFreshness {
    /// No replica reports yet. Changes are kept for `kept`.
    pub(super) fn new(kept: Duration) -> Self {
        Self {
            began: Instant::now(),
            kept,
            since: AtomicU64::new(0),
            until: AtomicU64::new(0),
            last_complete_until: AtomicU64::new(0),
            replicas: [AtomicUsize::new(0), AtomicUsize::new(0)],
            changes: RwLock::default(),
        }
    }

    pub(super) fn now(&self) -> Moment {
        self.moment(Instant::now())
    }

    /// Converts an instant of the monotonic clock. Instants before `began` become the first moment.
    pub(super) fn moment(&self, instant: Instant) -> Moment {
        // 0 means never.
        let since = instant.saturating_duration_since(self.began);
        Moment(u64::try_from(since.as_micros()).unwrap_or(u64::MAX).max(1))
    }

    /// Whether all replicas report at `now`.
    pub(super) fn is_complete(&self, now: Moment) -> bool {
        now.0 < self.until.load(Ordering::Acquire) && self.since.load(Ordering::Acquire) != 0
    }

    /// Whether the result of a call that began at `requested_at` is still valid at `now`.
    pub(super) fn is_unchanged(&self, handle: &str, requested_at: Moment, now: Moment) -> bool {
        let changes = self.changes.read().unwrap_or_else(PoisonError::into_inner);
        let changed = changes.get(handle);
        // The order matters: a thread that reads a new `until` then also reads its `since`.
        self.is_complete(now)
            && requested_at.0 >= self.since.load(Ordering::Acquire)
            && changed.is_none_or(|changed| *changed < requested_at)
    }

    /// Records a change to a session.
    pub(super) fn record_change(&self, handle: &str, now: Moment) {
        let mut changes = self.changes.write().unwrap_or_else(PoisonError::into_inner);
        if changes.len() >= CHANGES_MAX {
            changes.clear();
            self.since.fetch_max(now.0, Ordering::AcqRel);
            return;
        }
        changes.insert(handle.into(), now);
    }

    /// Drops changes that are older than every cached read.
    pub(super) fn forget_old(&self, now: Moment) {
        let mut changes = self.changes.write().unwrap_or_else(PoisonError::into_inner);
        changes.retain(|_, changed| now.since(*changed) <= self.kept);
    }

    /// Records that all replicas have reported, valid up to `until`. Reads before `since` are stale.
    pub(super) fn mark_complete(&self, since: Moment, until: Moment) {
        self.since.fetch_max(since.0, Ordering::AcqRel);
        self.until.store(until.0, Ordering::Release);
        self.last_complete_until.store(until.0, Ordering::Relaxed);
    }

    /// The time since all replicas had last reported; the time since `began` if they never had.
    pub(super) fn heartbeat_age(&self) -> Duration {
        let until = self.last_complete_until.load(Ordering::Relaxed);
        let reported = until.saturating_sub(Moment::default().plus(SILENCE_MAX).0);
        self.now().since(Moment(reported))
    }

    /// How many replicas report, and how many are silent.
    pub(super) fn replicas(&self) -> [usize; 2] {
        self.replicas
            .each_ref()
            .map(|count| count.load(Ordering::Relaxed))
    }

    /// Records that at least one replica is silent.
    fn mark_incomplete(&self) {
        self.until.store(0, Ordering::Release);
    }
}

/// Watches every replica for as long as `freshness` has an owner.
pub(super) async fn listen(client: SessionClient, freshness: Weak<ReplicaFreshness>) {
    let mut replicas = Replicas(HashMap::new());
    let mut items = pin!(client.watch_each(WatchSessionsRequest::default()));
    while let Some((id, item)) = items.next().await {
        let Some(freshness) = freshness.upgrade() else {
            return;
        };
        replicas.take(&freshness, id, item, freshness.now());
    }
}

/// The state of one replica.
#[derive(Clone, Copy, Debug)]
struct Replica {
    /// Since when it reports without a gap.
    heard_since: Option<Moment>,
    /// The edge has received every event before this moment.
    reported_until: Moment,
}

#[derive(Debug)]
struct Replicas<Id>(HashMap<Id, Replica>);

impl<Id: Eq + Hash + Display> Replicas<Id> {
    /// Applies an item from one replica, then updates the shared state of all replicas.
    fn take(&mut self, freshness: &ReplicaFreshness, id: Id, item: WatchItem, now: Moment) {
        let heard = |heard_since| Replica {
            heard_since,
            reported_until: Moment::default(),
        };
        match item {
            WatchItem::Found => {
                self.0.insert(id, heard(None));
            }
            WatchItem::Connected => {
                self.0.insert(id, heard(Some(now)));
            }
            WatchItem::Missed => {
                if let Some(replica) = self.0.get_mut(&id) {
                    replica.heard_since = replica.heard_since.map(|_| now);
                }
            }
            WatchItem::Event(event) => match event.kind() {
                Kind::Created | Kind::Unspecified | Kind::Missed | Kind::Heartbeat => {}
                Kind::Rolled | Kind::Refreshed | Kind::Changed | Kind::Ended => {
                    freshness.record_change(&event.handle, now);
                }
            },
            WatchItem::Current(moment) => {
                if let Some(replica) = self.0.get_mut(&id) {
                    replica.reported_until = freshness.moment(moment);
                }
            }
            WatchItem::Lost(error) => {
                tracing::warn!(replica = %id, error = &error as &dyn std::error::Error, "cannot receive from a replica of the session service: the edge reads every session from the service");
                self.0.insert(id, heard(None));
            }
            WatchItem::Gone => {
                self.0.remove(&id);
            }
        }
        self.update_state(freshness, now);
    }

    /// Marks the state complete from the latest connection or gap until the oldest last report expires.
    fn update_state(&self, freshness: &ReplicaFreshness, now: Moment) {
        let heard = self.0.values().filter(|replica| replica.heard_since.is_some());
        let counts = [heard.count(), self.0.len()];
        let all_heard = counts[0] == counts[1];
        freshness.replicas[0].store(counts[0], Ordering::Relaxed);
        freshness.replicas[1].store(counts[1] - counts[0], Ordering::Relaxed);
        let since = self.0.values().filter_map(|replica| replica.heard_since).max();
        let least = self.0.values().map(|replica| replica.reported_until).min();
        let until = least
            .map(|reported_until| reported_until.plus(SILENCE_MAX))
            .filter(|until| all_heard && *until > now);
        let (Some(since), Some(until)) = (since, until) else {
            freshness.mark_incomplete();
            return;
        };
        if freshness.is_complete(now) {
            freshness.mark_complete(since, until);
            return;
        }
        // After a silence the edge reads every session again, even if no stream broke.
        freshness.mark_complete(now, until);
        tracing::info!(
            replicas = self.0.len(),
            "receiving from every replica of the session service"
        );
    }
}

#[cfg(test)]
#[path = "replica_freshness_tests.rs"]
mod tests;
