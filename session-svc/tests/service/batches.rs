//! BatchGetSessions: each result equals GetSession's answer; roll_due says if RollSession would write.

use session_proto::error::{metadata_of, reason_of};
use session_proto::v1::batch_get_sessions_response::result::Outcome;
use session_proto::v1::{self, ErrorReason};
use session_svc::sessions::SessionLimits;

use crate::failing_store::{Fails, failing};
use crate::support::*;

fn by_handle(handle: &str) -> v1::GetSessionRequest {
    v1::GetSessionRequest {
        by: Some(v1::get_session_request::By::Handle(handle.to_owned())),
    }
}

fn batch(requests: &[v1::GetSessionRequest]) -> v1::BatchGetSessionsRequest {
    v1::BatchGetSessionsRequest {
        requests: requests.to_vec(),
    }
}

async fn outcomes(client: &mut Client, requests: &[v1::GetSessionRequest]) -> Vec<Outcome> {
    let answer = client.batch_get_sessions(batch(requests)).await.unwrap();
    let results = answer.into_inner().results;
    results
        .into_iter()
        .map(|result| result.outcome.unwrap())
        .collect()
}

#[tokio::test]
async fn each_result_is_what_get_session_answers_in_the_order_of_the_requests() {
    let (mut world, id) = signed_in().await;
    let other = world.create(alice()).await.session_id;
    let session = world.one.get_session(by_id(&id)).await.unwrap().into_inner();
    let handle = session.session.unwrap().handle;
    let nobody = "0".repeat(32);
    let requests = [
        by_id(&id),
        by_id(&nobody),
        by_handle(&handle),
        by_id("no id"),
        by_handle("X"),
        v1::GetSessionRequest { by: None },
        by_id(&other),
        by_id(&id),
    ];
    let reported = outcomes(&mut world.two, &requests).await;
    assert_eq!(reported.len(), requests.len());
    for (outcome, request) in reported.into_iter().zip(requests) {
        match (outcome, world.one.get_session(request).await) {
            (Outcome::Response(reported), Ok(answer)) => assert_eq!(reported, answer.into_inner()),
            (Outcome::Failure(reported), Err(status)) => {
                assert_eq!(Some(reported.reason()), reason_of(&status));
                assert_eq!(reported.message, status.message());
                assert_eq!(reported.metadata, metadata_of(&status));
            }
            (reported, answer) => panic!("{reported:?} and not {answer:?}"),
        }
    }
}

#[tokio::test]
async fn a_batch_names_one_to_fifty_sessions() {
    let (mut world, id) = signed_in().await;
    assert_eq!(outcomes(&mut world.one, &vec![by_id(&id); 50]).await.len(), 50);
    for count in [0, 51] {
        let refused = world
            .one
            .batch_get_sessions(batch(&vec![by_id(&id); count]))
            .await;
        assert_eq!(field(refused), "requests", "{count}");
    }
}

#[tokio::test]
async fn a_batch_fails_as_a_whole_when_the_store_does() {
    let (world, id) = signed_in().await;
    let (store, mut client) = failing(&world).await;
    store.fails(Fails::Load(0));
    let failed = client.batch_get_sessions(batch(&[by_id(&id), by_id(&id)])).await;
    assert_eq!(reason(failed), ErrorReason::ErrStoreUnavailable);
    outcomes(&mut client, &[by_id(&id)]).await;
}

#[tokio::test]
async fn what_finds_no_room_in_the_answer_is_told_so() {
    let world = world().await;
    let roomy = SessionLimits {
        max_bytes: 65_536,
        ..limits()
    };
    let mut client = world.limited(roomy).await;
    let user = serde_json::json!({"sub": "alice", "about": "a".repeat(60_000)});
    let large = v1::CreateSessionRequest {
        user: claims(user),
        ..alice()
    };
    let id = client
        .create_session(large)
        .await
        .unwrap()
        .into_inner()
        .session_id;
    let reported = outcomes(&mut client, &vec![by_id(&id); 50]).await;
    let read = reported
        .iter()
        .take_while(|reported| matches!(reported, Outcome::Response(_)))
        .count();
    assert!((15..50).contains(&read), "{read}");
    for outcome in &reported[read..] {
        match outcome {
            Outcome::Failure(failure) => assert_eq!(failure.reason(), ErrorReason::ErrOverloaded),
            Outcome::Response(_) => panic!("one behind it had room"),
        }
    }
}

#[tokio::test]
async fn rolling_is_due_when_it_would_extend_the_session_and_not_after() {
    let (mut world, id) = signed_in().await;
    for due in [false, true] {
        let read = world.one.get_session(by_id(&id)).await.unwrap().into_inner();
        assert_eq!(read.roll_due, due);
        let rolled = world.two.roll_session(roll(&id)).await.unwrap().into_inner();
        assert_eq!(rolled.rolled, due);
        world.clock.advance_ms(60_000);
    }
}

#[tokio::test]
async fn rolling_is_due_when_it_would_revalidate_the_session() {
    let (world, id) = signed_in().await;
    let revalidating = SessionLimits {
        revalidate_ms: 40_000,
        ..limits()
    };
    let mut client = world.limited(revalidating).await;
    let due = async |client: &mut Client| {
        client
            .get_session(by_id(&id))
            .await
            .unwrap()
            .into_inner()
            .roll_due
    };
    world.clock.advance_ms(30_000);
    assert!(!due(&mut client).await);
    world.clock.advance_ms(20_000);
    assert!(
        due(&mut client).await,
        "the session itself is not to be extended yet"
    );
}
