//! ReadSessions: a question over an open call is answered as the call it stands for.

use std::collections::BTreeMap;

use session_proto::error::{metadata_of, reason_of};
use session_proto::v1::{self, ErrorReason};
use tonic::Status;

use crate::failing_store::{Fails, failing};
use crate::questions::*;
use crate::support::*;

/// Questions of one call that are under way at once.
const AT_ONCE: usize = 1024;

fn by_handle(handle: &str) -> v1::GetSessionRequest {
    v1::GetSessionRequest {
        by: Some(v1::get_session_request::By::Handle(handle.to_owned())),
    }
}

async fn read(client: &mut Client, id: &str) -> v1::Session {
    let answer = client.get_session(by_id(id)).await.unwrap();
    *answer.into_inner().session.unwrap()
}

#[tokio::test]
async fn a_question_is_answered_as_the_call_it_stands_for() {
    let (mut world, id) = signed_in().await;
    let expected = read(&mut world.one, &id).await;
    let mut questions = Questions::open(&mut world.two).await;
    for get in [by_id(&id), by_handle(&expected.handle)] {
        let answer = questions.answer_to(of_get(1, get)).await;
        assert!(!answer.rolled);
        assert_eq!(session(answer), expected);
    }
    let answer = questions.answer_to(of_roll(2, roll(&id))).await;
    assert!(!answer.rolled, "no write is due");
    assert_eq!(session(answer), expected);
}

#[tokio::test]
async fn a_question_that_rolls_tells_whether_the_deadline_moved() {
    let (mut world, id) = signed_in().await;
    let before = read(&mut world.one, &id).await;
    let mut questions = Questions::open(&mut world.two).await;
    world.clock.advance_ms(60_000);
    let device = v1::Device {
        user_agent: "Firefox".to_owned(),
        address: "192.0.2.1".to_owned(),
        at: None,
    };
    let request = v1::RollSessionRequest {
        device: Some(device),
        ..roll(&id)
    };
    let answer = questions.answer_to(of_roll(1, request)).await;
    assert!(answer.rolled);
    let rolled = session(answer);
    assert_ne!(rolled.expires_at, before.expires_at);
    assert_eq!(rolled.last_seen_on.as_ref().unwrap().user_agent, "Firefox");
    assert_eq!(rolled, read(&mut world.one, &id).await);
    let again = world.one.roll_session(roll(&id)).await.unwrap().into_inner();
    assert!(!again.rolled, "the question has moved it");
    let answer = questions.answer_to(of_roll(2, roll(&id))).await;
    assert!(!answer.rolled);
    assert_eq!(session(answer), *again.session.unwrap());
}

#[tokio::test]
async fn every_answer_has_the_number_of_its_question() {
    let mut world = world().await;
    let mut expected = BTreeMap::new();
    let mut questions = Questions::open(&mut world.two).await;
    for number in [7, 2, u64::MAX, 1, 1_000] {
        let created = world.create(alice()).await;
        expected.insert(number, created.session.unwrap().handle);
        let question = match number % 2 {
            0 => of_get(number, by_id(&created.session_id)),
            _ => of_roll(number, roll(&created.session_id)),
        };
        questions.ask(question);
    }
    let mut told = BTreeMap::new();
    for _ in 0..expected.len() {
        let answer = questions.answer().await;
        told.insert(answer.number, session(answer).handle);
    }
    assert_eq!(told, expected);
}

/// What a failure says, as the status of a call of its own says it.
fn as_told(status: &Status) -> (ErrorReason, String, BTreeMap<String, String>) {
    let metadata = metadata_of(status).into_iter().collect();
    (reason_of(status).unwrap(), status.message().to_owned(), metadata)
}

#[tokio::test]
async fn a_failure_is_told_in_its_answer_as_a_call_of_its_own_tells_it_and_the_call_goes_on() {
    let (world, id) = signed_in().await;
    let (store, mut client) = failing(&world).await;
    let mut questions = Questions::open(&mut client).await;
    let nobody = "0".repeat(32);
    let unnamed = v1::GetSessionRequest { by: None };
    for (get, expected, field) in [
        (by_id(&nobody), ErrorReason::ErrMissingSession, None),
        (by_handle(&nobody), ErrorReason::ErrMissingSession, None),
        (
            by_id("no id"),
            ErrorReason::ErrInvalidArgument,
            Some("session_id"),
        ),
        (by_handle("X"), ErrorReason::ErrInvalidArgument, Some("handle")),
        (unnamed, ErrorReason::ErrInvalidArgument, Some("session_id")),
        (by_id(&id), ErrorReason::ErrStoreUnavailable, None),
    ] {
        let fails = match expected {
            ErrorReason::ErrStoreUnavailable => Fails::Load(0),
            _ => Fails::Nothing,
        };
        store.fails(fails);
        let failure = failure(questions.answer_to(of_get(1, get.clone())).await);
        assert_eq!(failure.reason(), expected, "{failure:?}");
        assert_eq!(failure.metadata.get("field").map(String::as_str), field);
        store.fails(fails);
        let status = client.get_session(get).await.unwrap_err();
        let told = (
            failure.reason(),
            failure.message,
            failure.metadata.into_iter().collect(),
        );
        assert_eq!(told, as_told(&status));
    }
    let malformed = failure(questions.answer_to(of_roll(2, roll("no id"))).await);
    assert_eq!(malformed.reason(), ErrorReason::ErrInvalidArgument);
    assert_eq!(malformed.metadata["field"], "session_id");
    let unknown = questions.answer_to(unknown(3)).await;
    assert_eq!(why(unknown), ErrorReason::ErrUnimplemented);
    assert_eq!(
        session(questions.answer_to(of_get(4, by_id(&id))).await).subject,
        "alice"
    );
}

