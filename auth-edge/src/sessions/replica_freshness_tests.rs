//! Which heartbeats count as current.

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

fn lost_item() -> WatchItem {
    WatchItem::Lost(SessionError {
        reason: ErrorReason::ErrSessionServiceUnavailable,
        message: "gone".to_owned(),
        metadata: HashMap::new(),
    })
}

fn freshness_after(items: impl IntoIterator<Item = (u64, &'static str, WatchItem)>) -> ReplicaFreshness {
    let freshness = ReplicaFreshness::new(Duration::from_secs(5));
    let mut replicas = Replicas(HashMap::new());
    for (ms, id, item) in items {
        let tells = matches!(&item, WatchItem::Connected) || item == beat();
        replicas.take(&freshness, id, item, at(ms));
        if tells {
            replicas.take(&freshness, id, current_item(&freshness, ms), at(ms));
        }
    }
    freshness
}

fn current_item(freshness: &ReplicaFreshness, ms: u64) -> WatchItem {
    WatchItem::Current(freshness.began + Duration::from_millis(ms))
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
    assert!(!freshness_after([]).is_complete(at(1)));
    let one = freshness_after(both().into_iter().take(3));
    assert!(!one.is_complete(at(21)));
    let all = freshness_after(both());
    assert!(all.is_complete(at(31)));
    assert!(
        !all.is_unchanged("x", at(29), at(31)),
        "read before the last was heard"
    );
    assert!(all.is_unchanged("x", at(30), at(31)));
}

#[test]
fn a_change_spoils_what_was_read_before_it_and_nothing_else() {
    for kind in [Kind::Ended, Kind::Changed, Kind::Refreshed, Kind::Rolled] {
        let all = freshness_after(both().into_iter().chain([(50, A, event(kind, "x"))]));
        assert!(!all.is_unchanged("x", at(40), at(60)));
        assert!(!all.is_unchanged("x", at(50), at(60)), "at the same moment");
        assert!(all.is_unchanged("x", at(51), at(60)));
        assert!(all.is_unchanged("y", at(40), at(60)));
    }
}

#[test]
fn one_replica_that_is_not_heard_spoils_everything() {
    let mut items = both();
    items.push((40, B, lost_item()));
    items.push((50, A, beat()));
    assert!(!freshness_after(items.clone()).is_complete(at(51)));
    items.push((60, B, WatchItem::Connected));
    let again = freshness_after(items.clone());
    assert!(
        !again.is_unchanged("x", at(45), at(61)),
        "read while it was not heard"
    );
    assert!(again.is_unchanged("x", at(60), at(61)));
    items.pop();
    items.push((60, B, WatchItem::Gone));
    assert!(
        freshness_after(items).is_complete(at(61)),
        "one that is gone need not be heard"
    );
}

#[test]
fn silence_spoils_everything_also_when_no_stream_breaks() {
    let silence = u64::try_from(SILENCE_MAX.as_millis()).unwrap();
    let mut items = both();
    items.push((100, B, beat()));
    let all = freshness_after(items.clone());
    assert!(all.is_complete(at(20 + silence - 1)));
    assert!(
        !all.is_complete(at(20 + silence)),
        "the other one has been silent since"
    );
    items.push((30 + silence, A, beat()));
    let again = freshness_after(items);
    assert!(
        !again.is_unchanged("x", at(50), at(31 + silence)),
        "read before the silence"
    );
    assert!(again.is_unchanged("x", at(30 + silence), at(31 + silence)));
}

#[test]
fn news_counts_from_the_moment_it_is_told_up_to_however_late_it_comes() {
    let silence = u64::try_from(SILENCE_MAX.as_millis()).unwrap();
    let freshness = ReplicaFreshness::new(Duration::from_secs(5));
    let mut replicas = Replicas(HashMap::new());
    for (at_ms, item) in [
        (10, WatchItem::Found),
        (20, WatchItem::Connected),
        (20, current_item(&freshness, 20)),
        // Heartbeats without a gap, each one delayed more.
        (320, current_item(&freshness, 220)),
        (620, current_item(&freshness, 320)),
    ] {
        replicas.take(&freshness, A, item, at(at_ms));
    }
    assert!(freshness.is_complete(at(320 + silence - 1)));
    assert!(!freshness.is_complete(at(320 + silence)));
    replicas.take(
        &freshness,
        A,
        current_item(&freshness, 1_000),
        at(1_000 + silence),
    );
    assert!(
        !freshness.is_complete(at(1_000 + silence)),
        "it comes too late to count"
    );
}

#[test]
fn what_may_have_been_missed_spoils_what_was_read_before() {
    let all = freshness_after(both().into_iter().chain([(50, A, WatchItem::Missed)]));
    assert!(!all.is_unchanged("x", at(40), at(60)));
    assert!(all.is_unchanged("x", at(50), at(60)));
}

#[test]
fn changes_are_forgotten_when_nothing_can_be_as_old() {
    let freshness = ReplicaFreshness::new(Duration::from_secs(5));
    freshness.record_change("x", at(1));
    freshness.record_change("x", at(4_000));
    freshness.record_change("y", at(5_500));
    let known = |handle: &str| freshness.changes.read().unwrap().contains_key(handle);
    freshness.forget_old(at(5_500));
    assert!(known("x"), "its second change is young");
    freshness.forget_old(at(9_500));
    assert!(!known("x") && known("y"));
}

#[test]
fn more_changes_than_are_remembered_spoil_everything() {
    let all = freshness_after(both());
    for number in 0..=CHANGES_MAX {
        all.record_change(&number.to_string(), at(40));
    }
    assert!(!all.is_unchanged("never changed", at(39), at(50)));
    assert!(all.is_unchanged("never changed", at(41), at(50)));
}
