//! Endings by operators: in parts, at the same time, with a message, and their notes.

use serde_json::json;
use session_proto::timestamp::from_ms;
use session_proto::v1::session_filter::By;
use session_proto::v1::{self, Cause};

use super::support::*;
use crate::support::*;

fn named(subject: &str) -> v1::CreateSessionRequest {
    person(ISSUER, json!({ "sub": subject }), "", "192.0.2.7")
}

/// Ends until nothing is left. Returns how many sessions ended, and in how many calls.
async fn end_all_found(client: &mut Operators, request: &v1::EndFoundSessionsRequest) -> (u32, usize) {
    let (mut ended, mut calls) = (0, 0);
    loop {
        let answer = client.end_found_sessions(request.clone()).await.unwrap();
        let answer = answer.into_inner();
        ended += answer.ended_count;
        calls += 1;
        if answer.complete {
            return (ended, calls);
        }
    }
}

fn endings(subject: &str) -> v1::ListEndingsRequest {
    v1::ListEndingsRequest {
        operator: Some(operator()),
        issuer: ISSUER.to_owned(),
        subject: subject.to_owned(),
    }
}

#[tokio::test]
async fn all_sessions_of_a_provider_end_in_parts_but_the_excepted_one() {
    let (world, [mut one, mut two]) = searchable().await;
    let mut sessions = fill(&world, ISSUER, 2_500).await;
    let kept = sessions.swap_remove(1_234);
    let elsewhere = v1::SessionFilter {
        issuer: OTHER_ISSUER.to_owned(),
        ..filter(By::Everyone(true))
    };
    let mut other = named("person-0");
    other.issuer = OTHER_ISSUER.to_owned();
    let mut creating = world.one.clone();
    creating.create_session(other).await.unwrap();
    let request = v1::EndFoundSessionsRequest {
        except_handle: kept.clone(),
        ..end_found(By::Everyone(true))
    };
    let (ended, calls) = end_all_found(&mut one, &request).await;
    assert_eq!(ended, 2_499);
    assert!(calls > 1, "a call is bounded");
    assert_eq!(handles(&mut two, filter(By::Everyone(true))).await, [kept]);
    assert_eq!(
        handles(&mut two, elsewhere).await.len(),
        1,
        "another provider's stay"
    );
    assert_eq!(end_all_found(&mut one, &request).await, (0, 1), "repeated");
}

#[tokio::test]
async fn two_operators_who_end_the_same_at_once_both_succeed_and_their_counts_add_up() {
    let (world, [mut one, mut two]) = searchable().await;
    fill(&world, ISSUER, 300).await;
    let request = end_found(By::Everyone(true));
    let ended = tokio::join!(
        end_all_found(&mut one, &request),
        end_all_found(&mut two, &request)
    );
    assert_eq!(ended.0.0 + ended.1.0, 300);
    assert!(handles(&mut one, filter(By::Everyone(true))).await.is_empty());
}

#[tokio::test]
async fn an_ending_revokes_the_tokens_and_reaches_nobody_else() {
    let (mut world, [mut one, _]) = searchable().await;
    let mut first = named("ada");
    first.provider_sid = "sid-1".to_owned();
    let first = world.create(first).await.session.unwrap().handle;
    let mut second = named("ada");
    second.tokens.as_mut().unwrap().refresh_token = "refresh-of-the-second".to_owned();
    let second = world.create(second).await.session.unwrap().handle;
    let mut elsewhere = named("ada");
    elsewhere.issuer = OTHER_ISSUER.to_owned();
    let elsewhere = world.create(elsewhere).await.session.unwrap().handle;

    for (by, ended, left) in [
        (By::Handle(elsewhere), 0, vec![&second, &first]),
        (By::Handle("0".repeat(32)), 0, vec![&second, &first]),
        (By::ProviderSid("sid-1".to_owned()), 1, vec![&second]),
        (By::Handle(second.clone()), 1, vec![]),
        (By::Subject("ada".to_owned()), 0, vec![]),
    ] {
        let answer = one
            .end_found_sessions(end_found(by.clone()))
            .await
            .unwrap()
            .into_inner();
        assert_eq!((answer.ended_count, answer.complete), (ended, true), "{by:?}");
        let mut found = handles(&mut one, filter(By::Everyone(true))).await;
        let mut left: Vec<String> = left.into_iter().cloned().collect();
        found.sort();
        left.sort();
        assert_eq!(found, left, "{by:?}");
    }
    world.provider.wait_for_revoked("refresh-0").await;
    world.provider.wait_for_revoked("refresh-of-the-second").await;
}

