//! What is heard from the session service: whether every replica is heard, and which sessions changed when.
//!
//! Invariants: while one replica is not heard, nothing that was read before counts; a session that changed counts only
//! if it was read after the change was heard. Time here is monotonic, so that neither a clock that is set nor a process
//! that was paused makes something old look new.

use std::collections::{HashMap, VecDeque};
use std::fmt::Display;
use std::hash::Hash;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use session_proto::client::{SessionClient, WatchItem};
use session_proto::v1::WatchSessionsRequest;
use session_proto::v1::session_event::Kind;

/// A replica that has been silent for longer is not heard. It beats every 300 ms, so two beats in a row may be lost,
/// and what was ended is refused well within a second whatever breaks.
pub const SILENCE_MAX: Duration = Duration::from_millis(750);

/// Changes remembered at once; with more, everything read before counts as changed.
const CHANGES_MAX: usize = 100_000;

/// Which session.
type Handle = Box<str>;

/// Places among which sessions are spread for a first look.
const MARKS: usize = 4_096;

/// What has been heard. Reading it takes no lock unless something changed that may be it: cores that only read do not wait for
/// each other.
#[derive(Debug)]
pub(super) struct Listening {
    began: Instant,
    /// How long a change has to be remembered: nothing that is remembered of a session gets older.
    kept: Duration,
    /// Since when all replicas are heard without a gap, and until when that holds, in microseconds after `began`; 0 is never.
    since: AtomicU64,
    until: AtomicU64,
    /// When a session changed last of those that share a place, as a [`Moment`].
    marks: Box<[AtomicU64]>,
    changes: RwLock<Changes>,
}

#[derive(Debug, Default)]
struct Changes {
    last: HashMap<Handle, (Moment, Change)>,
    order: VecDeque<(Moment, Handle)>,
}

/// What happened to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It ended, or may have.
    Ended,
    /// Anything else.
    Other,
}

/// A moment, in microseconds after the beginning of listening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub(super) u64);

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
            marks: (0..MARKS).map(|_| AtomicU64::new(0)).collect(),
            changes: RwLock::default(),
        }
    }

    /// Now.
    pub(super) fn now(&self) -> Moment {
        // 0 is taken for never.
        Moment(
            u64::try_from(self.began.elapsed().as_micros())
                .unwrap_or(u64::MAX)
                .max(1),
        )
    }

    /// Whether all replicas are heard at `now`.
    pub(super) fn is_complete(&self, now: Moment) -> bool {
        now.0 < self.until.load(Ordering::Acquire) && self.since.load(Ordering::Acquire) != 0
    }

    /// Whether what was asked of the session service at `asked` still holds at `now`, as far as changes are heard.
    pub(super) fn vouches_for(&self, handle: &str, asked: Moment, now: Moment) -> bool {
        // In this order: whoever sees that all are heard again also sees since when.
        if !self.is_complete(now) || asked.0 < self.since.load(Ordering::Acquire) {
            return false;
        }
        if self.mark(handle).load(Ordering::Acquire) < asked.0 {
            return true;
        }
        let changes = self.changes.read().unwrap_or_else(PoisonError::into_inner);
        changes
            .last
            .get(handle)
            .is_none_or(|(changed, _)| *changed < asked)
    }

    /// Whether a session that was there at `asked` has not ended by `now`, as far as endings are heard.
    pub(super) fn hears_no_end(&self, handle: &str, asked: Moment, now: Moment) -> bool {
        let gap = !self.is_complete(now) || asked.0 < self.since.load(Ordering::Acquire);
        // What happened longer ago may be forgotten.
        if gap || now.since(asked) >= self.kept {
            return false;
        }
        let changes = self.changes.read().unwrap_or_else(PoisonError::into_inner);
        let last = changes.last.get(handle);
        // What is ended does not change any more.
        last.is_none_or(|(changed, change)| *changed < asked || *change == Change::Other)
    }

    /// Something happened to a session.
    pub(super) fn changed(&self, handle: &str, change: Change, now: Moment) {
        let mut changes = self.changes.write().unwrap_or_else(PoisonError::into_inner);
        self.mark(handle).fetch_max(now.0, Ordering::AcqRel);
        changes.forget_before(now, self.kept);
        if changes.order.len() >= CHANGES_MAX {
            *changes = Changes::default();
            self.since.fetch_max(now.0, Ordering::AcqRel);
            return;
        }
        changes.last.insert(handle.into(), (now, change));
        changes.order.push_back((now, handle.into()));
    }

    fn mark(&self, handle: &str) -> &AtomicU64 {
        let sum = handle.bytes().fold(0_usize, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(usize::from(byte))
        });
        &self.marks[sum % MARKS]
    }

    /// All replicas are heard up to `until`; what was read before `since` does not count.
    pub(super) fn complete(&self, since: Moment, until: Moment) {
        self.since.fetch_max(since.0, Ordering::AcqRel);
        self.until.store(until.0, Ordering::Release);
    }

    /// Not all replicas are heard.
    fn incomplete(&self) {
        self.until.store(0, Ordering::Release);
    }
}

