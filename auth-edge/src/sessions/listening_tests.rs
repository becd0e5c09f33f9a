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

fn lost() -> WatchItem {
    WatchItem::Lost(SessionError {
        reason: ErrorReason::ErrSessionServiceUnavailable,
        message: "gone".to_owned(),
        metadata: HashMap::new(),
    })
}

fn heard(items: impl IntoIterator<Item = (u64, &'static str, WatchItem)>) -> Listening {
    let listening = Listening::new(Duration::from_secs(5));
    let mut replicas = Replicas(HashMap::new());
    for (ms, id, item) in items {
        let tells = matches!(&item, WatchItem::Connected) || item == beat();
        replicas.take(&listening, id, item, at(ms));
        if tells {
            replicas.take(&listening, id, told_until(&listening, ms), at(ms));
        }
    }
    listening
}

fn told_until(listening: &Listening, ms: u64) -> WatchItem {
    WatchItem::Current(listening.began + Duration::from_millis(ms))
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
fn news_counts_from_the_moment_it_is_told_up_to_however_late_it_comes() {
    let silence = u64::try_from(SILENCE_MAX.as_millis()).unwrap();
    let listening = Listening::new(Duration::from_secs(5));
    let mut replicas = Replicas(HashMap::new());
    for (at_ms, item) in [
        (10, WatchItem::Found),
        (20, WatchItem::Connected),
        (20, told_until(&listening, 20)),
        // Heartbeats without a gap, each one delayed more.
        (320, told_until(&listening, 220)),
        (620, told_until(&listening, 320)),
    ] {
        replicas.take(&listening, A, item, at(at_ms));
    }
    assert!(listening.is_complete(at(320 + silence - 1)));
    assert!(!listening.is_complete(at(320 + silence)));
    replicas.take(&listening, A, told_until(&listening, 1_000), at(1_000 + silence));
    assert!(
        !listening.is_complete(at(1_000 + silence)),
        "it comes too late to count"
    );
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
    listening.changed("x", at(1));
    listening.changed("x", at(4_000));
    listening.changed("y", at(5_500));
    let known = |handle: &str| listening.changes.read().unwrap().contains_key(handle);
    listening.forget_old(at(5_500));
    assert!(known("x"), "its second change is young");
    listening.forget_old(at(9_500));
    assert!(!known("x") && known("y"));
}

#[test]
fn more_changes_than_are_remembered_spoil_everything() {
    let all = heard(both());
    for number in 0..=CHANGES_MAX {
        all.changed(&number.to_string(), at(40));
    }
    assert!(!all.vouches_for("never changed", at(39), at(50)));
    assert!(all.vouches_for("never changed", at(41), at(50)));
}