#[tokio::test]
async fn a_message_is_shown_at_the_next_sign_in_of_the_person_and_never_again() {
    const TEXT: &str = "We ended your sessions: please change your password.";
    let (mut world, [mut one, _]) = searchable().await;
    world.create(named("ada")).await;
    world.create(named("bob")).await;
    let request = v1::EndFoundSessionsRequest {
        message_to_person: TEXT.to_owned(),
        ..end_found(By::Subject("ada".to_owned()))
    };
    world.clock.advance_ms(1_000);
    one.end_found_sessions(request).await.unwrap();
    world.clock.advance_ms(29 * 86_400_000);
    let notice = |created: v1::CreateSessionResponse| created.session.unwrap().operator_notice;
    assert_eq!(notice(world.create(named("bob")).await), None);
    let expected = v1::OperatorNotice {
        at: Some(from_ms(START_MS + 1_000)),
        text: TEXT.to_owned(),
    };
    let shown = world.create(named("ada")).await;
    let id = shown.session_id.clone();
    assert_eq!(notice(shown), Some(expected.clone()));
    let read = world.two.get_session(by_id(&id)).await.unwrap().into_inner();
    assert_eq!(read.session.unwrap().operator_notice, Some(expected));
    assert_eq!(notice(world.create(named("ada")).await), None, "once");
}

#[tokio::test]
async fn every_ending_leaves_a_note_for_thirty_days_with_its_operator_and_no_claim() {
    let (mut world, [mut one, mut two]) = searchable().await;
    let left = world.create(named("ada")).await;
    let ended = world.create(named("ada")).await.session.unwrap().handle;
    world.one.end_session(end(&left.session_id)).await.unwrap();
    world.clock.advance_ms(10);
    one.end_found_sessions(end_found(By::Handle(ended.clone())))
        .await
        .unwrap();
    let listed = two
        .list_endings(endings("ada"))
        .await
        .unwrap()
        .into_inner()
        .endings;
    assert_eq!(listed.len(), 2);
    let [last, first] = listed.as_slice() else {
        unreachable!()
    };
    assert_eq!((&last.handle, last.cause()), (&ended, Cause::Operator));
    assert_eq!(
        (last.operator.as_str(), last.purpose.as_str()),
        ("https://issuer.example olga", "ticket 4711")
    );
    assert_eq!(last.at, Some(from_ms(START_MS + 10)));
    assert_eq!(last.last_seen_on.as_ref().unwrap().address, "192.0.2.7");
    assert_eq!(
        (first.cause(), first.operator.as_str(), first.purpose.as_str()),
        (Cause::Logout, "", "")
    );
    let others = one
        .list_endings(endings("bob"))
        .await
        .unwrap()
        .into_inner()
        .endings;
    assert!(others.is_empty());
    world.clock.advance_ms(30 * 86_400_000);
    let expired = one
        .list_endings(endings("ada"))
        .await
        .unwrap()
        .into_inner()
        .endings;
    assert!(expired.is_empty());
}

#[tokio::test]
async fn a_list_of_endings_has_the_newest_hundred() {
    let (mut world, [mut one, _]) = searchable().await;
    for _ in 0..105 {
        world.clock.advance_ms(1);
        let id = world.create(named("ada")).await.session_id;
        world.one.end_session(end(&id)).await.unwrap();
    }
    let listed = one
        .list_endings(endings("ada"))
        .await
        .unwrap()
        .into_inner()
        .endings;
    let times: Vec<_> = listed.iter().map(|ending| ending.at).collect();
    assert_eq!(times.len(), 100);
    assert_eq!(times[0], Some(from_ms(START_MS + 105)));
    assert_eq!(times[99], Some(from_ms(START_MS + 6)));
}
