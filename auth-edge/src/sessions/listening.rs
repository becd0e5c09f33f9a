//! What is heard from the session service: whether every replica is heard, and which sessions changed when.
//!
//! Invariants
//! - While one replica is not heard, nothing that was read before counts.
//! - A session that changed counts only if it was read after the change was heard.
//!
//! Time here is monotonic, so that neither a clock that is set nor a process that was paused makes something old look new.

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

/// A replica whose news is older is not heard. It reports three times within that how far its events go, so two reports in a
/// row may be lost. With the half second in which a session service notices that its store tells it nothing, what was ended
/// is refused within a second whatever breaks.
pub(crate) const SILENCE_MAX: Duration = Duration::from_millis(450);

/// Changes remembered at once; with more, everything read before counts as changed.
const CHANGES_MAX: usize = 100_000;

/// Which session: its public handle.
pub(super) type Handle = Box<str>;

/// What has been heard.
#[derive(Debug)]
pub(super) struct Listening {
    began: Instant,
    /// How long a change has to be remembered: nothing that is remembered of a session gets older.
    kept: Duration,
    /// Since when all replicas are heard without a gap, and until when that holds, in microseconds after `began`; 0 is
    /// never.
    since: AtomicU64,
    until: AtomicU64,
    /// Until when all replicas were heard last, whether or not that holds; 0 is never.
    heard_until: AtomicU64,
    /// Replicas that are heard, and those that are not.
    replicas: [AtomicUsize; 2],
    /// When sessions changed last.
    changes: RwLock<HashMap<Handle, Moment>>,
}

/// A moment, in microseconds after the beginning of listening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(super) u64);

impl Moment {
    /// How much later this is than another; nothing if it is not.
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

impl Listening {
    /// Hears nothing yet. Changes are remembered for `kept`.
    pub(super) fn new(kept: Duration) -> Self {
        Self {
            began: Instant::now(),
            kept,
            since: AtomicU64::new(0),
            until: AtomicU64::new(0),
            heard_until: AtomicU64::new(0),
            replicas: [AtomicUsize::new(0), AtomicUsize::new(0)],
            changes: RwLock::default(),
        }
    }

    /// Now.
    pub(super) fn now(&self) -> Moment {
        self.moment(Instant::now())
    }

    /// A moment of the monotonic clock; nothing is earlier than the beginning.
    pub(super) fn moment(&self, instant: Instant) -> Moment {
        // 0 is taken for never.
        let since = instant.saturating_duration_since(self.began);
        Moment(u64::try_from(since.as_micros()).unwrap_or(u64::MAX).max(1))
    }

    /// Whether all replicas are heard at `now`.
    pub(super) fn is_complete(&self, now: Moment) -> bool {
        now.0 < self.until.load(Ordering::Acquire) && self.since.load(Ordering::Acquire) != 0
    }

    /// Whether what a call that began at `requested_at` returned still holds at `now`, as far as changes are heard.
    pub(super) fn vouches_for(&self, handle: &str, requested_at: Moment, now: Moment) -> bool {
        let changes = self.changes.read().unwrap_or_else(PoisonError::into_inner);
        let changed = changes.get(handle);
        // In this order: whoever sees that all are heard again also sees since when.
        self.is_complete(now)
            && requested_at.0 >= self.since.load(Ordering::Acquire)
            && changed.is_none_or(|changed| *changed < requested_at)
    }

    /// Something happened to a session.
    pub(super) fn changed(&self, handle: &str, now: Moment) {
        let mut changes = self.changes.write().unwrap_or_else(PoisonError::into_inner);
        if changes.len() >= CHANGES_MAX {
            changes.clear();
            self.since.fetch_max(now.0, Ordering::AcqRel);
            return;
        }
        changes.insert(handle.into(), now);
    }

    /// Forgets the changes that are older than anything that is remembered.
    pub(super) fn forget_old(&self, now: Moment) {
        let mut changes = self.changes.write().unwrap_or_else(PoisonError::into_inner);
        changes.retain(|_, changed| now.since(*changed) <= self.kept);
    }

