//! The refresh protocol as a model; the checker visits every reachable state. The model has two replicas, a
//! roll, an ending, a store with compare-and-swap, and a lease that may expire early. The provider rotates
//! refresh tokens and detects reuse. Its keys may lag, so an answer stays pending until it can be validated.
//! Replicas may pause anywhere, and one may die.
//!
//! Each test removes one safeguard, and the checker has to find the failure.

use stateright::{Checker, Model, Property};

const REPLICAS: usize = 2;

/// How often each replica finds the token expired.
const REFRESHES: u8 = 2;

/// How often a lease may expire under its holder.
const LAPSES: u8 = 2;

/// How often an answer's key may be unknown.
const LAGS: u8 = 2;

/// The stored state of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Record {
    version: u8,
    generation: u8,
    refresh_token: u8,
    needs_sign_in: bool,
    /// An answer is pending.
    waits: bool,
}

/// The provider's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Answer {
    Rotated(u8),
    /// New tokens with a key that is not known yet.
    Pending(u8),
    /// The pending tokens are good.
    Validated,
    Refused,
}

/// The progress of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// No caller waits.
    Idle,
    /// Callers saw these tokens expire.
    Wanting { seen: Record },
    /// It has the lease.
    Leased { seen: Record },
    /// It has read the session under the lease.
    Decided { read: Record },
    /// An answer is pending; the replica looks for its key.
    Validating { read: Record },
    /// The grant was sent.
    Asking { read: Record },
    /// The answer arrived; `read` is the expected stored state.
    Answered {
        read: Record,
        generation: u8,
        answer: Answer,
    },
    /// Callers have their answer; the lease is not released yet.
    Said,
    /// The process is dead.
    Dead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Roll {
    Todo,
    Read(Record),
    Over,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    record: Option<Record>,
    lease: Option<usize>,
    replicas: [Step; REPLICAS],
    refreshes: [u8; REPLICAS],
    roll: Roll,
    /// The refresh token the provider accepts; none after it detected a reuse.
    provider_takes: Option<u8>,
    tokens_issued: u8,
    // Only the properties read these.
    lapses: u8,
    lags: u8,
    ended: bool,
    /// Grants sent for each generation.
    grants: [u8; 16],
    /// Outcomes saved for each generation.
    outcomes: [u8; 16],
    reused: bool,
    revived: bool,
    asked_while_one_waits: bool,
    shown_pending: bool,
    counted_late: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Want(usize),
    Acquire(usize),
    Look(usize),
    Ask(usize),
    Provide(usize),
    /// The provider answers with a key that is not known yet.
    ProvideEarly(usize),
    /// The key is known, still unknown, or known but not the token's.
    FindGood(usize),
    FindNothing(usize),
    FindBad(usize),
    Save(usize),
    Release(usize),
    Die(usize),
    Lapse,
    End,
    ReadToRoll,
    WriteRoll,
}

/// The safeguard left out of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    Nothing,
    /// Writes check neither the version nor that the session exists.
    CompareAndSwap,
    /// After a write conflict the outcome is written anyway.
    GenerationFence,
    /// A refusal does not change the generation.
    GenerationOfRefusals,
    /// Every replica may ask.
    Lease,
    /// The holder trusts what its callers read.
    SecondLook,
    /// An answer that cannot be validated is dropped.
    Storing,
    /// A pending answer counts as newer tokens.
    Validation,
}

struct Protocol {
    without: Without,
    may_die: bool,
}

impl Protocol {
    fn look(&self, state: &mut State, at: usize, seen: Record) {
        state.replicas[at] = match state.record {
            _ if self.without == Without::SecondLook => Step::Decided { read: seen },
            Some(read) if read.waits && self.without == Without::Validation => {
                state.shown_pending |= read.generation > seen.generation;
                Step::Said
            }
            Some(read) if read.waits => Step::Validating { read },
            Some(read) if !read.needs_sign_in && read.generation == seen.generation => Step::Decided { read },
            // Ended, refused earlier, or refreshed by another replica.
            Some(_) | None => Step::Said,
        };
    }

