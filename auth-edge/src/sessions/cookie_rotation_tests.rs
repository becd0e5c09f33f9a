//! Schedules of requests: losses, delays, tabs, skewed clocks, a thief; with the real rules.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use proptest::prelude::*;
use session_svc::session::{CookieGeneration, GenerationVerdict, ReceivedGeneration};

use super::*;

const INTERVAL_SECS: u64 = 300;
const INTERVAL_MS: u64 = INTERVAL_SECS * 1_000;
const GRACE_MS: u64 = 60_000;
const BEGAN_MS: u64 = 1_800_000_000_000;
/// The longest transit of a request or an answer, without the time its head waits at the edge.
const WAY_MS: u64 = 15_000;
/// The longest time until an edge learns of a change.
const UNHEARD_MS: u64 = 1_000;
const EDGES: usize = 3;
const SCHEDULES: u32 = 3_000;

/// A request: the pause since the previous one, its delays, and its edge.
#[derive(Clone, Debug)]
struct Sent {
    by_thief: bool,
    wait_ms: u64,
    there_ms: u64,
    /// How long the upstream takes.
    held_ms: u64,
    back_ms: u64,
    is_lost: bool,
    edge: usize,
    unheard_ms: u64,
}

fn any_request(
    wait_ms: impl Strategy<Value = u64>,
    by_thief: impl Strategy<Value = bool>,
) -> impl Strategy<Value = Sent> {
    let way = || prop_oneof![4 => 0..300_u64, 1 => 0..WAY_MS];
    // A page, a report, an upload.
    let held = prop_oneof![16 => 0..300_u64, 2 => 0..2 * HELD_MS, 1 => 0..3 * INTERVAL_MS];
    let lost = prop::bool::weighted(0.12);
    (
        by_thief,
        wait_ms,
        way(),
        held,
        way(),
        lost,
        0..EDGES,
        0..UNHEARD_MS,
    )
        .prop_map(
            |(by_thief, wait_ms, there_ms, held_ms, back_ms, is_lost, edge, unheard_ms)| Sent {
                by_thief,
                wait_ms,
                there_ms,
                held_ms,
                back_ms,
                is_lost,
                edge,
                unheard_ms,
            },
        )
}

/// Next events, the soonest first.
#[derive(Debug)]
struct TimedEvent {
    at_ms: u64,
    what: ModelEvent,
}

#[derive(Debug)]
enum ModelEvent {
    Sends(usize),
    Arrives(usize, Option<Generation>),
    Answered { by_thief: bool, given: Generation },
}

impl PartialEq for TimedEvent {
    fn eq(&self, other: &Self) -> bool {
        self.at_ms == other.at_ms
    }
}
impl Eq for TimedEvent {}
impl PartialOrd for TimedEvent {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for TimedEvent {
    fn cmp(&self, other: &Self) -> Ordering {
        other.at_ms.cmp(&self.at_ms)
    }
}

/// One session with its browsers and edges.
struct RotationModel {
    /// The generations that were current, each with its start.
    counted: Vec<(u64, Option<CookieGeneration>)>,
    jars: [Option<Generation>; 2],
    /// How far the clock of each edge is ahead of the session service's.
    ahead_ms: [i64; EDGES],
    /// Whether the thief uses the cookies it is given.
    thief_uses_offers: bool,
    rotations: usize,
    copied_ms: u64,
    copied: [u8; ID_BYTES],
}

impl RotationModel {
    fn new() -> Self {
        Self {
            counted: vec![(BEGAN_MS, None)],
            jars: [None; 2],
            ahead_ms: [0; EDGES],
            thief_uses_offers: true,
            rotations: 0,
            copied_ms: u64::MAX,
            copied: [0; ID_BYTES],
        }
    }

    /// The session as an edge knows it that has received all changes before `at_ms`.
    fn session(&self, at_ms: u64) -> v1::Session {
        let known = self.counted.iter().rev().find(|(since_ms, _)| *since_ms <= at_ms);
        let generation = known.and_then(|(_, generation)| generation.as_ref());
        v1::Session {
            created_at: Some(timestamp::from_ms(BEGAN_MS)),
            cookie_generation: generation.map(session_svc::grpc::cookie_generation),
            ..v1::Session::default()
        }
    }