#[tokio::test]
async fn a_slow_question_does_not_hold_up_the_one_behind_it() {
    let (world, id) = signed_in().await;
    let (store, mut client) = failing(&world).await;
    let mut questions = Questions::open(&mut client).await;
    store.holds(1);
    questions.ask(of_get(1, by_id(&id)));
    store.wait_for_held(1).await;
    session(questions.answer_to(of_get(2, by_id(&id))).await);
    store.lets_go();
    let slow = questions.answer().await;
    assert_eq!((slow.number, session(slow).subject.as_str()), (1, "alice"));
}

#[tokio::test]
async fn more_questions_than_are_under_way_at_once_wait_and_are_answered() {
    let (world, id) = signed_in().await;
    let (store, mut client) = failing(&world).await;
    let mut questions = Questions::open(&mut client).await;
    let last = u64::try_from(AT_ONCE).unwrap() + 1;
    store.holds(AT_ONCE);
    for number in 1..last {
        questions.ask(of_get(number, by_id(&id)));
    }
    store.wait_for_held(AT_ONCE).await;
    questions.ask(unknown(last));
    // A call on the same connection comes behind it.
    client.get_session(by_id(&id)).await.unwrap();
    store.lets_go();
    let first = questions.answer().await;
    assert_ne!(first.number, last, "one had to be answered first");
    let mut told = vec![first.number];
    for _ in 1..last {
        told.push(questions.answer().await.number);
    }
    told.sort_unstable();
    assert!(told.into_iter().eq(1..=last));
}

#[tokio::test]
async fn the_call_ends_well_when_there_are_no_more_questions() {
    let (mut world, id) = signed_in().await;
    let mut questions = Questions::open(&mut world.one).await;
    for number in 1..=3 {
        questions.ask(of_get(number, by_id(&id)));
    }
    questions.end();
    let mut told = Vec::new();
    for _ in 0..3 {
        let answer = questions.answer().await;
        told.push(answer.number);
        session(answer);
    }
    told.sort_unstable();
    assert_eq!(told, [1, 2, 3]);
    assert_eq!(questions.next().await.unwrap(), None);
    let mut unasked = Questions::open(&mut world.one).await;
    unasked.end();
    assert_eq!(unasked.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_question_that_is_under_way_at_the_end_of_the_questions_is_answered() {
    let (world, id) = signed_in().await;
    let (store, mut client) = failing(&world).await;
    let mut questions = Questions::open(&mut client).await;
    store.holds(1);
    questions.ask(of_get(1, by_id(&id)));
    questions.end();
    store.wait_for_held(1).await;
    store.lets_go();
    assert_eq!(session(questions.answer().await).subject, "alice");
    assert_eq!(questions.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_service_that_drains_sends_its_callers_elsewhere_and_answers_what_they_asked_before_they_heard() {
    let (world, id) = signed_in().await;
    let (store, mut client) = failing(&world).await;
    let mut questions = Questions::open(&mut client).await;
    store.holds(1);
    questions.ask(of_get(1, by_id(&id)));
    store.wait_for_held(1).await;
    world.drain();
    questions.is_sent_away().await;
    // As if it had been on its way.
    questions.ask(of_roll(2, roll(&id)));
    let behind = questions.answer().await;
    assert_eq!((behind.number, session(behind).subject.as_str()), (2, "alice"));
    questions.end();
    store.lets_go();
    let before = questions.answer().await;
    assert_eq!((before.number, session(before).subject.as_str()), (1, "alice"));
    assert_eq!(questions.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_caller_that_does_not_heed_a_drain_is_answered_for_a_moment_and_its_call_ends_well() {
    let (world, id) = signed_in().await;
    let (store, mut client) = failing(&world).await;
    let mut questions = Questions::open(&mut client).await;
    let mut idle = Questions::open(&mut client).await;
    store.holds(1);
    questions.ask(of_get(1, by_id(&id)));
    store.wait_for_held(1).await;
    world.drain();
    for caller in [&mut questions, &mut idle] {
        caller.is_sent_away().await;
    }
    assert_eq!(idle.next().await.unwrap(), None, "nobody has ended it");
    store.lets_go();
    let taken = questions.answer().await;
    assert_eq!((taken.number, session(taken).subject.as_str()), (1, "alice"));
    assert_eq!(questions.next().await.unwrap(), None);
}
