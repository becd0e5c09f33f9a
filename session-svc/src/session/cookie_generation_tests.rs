//! Each way a generation can arrive, one at a time. The edge tests whole schedules.

use super::*;

const GRACE_MS: u64 = 60_000;
const BEGAN_MS: u64 = 1_000_000;
const LATER_MS: u64 = BEGAN_MS + 600_000;

fn id(byte: u8) -> GenerationId {
    vec![byte; ID_BYTES]
}

fn received_generation(byte: u8, parent: GenerationId) -> ReceivedGeneration {
    ReceivedGeneration { id: id(byte), parent }
}

const FIRST_ONE: ReceivedGeneration = ReceivedGeneration {
    id: FIRST,
    parent: FIRST,
};

fn first() -> CookieGeneration {
    CookieGeneration::first(BEGAN_MS)
}

fn first_use(judged: GenerationVerdict) -> CookieGeneration {
    match judged {
        GenerationVerdict::First(next) => next,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_that_was_given_for_the_one_that_counts_takes_its_place_when_it_is_used() {
    let counts = first();
    assert_eq!(
        counts.judge(&FIRST_ONE, LATER_MS, GRACE_MS),
        GenerationVerdict::Good
    );
    let next = first_use(counts.judge(&received_generation(1, FIRST), LATER_MS, GRACE_MS));
    let expected = CookieGeneration {
        id: id(1),
        parent: FIRST,
        since_ms: LATER_MS,
        settled: false,
    };
    assert_eq!(next, expected);
    assert_eq!(
        next.judge(&received_generation(1, FIRST), u64::MAX, GRACE_MS),
        GenerationVerdict::Good
    );
}

#[test]
fn the_one_before_is_good_for_the_grace_and_a_copy_after_it() {
    let next = first_use(first().judge(&received_generation(1, FIRST), LATER_MS, GRACE_MS));
    let last_ms = LATER_MS + GRACE_MS - 1;
    assert_eq!(next.judge(&FIRST_ONE, last_ms, GRACE_MS), GenerationVerdict::Good);
    assert_eq!(
        next.judge(&FIRST_ONE, last_ms + 1, GRACE_MS),
        GenerationVerdict::Copy
    );
}

#[test]
fn those_beside_it_are_good_for_the_grace_and_one_of_them_after_it() {
    let next = first_use(first().judge(&received_generation(1, FIRST), LATER_MS, GRACE_MS));
    let (two, three) = (received_generation(2, FIRST), received_generation(3, FIRST));
    let after_ms = LATER_MS + GRACE_MS;
    for beside in [&two, &three] {
        assert_eq!(
            next.judge(beside, after_ms - 1, GRACE_MS),
            GenerationVerdict::Good
        );
    }
    let kept = first_use(next.judge(&two, after_ms, GRACE_MS));
    assert_eq!((&kept.id, kept.settled, kept.since_ms), (&id(2), true, LATER_MS));
    assert_eq!(kept.judge(&two, after_ms, GRACE_MS), GenerationVerdict::Good);
    for copy in [received_generation(1, FIRST), three] {
        assert_eq!(
            kept.judge(&copy, after_ms, GRACE_MS),
            GenerationVerdict::Copy,
            "{copy:?}"
        );
    }
}

#[test]
fn what_is_older_or_was_given_for_nothing_known_is_a_copy() {
    let next = first_use(first().judge(&received_generation(1, FIRST), LATER_MS, GRACE_MS));
    let third_ms = LATER_MS + GRACE_MS;
    let third = first_use(next.judge(&received_generation(3, id(1)), third_ms, GRACE_MS));
    for copy in [
        FIRST_ONE,
        received_generation(2, FIRST),
        received_generation(5, id(9)),
    ] {
        assert_eq!(
            third.judge(&copy, third_ms + 1, GRACE_MS),
            GenerationVerdict::Copy,
            "{copy:?}"
        );
    }
}

#[test]
fn one_that_an_edge_whose_clock_is_ahead_gives_too_early_counts_after_the_grace() {
    let next = first_use(first().judge(&received_generation(1, FIRST), LATER_MS, GRACE_MS));
    let early = received_generation(2, id(1));
    let last_ms = LATER_MS + GRACE_MS - 1;
    assert_eq!(next.judge(&early, last_ms, GRACE_MS), GenerationVerdict::Good);
    assert_eq!(next.judge(&FIRST_ONE, last_ms, GRACE_MS), GenerationVerdict::Good);
    let counts = first_use(next.judge(&early, last_ms + 1, GRACE_MS));
    assert_eq!((counts.id, counts.since_ms), (id(2), last_ms + 1));
}