    /// An edge checks a request. Returns whether it counts, and the answer's generation.
    fn check_request(
        &mut self,
        sent: &Sent,
        shown: Option<Generation>,
        now_ms: u64,
    ) -> Result<Option<Generation>, Stolen> {
        let mut session = self.session(now_ms.saturating_sub(sent.unheard_ms));
        let edge_now_ms = now_ms.saturating_add_signed(self.ahead_ms[sent.edge]);
        if !CurrentGeneration::of(&session).accepts(shown, edge_now_ms) {
            let counts = self.counted.last().and_then(|(_, generation)| generation.clone());
            let counts = counts.unwrap_or_else(|| CookieGeneration::first(BEGAN_MS));
            let of_cookie = ReceivedGeneration {
                id: shown.map_or_else(Vec::new, |shown| read_id(&shown.id)),
                parent: shown.map_or_else(Vec::new, |shown| read_id(&shown.parent)),
            };
            match counts.judge(&of_cookie, now_ms, GRACE_MS) {
                GenerationVerdict::Good => {}
                GenerationVerdict::First(next) => {
                    self.counted.push((now_ms, Some(next)));
                    self.rotations += 1;
                }
                GenerationVerdict::Copy => return Err(Stolen),
            }
            session = self.session(now_ms);
        }
        let rotation = CookieRotation::every(INTERVAL_SECS);
        Ok(rotation.next(CurrentGeneration::of(&session), shown, edge_now_ms))
    }

    /// Runs a schedule. Returns when a theft was found.
    fn run(&mut self, schedule: &[Sent], copied_before: usize) -> Option<u64> {
        let mut happenings = BinaryHeap::new();
        let mut at_ms = BEGAN_MS;
        for (at, sent) in schedule.iter().enumerate() {
            at_ms += sent.wait_ms;
            happenings.push(TimedEvent {
                at_ms,
                what: ModelEvent::Sends(at),
            });
        }
        while let Some(TimedEvent { at_ms, what }) = happenings.pop() {
            match what {
                ModelEvent::Sends(at) => {
                    if at == copied_before {
                        self.jars[1] = self.jars[0];
                        self.copied_ms = at_ms;
                        self.copied = self.jars[0].map_or([0; ID_BYTES], |jar| jar.id);
                    }
                    let sent = &schedule[at];
                    happenings.push(TimedEvent {
                        at_ms: at_ms + sent.there_ms,
                        what: ModelEvent::Arrives(at, self.jars[usize::from(sent.by_thief)]),
                    });
                }
                ModelEvent::Arrives(at, shown) => {
                    let sent = &schedule[at];
                    let Ok(next) = self.check_request(sent, shown, at_ms) else {
                        return Some(at_ms);
                    };
                    let sent_ms = at_ms + sent.held_ms;
                    if let Some(given) = next.filter(|_| !sent.is_lost && sent_ms < at_ms + HELD_MS) {
                        happenings.push(TimedEvent {
                            at_ms: sent_ms + sent.back_ms,
                            what: ModelEvent::Answered {
                                by_thief: sent.by_thief,
                                given,
                            },
                        });
                    }
                }
                ModelEvent::Answered { by_thief: true, .. } if !self.thief_uses_offers => {}
                ModelEvent::Answered { by_thief, given } => self.jars[usize::from(by_thief)] = Some(given),
            }
        }
        None
    }
}

/// A copy was used.
#[derive(Debug)]
struct Stolen;

/// Short pauses, as between tabs and images of a page; longer ones; or a rest.
fn any_wait() -> impl Strategy<Value = u64> {
    prop_oneof![
        5 => 0..2_000_u64,
        3 => 0..60_000_u64,
        2 => 0..2 * INTERVAL_MS,
        1 => 0..100 * INTERVAL_MS,
    ]
}

/// The largest clock skew between an edge and the session service: more than an interval and a grace.
const SKEW_MS: i64 = 900_000;

/// The pause between requests of an active user.
const OFTEN_MS: u64 = 20_000;

proptest! {
    #![proptest_config(ProptestConfig { cases: SCHEDULES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nobody_is_taken_for_a_thief(
        schedule in prop::collection::vec(any_request(any_wait(), Just(false)), 1..40),
        ahead_ms in prop::array::uniform3(prop_oneof![2 => Just(0), 1 => -SKEW_MS..SKEW_MS]),
    ) {
        let mut world = RotationModel { ahead_ms, ..RotationModel::new() };
        prop_assert_eq!(world.run(&schedule, usize::MAX), None);
    }