    /// All replicas are heard up to `until`; what was read before `since` does not count.
    pub(super) fn complete(&self, since: Moment, until: Moment) {
        self.since.fetch_max(since.0, Ordering::AcqRel);
        self.until.store(until.0, Ordering::Release);
        self.heard_until.store(until.0, Ordering::Relaxed);
    }

    /// How old the news of the replica is that was heard last of all; since the beginning where they never were all heard.
    pub(super) fn news_age(&self) -> Duration {
        let until = self.heard_until.load(Ordering::Relaxed);
        let reported = until.saturating_sub(Moment::default().plus(SILENCE_MAX).0);
        self.now().since(Moment(reported))
    }

    /// How many replicas are heard, and how many are not.
    pub(super) fn replicas(&self) -> [usize; 2] {
        self.replicas
            .each_ref()
            .map(|count| count.load(Ordering::Relaxed))
    }

    /// Not all replicas are heard.
    fn incomplete(&self) {
        self.until.store(0, Ordering::Release);
    }
}

/// Listens to every replica for as long as somebody holds `listening`.
pub(super) async fn listen(client: SessionClient, listening: Weak<Listening>) {
    let mut replicas = Replicas(HashMap::new());
    let mut items = pin!(client.watch_each(WatchSessionsRequest::default()));
    while let Some((id, item)) = items.next().await {
        let Some(listening) = listening.upgrade() else {
            return;
        };
        replicas.take(&listening, id, item, listening.now());
    }
}

/// What is known of one replica.
#[derive(Clone, Copy, Debug)]
struct Replica {
    /// Since when it is heard without a gap.
    heard_since: Option<Moment>,
    /// Every event from before has been received.
    reported_until: Moment,
}

/// Every replica there is.
#[derive(Debug)]
struct Replicas<Id>(HashMap<Id, Replica>);

impl<Id: Eq + Hash + Display> Replicas<Id> {
    /// Takes an item of one replica, and judges them all anew.
    fn take(&mut self, listening: &Listening, id: Id, item: WatchItem, now: Moment) {
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
                    listening.changed(&event.handle, now);
                }
            },
            WatchItem::Current(moment) => {
                if let Some(replica) = self.0.get_mut(&id) {
                    replica.reported_until = listening.moment(moment);
                }
            }
            WatchItem::Lost(error) => {
                tracing::warn!(replica = %id, error = &error as &dyn std::error::Error, "a replica of the session service is not heard: every session is asked for");
                self.0.insert(id, heard(None));
            }
            WatchItem::Gone => {
                self.0.remove(&id);
            }
        }
        self.judge(listening, now);
    }

    /// All are heard since the last one was, and until the oldest report of any grows too old.
    fn judge(&self, listening: &Listening, now: Moment) {
        let heard = self.0.values().filter(|replica| replica.heard_since.is_some());
        let counts = [heard.count(), self.0.len()];
        let all_heard = counts[0] == counts[1];
        listening.replicas[0].store(counts[0], Ordering::Relaxed);
        listening.replicas[1].store(counts[1] - counts[0], Ordering::Relaxed);
        let since = self.0.values().filter_map(|replica| replica.heard_since).max();
        let least = self.0.values().map(|replica| replica.reported_until).min();
        let until = least
            .map(|reported_until| reported_until.plus(SILENCE_MAX))
            .filter(|until| all_heard && *until > now);
        let (Some(since), Some(until)) = (since, until) else {
            listening.incomplete();
            return;
        };
        if listening.is_complete(now) {
            listening.complete(since, until);
            return;
        }
        // After a silence everything is read anew, though no stream broke.
        listening.complete(now, until);
        tracing::info!(
            replicas = self.0.len(),
            "every replica of the session service is heard"
        );
    }
}

#[cfg(test)]
#[path = "listening_tests.rs"]
mod tests;