impl Changes {
    fn forget_before(&mut self, now: Moment, kept: Duration) {
        while let Some((at, _)) = self.order.front()
            && now.since(*at) > kept
        {
            let Some((at, handle)) = self.order.pop_front() else {
                return;
            };
            // A later change of the same session stays.
            if self.last.get(&handle).is_some_and(|(last, _)| *last == at) {
                self.last.remove(&handle);
            }
        }
    }
}

/// Listens to every replica for as long as somebody holds `listening`.
pub(super) async fn listen(client: SessionClient, listening: Weak<Listening>) {
    let mut replicas = Replicas::default();
    let mut told = pin!(client.watch_each(WatchSessionsRequest::default()));
    while let Some((id, item)) = told.next().await {
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
    last_heard: Moment,
}

/// Every replica there is.
#[derive(Debug)]
struct Replicas<Id>(HashMap<Id, Replica>);

impl<Id> Default for Replicas<Id> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<Id: Eq + Hash + Display> Replicas<Id> {
    /// Takes what was told of one of them, and draws the sum.
    fn take(&mut self, listening: &Listening, id: Id, item: WatchItem, now: Moment) {
        let heard = |heard_since| Replica {
            heard_since,
            last_heard: now,
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
            WatchItem::Event(event) => {
                match event.kind() {
                    Kind::Heartbeat | Kind::Created | Kind::Unspecified | Kind::Missed => {}
                    Kind::Rolled | Kind::Refreshed | Kind::Changed => {
                        listening.changed(&event.handle, Change::Other, now);
                    }
                    Kind::Ended => listening.changed(&event.handle, Change::Ended, now),
                }
                if let Some(replica) = self.0.get_mut(&id) {
                    replica.last_heard = now;
                }
            }
            WatchItem::Lost(error) => {
                tracing::warn!(replica = %id, %error, "a replica of the session service is not heard: every session is asked for");
                self.0.insert(id, heard(None));
            }
            WatchItem::Gone => {
                self.0.remove(&id);
            }
        }
        self.judge(listening, now);
    }

    /// All are heard since the last one was, and for as long as the one heard longest ago may be silent.
    fn judge(&self, listening: &Listening, now: Moment) {
        let all_heard = self.0.values().all(|replica| replica.heard_since.is_some());
        let since = self.0.values().filter_map(|replica| replica.heard_since).max();
        let oldest = self.0.values().map(|replica| replica.last_heard).min();
        let (true, Some(since), Some(oldest)) = (all_heard, since, oldest) else {
            listening.incomplete();
            return;
        };
        let was_complete = listening.is_complete(now);
        // After a silence everything is asked for anew, though no stream broke.
        let since = if was_complete { since } else { now };
        listening.complete(since, oldest.plus(SILENCE_MAX));
        if !was_complete {
            tracing::info!(
                replicas = self.0.len(),
                "every replica of the session service is heard"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use session_proto::client::SessionError;
    use session_proto::v1::{ErrorReason, SessionEvent};

    use super::*;

    const A: &str = "replica a";
    const B: &str = "replica b";

    fn at(ms: u64) -> Moment {
        Moment(ms * 1000)
    }

    fn event(kind: Kind, handle: &str) -> WatchItem {
        WatchItem::Event(SessionEvent {
            kind: kind.into(),
            handle: handle.to_owned(),
            ..SessionEvent::default()
        })
    }

    fn beat() -> WatchItem {
        event(Kind::Heartbeat, "")
    }

    fn lost() -> WatchItem {
        WatchItem::Lost(SessionError {
            reason: ErrorReason::ErrSessionServiceUnavailable,
            message: "gone".to_owned(),
            metadata: HashMap::new(),
        })
    }

    fn heard(items: impl IntoIterator<Item = (u64, &'static str, WatchItem)>) -> Listening {
        let listening = Listening::new(Duration::from_secs(5));
        let mut replicas = Replicas::default();
        for (ms, id, item) in items {
            replicas.take(&listening, id, item, at(ms));
        }
        listening
    }

    fn both() -> Vec<(u64, &'static str, WatchItem)> {
        vec![
            (10, A, WatchItem::Found),
            (10, B, WatchItem::Found),
            (20, A, WatchItem::Connected),
            (30, B, WatchItem::Connected),
        ]
    }

    #[test]
    fn nothing_counts_before_every_replica_is_heard() {
        assert!(!heard([]).is_complete(at(1)));
        let one = heard(both().into_iter().take(3));
        assert!(!one.is_complete(at(21)));
        let all = heard(both());
        assert!(all.is_complete(at(31)));
        assert!(
            !all.vouches_for("x", at(29), at(31)),
            "read before the last was heard"
        );
        assert!(all.vouches_for("x", at(30), at(31)));
    }

    #[test]
    fn an_ending_is_told_from_a_change_and_from_what_cannot_be_heard() {
        for (kind, lasts) in [
            (Kind::Ended, false),
            (Kind::Changed, true),
            (Kind::Refreshed, true),
            (Kind::Rolled, true),
        ] {
            let all = heard(both().into_iter().chain([(50, A, event(kind, "x"))]));
            assert_eq!(all.hears_no_end("x", at(40), at(60)), lasts, "{kind:?}");
            assert_eq!(all.hears_no_end("x", at(50), at(60)), lasts, "{kind:?}");
            assert!(all.hears_no_end("y", at(40), at(60)));
            assert!(
                !all.hears_no_end("y", at(29), at(60)),
                "before the last was heard"
            );
            let later = [(5_000, A, beat()), (5_000, B, beat())];
            let all = heard(both().into_iter().chain([(50, A, event(kind, "x"))]).chain(later));
            assert!(!all.hears_no_end("x", at(40), at(5_040)), "it may be forgotten");
        }
        assert!(!heard(both().into_iter().take(3)).hears_no_end("y", at(30), at(31)));
    }

    #[test]
    fn a_change_spoils_what_was_read_before_it_and_nothing_else() {
        for kind in [Kind::Ended, Kind::Changed, Kind::Refreshed, Kind::Rolled] {
            let all = heard(both().into_iter().chain([(50, A, event(kind, "x"))]));
            assert!(!all.vouches_for("x", at(40), at(60)));
            assert!(!all.vouches_for("x", at(50), at(60)), "at the same moment");
            assert!(all.vouches_for("x", at(51), at(60)));
            assert!(all.vouches_for("y", at(40), at(60)));
        }
    }

    #[test]
    fn one_replica_that_is_not_heard_spoils_everything() {
        let mut items = both();
        items.push((40, B, lost()));
        items.push((50, A, beat()));
        assert!(!heard(items.clone()).is_complete(at(51)));
        items.push((60, B, WatchItem::Connected));
        let again = heard(items.clone());
        assert!(
            !again.vouches_for("x", at(45), at(61)),
            "read while it was not heard"
        );
        assert!(again.vouches_for("x", at(60), at(61)));
        items.pop();
        items.push((60, B, WatchItem::Gone));
        assert!(
            heard(items).is_complete(at(61)),
            "one that is gone need not be heard"
        );
    }

    #[test]
    fn silence_spoils_everything_also_when_no_stream_breaks() {
        let silence = u64::try_from(SILENCE_MAX.as_millis()).unwrap();
        let mut items = both();
        items.push((100, B, beat()));
        let all = heard(items.clone());
        assert!(all.is_complete(at(20 + silence - 1)));
        assert!(
            !all.is_complete(at(20 + silence)),
            "the other one has been silent since"
        );
        items.push((30 + silence, A, beat()));
        let again = heard(items);
        assert!(
            !again.vouches_for("x", at(50), at(31 + silence)),
            "read before the silence"
        );
        assert!(again.vouches_for("x", at(30 + silence), at(31 + silence)));
    }

    #[test]
    fn what_may_have_been_missed_spoils_what_was_read_before() {
        let all = heard(both().into_iter().chain([(50, A, WatchItem::Missed)]));
        assert!(!all.vouches_for("x", at(40), at(60)));
        assert!(all.vouches_for("x", at(50), at(60)));
    }

    #[test]
    fn changes_are_forgotten_when_nothing_can_be_as_old() {
        let listening = Listening::new(Duration::from_secs(5));
        listening.changed("x", Change::Other, at(1));
        listening.changed("x", Change::Other, at(4_000));
        listening.changed("y", Change::Other, at(5_500));
        let known = |handle: &str| listening.changes.read().unwrap().last.contains_key(handle);
        assert!(known("x"), "its second change is young");
        listening.changed("z", Change::Other, at(9_500));
        assert!(!known("x") && known("y"));
    }

    #[test]
    fn more_changes_than_are_remembered_spoil_everything() {
        let all = heard(both());
        for number in 0..=CHANGES_MAX {
            all.changed(&number.to_string(), Change::Other, at(40));
        }
        assert!(!all.vouches_for("never changed", at(39), at(50)));
        assert!(all.vouches_for("never changed", at(41), at(50)));
    }
}