    fn provide(&self, state: &mut State, at: usize, read: Record, key_is_known: bool) {
        state.asked_while_one_waits |= read.waits;
        state.grants[usize::from(read.generation)] += 1;
        let answer = if state.provider_takes == Some(read.refresh_token) {
            state.tokens_issued += 1;
            state.provider_takes = Some(state.tokens_issued);
            if key_is_known {
                Answer::Rotated(state.tokens_issued)
            } else {
                Answer::Pending(state.tokens_issued)
            }
        } else {
            state.reused = true;
            state.provider_takes = None;
            Answer::Refused
        };
        if self.without == Without::Storing && matches!(answer, Answer::Pending(_)) {
            state.replicas[at] = Step::Said;
            return;
        }
        let generation = read.generation;
        state.replicas[at] = Step::Answered {
            read,
            generation,
            answer,
        };
    }

    fn save(&self, state: &mut State, at: usize, read: Record, generation: u8, answer: Answer) {
        let blind = self.without == Without::CompareAndSwap;
        match state.record {
            None if !blind => state.replicas[at] = Step::Said,
            Some(now) if !blind && now.version != read.version => {
                // The session is read again. The outcome is dropped if another one was saved.
                let fenced = self.without != Without::GenerationFence && now.generation != generation;
                state.replicas[at] = if fenced {
                    Step::Said
                } else {
                    Step::Answered {
                        read: now,
                        generation,
                        answer,
                    }
                };
            }
            before => {
                state.outcomes[usize::from(generation)] += 1;
                let was_refused = before.is_some_and(|before| before.needs_sign_in);
                state.revived |= was_refused && answer != Answer::Refused;
                let keeps_generation =
                    self.without == Without::GenerationOfRefusals && answer == Answer::Refused;
                let record = Record {
                    version: read.version + 1,
                    generation: generation + u8::from(!keeps_generation),
                    waits: matches!(answer, Answer::Pending(_)),
                    ..read
                };
                state.counted_late |= answer == Answer::Validated;
                state.record = Some(match answer {
                    Answer::Validated => record,
                    Answer::Rotated(refresh_token) | Answer::Pending(refresh_token) => Record {
                        refresh_token,
                        ..record
                    },
                    Answer::Refused => Record {
                        needs_sign_in: true,
                        ..record
                    },
                });
                state.replicas[at] = Step::Said;
            }
        }
    }

    fn roll(state: &mut State, read: Record) {
        if state.record == Some(read) {
            let version = read.version + 1;
            state.record = Some(Record { version, ..read });
        }
        state.roll = Roll::Over;
    }
}

impl State {
    /// The rotated token, not saved yet, is in some process's memory.
    fn is_saving(&self) -> bool {
        self.replicas
            .iter()
            .any(|step| matches!(step, Step::Answered { .. }))
    }

