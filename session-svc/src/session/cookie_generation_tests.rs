//! Each way a generation can come, one at a time; whole schedules are the edge's to try, which gives them.

use super::*;

const GRACE_MS: u64 = 60_000;
const BEGAN_MS: u64 = 1_000_000;
const LATER_MS: u64 = BEGAN_MS + 600_000;

fn id(byte: u8) -> GenerationId {
    [byte; ID_BYTES]
}

fn shown(byte: u8, parent: GenerationId, issued_at_ms: u64) -> ShownGeneration {
    ShownGeneration {
        id: id(byte),
        parent,
        issued_at_ms,
    }
}

const FIRST_ONE: ShownGeneration = ShownGeneration {
    id: FIRST,
    parent: FIRST,
    issued_at_ms: 0,
};

fn first() -> CookieGeneration {
    CookieGeneration::first(BEGAN_MS)
}

fn taken(judged: Judged) -> CookieGeneration {
    match judged {
        Judged::First(next) => next,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_that_was_given_for_the_one_that_counts_takes_its_place_when_it_is_used() {
    let counts = first();
    assert_eq!(counts.judge(&FIRST_ONE, LATER_MS, GRACE_MS), Judged::Good);
    let next = taken(counts.judge(&shown(1, FIRST, LATER_MS), LATER_MS, GRACE_MS));
    let expected = CookieGeneration {
        id: id(1),
        parent: FIRST,
        since_ms: LATER_MS,
        settled: false,
    };
    assert_eq!(next, expected);
    assert_eq!(
        next.judge(&shown(1, FIRST, LATER_MS), u64::MAX, GRACE_MS),
        Judged::Good
    );
}

#[test]
fn the_one_before_is_good_for_the_grace_and_a_copy_after_it() {
    let next = taken(first().judge(&shown(1, FIRST, LATER_MS), LATER_MS, GRACE_MS));
    let last_ms = LATER_MS + GRACE_MS - 1;
    assert_eq!(next.judge(&FIRST_ONE, last_ms, GRACE_MS), Judged::Good);
    assert_eq!(next.judge(&FIRST_ONE, last_ms + 1, GRACE_MS), Judged::Copy);
}

#[test]
fn those_beside_it_are_good_for_the_grace_and_one_of_them_after_it() {
    let next = taken(first().judge(&shown(1, FIRST, LATER_MS), LATER_MS, GRACE_MS));
    let (two, three) = (shown(2, FIRST, LATER_MS + 1), shown(3, FIRST, LATER_MS + 2));
    let after_ms = LATER_MS + GRACE_MS;
    for beside in [two, three] {
        assert_eq!(next.judge(&beside, after_ms - 1, GRACE_MS), Judged::Good);
    }
    let kept = taken(next.judge(&two, after_ms, GRACE_MS));
    assert_eq!((kept.id, kept.settled, kept.since_ms), (id(2), true, LATER_MS));
    assert_eq!(kept.judge(&two, after_ms, GRACE_MS), Judged::Good);
    for copy in [shown(1, FIRST, LATER_MS), three] {
        assert_eq!(kept.judge(&copy, after_ms, GRACE_MS), Judged::Copy, "{copy:?}");
    }
}

#[test]
fn what_is_older_or_was_given_too_late_or_for_nothing_known_is_a_copy() {
    let next = taken(first().judge(&shown(1, FIRST, LATER_MS), LATER_MS, GRACE_MS));
    let third = taken(next.judge(&shown(3, id(1), LATER_MS + 1), LATER_MS + 1, GRACE_MS));
    for copy in [
        FIRST_ONE,
        shown(2, FIRST, LATER_MS),
        shown(4, id(1), LATER_MS + 1 + GRACE_MS),
        shown(5, id(9), LATER_MS),
    ] {
        assert_eq!(
            third.judge(&copy, LATER_MS + 2, GRACE_MS),
            Judged::Copy,
            "{copy:?}"
        );
    }
}
