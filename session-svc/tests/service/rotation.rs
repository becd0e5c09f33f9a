//! RotateCookie: one write per rotation, at any replica. A copied cookie ends the session and is reported.

use chassis::clock::Clock as _;
use prost_types::Duration;
use session_proto::timestamp;
use session_proto::v1::session_event::Kind;
use session_proto::v1::{self, ErrorReason};
use tonic::{Response, Status};

use crate::support::*;

const GRACE_MS: u64 = 60_000;

/// A cookie use with generation `id` (six times), issued for `parent` (six times); 0 is the first.
pub(crate) fn used(session_id: &str, id: u8, parent: u8) -> v1::RotateCookieRequest {
    let bytes = |byte: u8| if byte == 0 { Vec::new() } else { vec![byte; 6] };
    v1::RotateCookieRequest {
        session_id: session_id.to_owned(),
        id: bytes(id),
        parent: bytes(parent),
        grace: Some(Duration {
            seconds: 60,
            nanos: 0,
        }),
    }
}

fn session(answer: Result<Response<v1::RotateCookieResponse>, Status>) -> v1::Session {
    answer.unwrap().into_inner().session.unwrap()
}

#[tokio::test]
async fn a_generation_that_is_used_counts_at_every_replica_and_costs_one_write() {
    let (mut world, id) = signed_in().await;
    let before = session(world.one.rotate_cookie(used(&id, 0, 0)).await);
    assert_eq!(
        (before.version, before.cookie_generation),
        (1, None),
        "nothing has rotated"
    );

    let rotated = session(world.one.rotate_cookie(used(&id, 1, 0)).await);
    let counts = rotated.cookie_generation.clone().unwrap();
    assert_eq!(
        (rotated.version, counts.id, counts.parent),
        (2, vec![1; 6], vec![])
    );
    for _ in 0..3 {
        let again = session(world.two.rotate_cookie(used(&id, 1, 0)).await);
        assert_eq!(again, rotated, "used again it changes nothing");
    }
    let late = session(world.two.rotate_cookie(used(&id, 0, 0)).await);
    assert_eq!(late, rotated, "the one before is good for a while");
    let read = world.two.get_session(by_id(&id)).await.unwrap().into_inner();
    assert_eq!(read.session.unwrap().cookie_generation, rotated.cookie_generation);
}

#[tokio::test]
async fn a_copy_ends_the_session_with_its_cause_and_the_next_sign_in_is_told_once() {
    let (mut world, id) = signed_in().await;
    let everything = v1::WatchSessionsRequest::default();
    let mut stream = world.two.watch_sessions(everything).await.unwrap().into_inner();
    session(world.one.rotate_cookie(used(&id, 1, 0)).await);
    world.clock.advance_ms(GRACE_MS);
    assert_eq!(
        reason(world.two.rotate_cookie(used(&id, 0, 0)).await),
        ErrorReason::ErrMissingSession
    );
    assert_eq!(
        reason(world.one.rotate_cookie(used(&id, 1, 0)).await),
        ErrorReason::ErrMissingSession,
        "for both browsers"
    );
    loop {
        let event = within(stream.message()).await.unwrap().unwrap();
        if event.kind() == Kind::Ended {
            assert_eq!(event.cause(), v1::Cause::Theft);
            break;
        }
    }
    let at_ms = world.clock.now_ms();
    let theft_at = |created: v1::CreateSessionResponse| created.session.unwrap().theft_at;
    let mut bob = alice();
    bob.user = claims(serde_json::json!({"sub": "bob"}));
    assert_eq!(
        theft_at(world.create(bob).await),
        None,
        "it is news to nobody else"
    );
    world.clock.advance_ms(29 * 86_400_000);
    let told = world.create(alice()).await;
    let told_id = told.session_id.clone();
    assert_eq!(theft_at(told), Some(timestamp::from_ms(at_ms)));
    let read = world.two.get_session(by_id(&told_id)).await.unwrap().into_inner();
    assert_eq!(read.session.unwrap().theft_at, Some(timestamp::from_ms(at_ms)));
    assert_eq!(theft_at(world.create(alice()).await), None, "once");
}

#[tokio::test]
async fn of_two_that_were_given_for_the_same_one_counts_in_the_end() {
    let (mut world, id) = signed_in().await;
    let first = session(world.one.rotate_cookie(used(&id, 1, 0)).await);
    let beside = session(world.two.rotate_cookie(used(&id, 2, 0)).await);
    assert_eq!(beside, first, "both are good for a while, without a write");
    world.clock.advance_ms(10 * GRACE_MS);
    let kept = session(world.two.rotate_cookie(used(&id, 2, 0)).await);
    let counts = kept.cookie_generation.unwrap();
    assert_eq!((counts.id, counts.settled, kept.version), (vec![2; 6], true, 3));
    assert_eq!(
        reason(world.one.rotate_cookie(used(&id, 1, 0)).await),
        ErrorReason::ErrMissingSession
    );
}

#[tokio::test]
async fn what_is_no_generation_is_refused_and_ends_nothing() {
    let (mut world, id) = signed_in().await;
    let good = used(&id, 1, 0);
    let with = |change: fn(&mut v1::RotateCookieRequest)| {
        let mut request = good.clone();
        change(&mut request);
        request
    };
    for (named, request) in [
        ("id", with(|request| request.id = vec![1; 5])),
        ("parent", with(|request| request.parent = vec![1; 7])),
        ("grace", with(|request| request.grace = None)),
        (
            "grace",
            with(|request| {
                request.grace = Some(Duration {
                    seconds: 601,
                    nanos: 0,
                })
            }),
        ),
        ("session_id", with(|request| request.session_id.clear())),
    ] {
        assert_eq!(field(world.one.rotate_cookie(request).await), named);
    }
    session(world.one.rotate_cookie(good).await);
}