    fn somebody_died(&self) -> bool {
        self.replicas.contains(&Step::Dead)
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Act;

    fn init_states(&self) -> Vec<State> {
        let record = Record {
            version: 1,
            generation: 1,
            refresh_token: 0,
            needs_sign_in: false,
            waits: false,
        };
        vec![State {
            record: Some(record),
            lease: None,
            replicas: [Step::Idle; REPLICAS],
            refreshes: [0; REPLICAS],
            roll: Roll::Todo,
            provider_takes: Some(0),
            tokens_issued: 0,
            lapses: 0,
            lags: 0,
            ended: false,
            grants: [0; 16],
            outcomes: [0; 16],
            reused: false,
            revived: false,
            asked_while_one_waits: false,
            shown_pending: false,
            counted_late: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Act>) {
        for (at, step) in state.replicas.iter().enumerate() {
            match step {
                Step::Idle if state.refreshes[at] < REFRESHES => actions.push(Act::Want(at)),
                Step::Wanting { .. } if state.lease.is_none() || self.without == Without::Lease => {
                    actions.push(Act::Acquire(at));
                }
                Step::Leased { .. } => actions.push(Act::Look(at)),
                Step::Decided { .. } => actions.push(Act::Ask(at)),
                Step::Asking { .. } => {
                    actions.push(Act::Provide(at));
                    if state.lags < LAGS {
                        actions.push(Act::ProvideEarly(at));
                    }
                }
                Step::Validating { .. } => {
                    actions.extend([Act::FindGood(at), Act::FindBad(at)]);
                    if state.lags < LAGS {
                        actions.push(Act::FindNothing(at));
                    }
                }
                Step::Answered { .. } => actions.push(Act::Save(at)),
                Step::Said => actions.push(Act::Release(at)),
                Step::Idle | Step::Wanting { .. } | Step::Dead => {}
            }
            let can_die = !matches!(step, Step::Idle | Step::Dead) && !state.somebody_died();
            if self.may_die && can_die {
                actions.push(Act::Die(at));
            }
        }
        if state.lease.is_some() && state.lapses < LAPSES {
            actions.push(Act::Lapse);
        }
        if !state.ended {
            actions.push(Act::End);
        }
        match state.roll {
            Roll::Todo => actions.push(Act::ReadToRoll),
            Roll::Read(_) => actions.push(Act::WriteRoll),
            Roll::Over => {}
        }
    }

    fn next_state(&self, before: &State, act: Act) -> Option<State> {
        let mut state = before.clone();
        match act {
            Act::Want(at) => {
                let seen = state.record.filter(|record| !record.needs_sign_in)?;
                state.refreshes[at] += 1;
                state.replicas[at] = Step::Wanting { seen };
            }
            Act::Acquire(at) => {
                let Step::Wanting { seen } = state.replicas[at] else {
                    return None;
                };
                state.lease = Some(at);
                state.replicas[at] = Step::Leased { seen };
            }
            Act::Look(at) => {
                let Step::Leased { seen } = state.replicas[at] else {
                    return None;
                };
                self.look(&mut state, at, seen);
            }
            Act::Ask(at) => {
                let Step::Decided { read } = state.replicas[at] else {
                    return None;
                };
                // The holder's own clock says when the lease may be over.
                let certain = state.lease == Some(at) || self.without == Without::Lease;
                state.replicas[at] = if certain {
                    Step::Asking { read }
                } else {
                    Step::Wanting { seen: read }
                };
            }
            Act::Provide(at) | Act::ProvideEarly(at) => {
                let Step::Asking { read } = state.replicas[at] else {
                    return None;
                };
                let key_is_known = matches!(act, Act::Provide(_));
                state.lags += u8::from(!key_is_known);
                self.provide(&mut state, at, read, key_is_known);
            }
            Act::FindGood(at) => {
                let Step::Validating { read } = state.replicas[at] else {
                    return None;
                };
                state.replicas[at] = Step::Answered {
                    read,
                    generation: read.generation,
                    answer: Answer::Validated,
                };
            }
            Act::FindNothing(at) => {
                state.lags += 1;
                state.replicas[at] = Step::Said;
            }
            Act::FindBad(at) => {
                // Another user's tokens: the session ends.
                state.ended = true;
                state.record = None;
                state.replicas[at] = Step::Said;
            }
            Act::Save(at) => {
                let Step::Answered {
                    read,
                    generation,
                    answer,
                } = state.replicas[at]
                else {
                    return None;
                };
                self.save(&mut state, at, read, generation, answer);
            }
            Act::Release(at) => {
                state.replicas[at] = Step::Idle;
                state.lease = state.lease.filter(|holder| *holder != at);
            }
            Act::Die(at) => state.replicas[at] = Step::Dead,
            Act::Lapse => {
                state.lapses += 1;
                state.lease = None;
            }
            Act::End => {
                state.ended = true;
                state.record = None;
            }
            Act::ReadToRoll => {
                state.roll = state.record.map_or(Roll::Over, Roll::Read);
            }
            Act::WriteRoll => {
                let Roll::Read(read) = state.roll else { return None };
                Self::roll(&mut state, read);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("an ended session stays ended", |_, state: &State| {
                !state.ended || state.record.is_none()
            }),
            Property::always("one outcome is saved for each generation", |_, state: &State| {
                state.outcomes.iter().all(|outcomes| *outcomes <= 1)
            }),
            Property::always(
                "one grant for each generation while leases hold",
                |_, state: &State| {
                    state.lapses > 0 || (!state.reused && state.grants.iter().all(|grants| *grants <= 1))
                },
            ),
            Property::always(
                "no rotated token is lost while leases hold and nobody dies",
                |_, state: &State| {
                    let settled = !state.is_saving() && state.lapses == 0 && !state.somebody_died();
                    let kept = |record: Record| Some(record.refresh_token) == state.provider_takes;
                    !settled || state.record.is_none_or(kept)
                },
            ),
            Property::always(
                "nobody is refused while leases hold and nobody dies",
                |_, state: &State| {
                    let excused = state.lapses > 0 || state.somebody_died();
                    excused || !state.record.is_some_and(|record| record.needs_sign_in)
                },
            ),
            Property::always("what needs a sign-in is not revived", |_, state: &State| {
                !state.revived
            }),
            Property::always(
                "nothing is asked for while an answer is pending",
                |_, state: &State| state.lapses > 0 || !state.asked_while_one_waits,
            ),
            Property::always("nobody is shown what is pending", |_, state: &State| {
                !state.shown_pending
            }),
            Property::sometimes("an answer that waited counts in the end", |_, state: &State| {
                state.counted_late && state.record.is_some_and(|record| !record.waits)
            }),
            Property::sometimes("two refreshes succeed", |_, state: &State| {
                state
                    .record
                    .is_some_and(|record| record.generation == 3 && !record.needs_sign_in)
            }),
            Property::sometimes("a late holder meets the other's outcome", |_, state: &State| {
                state.lapses > 0 && state.is_saving() && state.outcomes[1] == 1
            }),
        ]
    }
}

fn explore(without: Without, may_die: bool) -> impl Checker<Protocol> {
    let protocol = Protocol { without, may_die };
    protocol.checker().spawn_bfs().join()
}

/// Without this safeguard, the protocol violates the property.
fn is_caught(without: Without, property: &'static str) {
    let checked = explore(without, false);
    let found = checked.discovery(property);
    assert!(found.is_some(), "nobody noticed that {without:?} was left out");
}

#[test]
fn the_protocol_holds_in_every_state() {
    let checked = explore(Without::Nothing, false);
    println!("{} states", checked.unique_state_count());
    checked.assert_properties();
}

#[test]
fn the_protocol_holds_in_every_state_when_a_replica_may_die() {
    let checked = explore(Without::Nothing, true);
    println!("{} states", checked.unique_state_count());
    checked.assert_properties();
}

#[test]
fn without_compare_and_swap_an_ended_session_comes_back() {
    is_caught(Without::CompareAndSwap, "an ended session stays ended");
}

#[test]
fn without_the_generation_two_outcomes_are_saved() {
    is_caught(
        Without::GenerationFence,
        "one outcome is saved for each generation",
    );
}

#[test]
fn without_a_generation_for_refusals_a_late_answer_revives_the_session() {
    is_caught(
        Without::GenerationOfRefusals,
        "what needs a sign-in is not revived",
    );
}

#[test]
fn without_a_lease_two_replicas_ask() {
    is_caught(Without::Lease, "one grant for each generation while leases hold");
}

#[test]
fn without_the_second_look_under_the_lease_a_used_token_is_sent() {
    is_caught(
        Without::SecondLook,
        "one grant for each generation while leases hold",
    );
}

#[test]
fn without_storing_pending_answers_a_rotated_token_is_lost() {
    is_caught(
        Without::Storing,
        "no rotated token is lost while leases hold and nobody dies",
    );
}

#[test]
fn without_waiting_for_the_validation_pending_tokens_are_shown() {
    is_caught(Without::Validation, "nobody is shown what is pending");
}