    #[test]
    fn every_theft_is_found_within_one_rotation(
        before in prop::collection::vec(any_request(any_wait(), Just(false)), 1..12),
        after in prop::collection::vec((any_request(0..OFTEN_MS, Just(false)), any_request(0..OFTEN_MS, Just(true)), any::<bool>()), 60..61),
        thief_uses_offers: bool,
    ) {
        let copied_before = before.len();
        let both = after.into_iter().flat_map(|(own, thief, swapped)| if swapped { [thief, own] } else { [own, thief] });
        // Both hold the only cookie, and no earlier request is in transit.
        let schedule: Vec<Sent> = before.into_iter().chain(both.enumerate().map(|(at, mut sent)| {
            sent.wait_ms += if at == 0 { 2 * WAY_MS + HELD_MS } else { OFTEN_MS / 2 };
            sent
        })).collect();
        let mut world = RotationModel { thief_uses_offers, ..RotationModel::new() };
        let found_ms = world.run(&schedule, copied_before);
        // The time depends on lost answers; the schedules without losses bound it.
        prop_assert!(found_ms.is_some(), "not found");
        // The copied cookie may not have been used yet.
        let is_rotation = |one: &CookieGeneration| !one.settled && one.id != world.copied;
        let since = world.counted.iter().filter(|(since_ms, _)| *since_ms >= world.copied_ms);
        let rotations = since.filter(|(_, generation)| generation.as_ref().is_some_and(is_rotation)).count();
        prop_assert!(rotations <= 1, "{:?}", world.counted);
    }
}

/// A request on a line without delays.
const CALM: Sent = Sent {
    by_thief: false,
    wait_ms: OFTEN_MS,
    there_ms: 10,
    held_ms: 0,
    back_ms: 10,
    is_lost: false,
    edge: 0,
    unheard_ms: 0,
};

#[test]
fn a_thief_that_takes_every_offer_and_uses_none_is_found_at_any_rate() {
    for every_ms in [20, 500, 9_000, OFTEN_MS] {
        let thief = Sent {
            by_thief: true,
            wait_ms: every_ms,
            ..CALM
        };
        let owner = Sent { wait_ms: 0, ..CALM };
        let round = std::iter::repeat_n(thief, usize::try_from(OFTEN_MS / every_ms).unwrap()).chain([owner]);
        let rounds = usize::try_from((2 * INTERVAL_MS + GRACE_MS) / OFTEN_MS).unwrap();
        let schedule: Vec<Sent> = (0..rounds).flat_map(|_| round.clone()).collect();
        let mut world = RotationModel {
            thief_uses_offers: false,
            ..RotationModel::new()
        };
        let found_ms = world
            .run(&schedule, 0)
            .unwrap_or_else(|| panic!("not found at {every_ms} ms"));
        assert!(
            found_ms - BEGAN_MS <= INTERVAL_MS + GRACE_MS + 3 * OFTEN_MS,
            "{every_ms}: {found_ms}"
        );
    }
}

#[test]
fn a_rotation_is_one_write_where_no_answer_is_overtaken() {
    let mut world = RotationModel::new();
    let minutes = 60;
    assert_eq!(world.run(&vec![CALM; minutes * 3], usize::MAX), None);
    let expected = minutes * 60_000 / usize::try_from(INTERVAL_MS + 20_000).unwrap();
    assert_eq!(world.rotations, expected);
}

#[test]
fn a_new_one_is_given_for_the_one_that_counts_alone() {
    let counts = v1::Session {
        cookie_generation: Some(v1::CookieGeneration {
            id: vec![1; ID_BYTES],
            since: Some(timestamp::from_ms(BEGAN_MS)),
            ..v1::CookieGeneration::default()
        }),
        ..v1::Session::default()
    };
    let shown = |byte| Generation {
        id: [byte; ID_BYTES],
        parent: [0; ID_BYTES],
    };
    let due_ms = BEGAN_MS + INTERVAL_MS;
    let next = |shown, now_ms| {
        let rotation = CookieRotation::every(INTERVAL_SECS);
        rotation.next(CurrentGeneration::of(&counts), shown, now_ms)
    };
    assert_eq!(next(Some(shown(1)), due_ms).unwrap().parent, [1; ID_BYTES]);
    assert_eq!(next(Some(shown(1)), due_ms - 1), None);
    for other in [None, Some(shown(2))] {
        assert_eq!(next(other, due_ms), None);
    }
}

#[test]
fn a_generation_comes_back_from_its_bytes() {
    let generation = Generation {
        id: [1, 2, 3, 4, 5, 6],
        parent: [7; ID_BYTES],
    };
    assert_eq!(Generation::from_bytes(&generation.to_bytes()), Some(generation));
}

/// A generation as the session service reads it: empty for the first one.
fn read_id(id: &[u8; ID_BYTES]) -> Vec<u8> {
    if *id == [0; ID_BYTES] {
        Vec::new()
    } else {
        id.to_vec()
    }
}
