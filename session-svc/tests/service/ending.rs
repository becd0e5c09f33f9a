//! EndSession and EndSessions.

use session_proto::timestamp;
use session_proto::v1::{self, ErrorReason};

use crate::support::*;

#[tokio::test]
async fn ending_is_idempotent_and_the_hint_is_for_the_holder_alone() {
    let mut world = world().await;
    let (first, second) = (world.create(alice()).await, world.create(alice()).await);
    let ended = world
        .two
        .end_session(end(&first.session_id))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((ended.ended, ended.id_token_hint.as_str()), (true, "hint"));
    world.provider.wait_for_revoked("refresh-0").await;
    let again = world
        .one
        .end_session(end(&first.session_id))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((again.ended, again.id_token_hint.as_str()), (false, ""));
    let by = Some(v1::end_session_request::By::Handle(
        second.session.unwrap().handle,
    ));
    let ended = world
        .one
        .end_session(v1::EndSessionRequest {
            by,
            cause: v1::Cause::Operator.into(),
            ..Default::default()
        })
        .await
        .unwrap()
        .into_inner();
    assert_eq!((ended.ended, ended.id_token_hint.as_str()), (true, ""));
}

// conformance: B-121 B-143
#[tokio::test]
async fn sessions_end_by_person_by_provider_session_and_by_both() {
    let mut world = world().await;
    let (one, two) = (
        world.create(alice()).await,
        world
            .create(v1::CreateSessionRequest {
                provider_sid: "sid-2".to_owned(),
                ..alice()
            })
            .await,
    );
    assert_eq!(
        reason(world.one.end_sessions(end_all("bob", "sid-1")).await),
        ErrorReason::ErrInvalidArgument,
        "a provider session of somebody else ends nothing"
    );
    assert_eq!(
        world
            .one
            .end_sessions(end_all("alice", "sid-1"))
            .await
            .unwrap()
            .into_inner()
            .ended_count,
        1
    );
    assert_eq!(
        reason(world.one.get_session(by_id(&one.session_id)).await),
        ErrorReason::ErrMissingSession
    );
    let except = v1::EndSessionsRequest {
        except_handle: two.session.unwrap().handle,
        ..end_all("alice", "")
    };
    world.create(alice()).await;
    assert_eq!(
        world
            .one
            .end_sessions(except)
            .await
            .unwrap()
            .into_inner()
            .ended_count,
        1
    );
    world.one.get_session(by_id(&two.session_id)).await.unwrap();
    assert_eq!(
        world
            .one
            .end_sessions(end_all("", "sid-2"))
            .await
            .unwrap()
            .into_inner()
            .ended_count,
        1
    );
    let later = world
        .create(v1::CreateSessionRequest {
            provider_sid: "sid-2".to_owned(),
            ..alice()
        })
        .await;
    world
        .one
        .get_session(by_id(&later.session_id))
        .await
        .expect("a later login with the same sid works at once");
}

fn once(subject: &str, id: &str, request_id: &str) -> v1::EndSessionsRequest {
    v1::EndSessionsRequest {
        once_id: id.to_owned(),
        once_until: Some(timestamp::from_ms(START_MS + 420_000)),
        request_id: request_id.to_owned(),
        ..end_all(subject, "")
    }
}

const CALL: &str = "00000000-0000-4000-8000-000000000001";
const REPLAY: &str = "00000000-0000-4000-8000-000000000002";

/// Sealed by a replica that has a key this one lacks.
#[tokio::test]
async fn what_a_replica_cannot_read_ends_there_and_counts() {
    for sid in ["", "sid-1"] {
        for subject in ["", "alice"] {
            let mut world = world().await;
            let mut newer = world.another(lifetime(), "cd,ab").await;
            if (subject, sid) != ("", "") {
                // Its marks cannot be read either.
                newer.end_sessions(end_all(subject, sid)).await.unwrap();
                let late = v1::CreateSessionRequest {
                    tokens_received_at: Some(timestamp::from_ms(START_MS - 1)),
                    ..alice()
                };
                let late = world.one.create_session(late).await;
                assert_eq!(reason(late), ErrorReason::ErrMissingSession);
                world.clock.advance_ms(10);
            }
            let unreadable = newer.create_session(alice()).await.unwrap().into_inner();
            let readable = world.create(alice()).await;
            let hidden = world.one.get_session(by_id(&unreadable.session_id)).await;
            assert_eq!(reason(hidden), ErrorReason::ErrUnknownEncryptionKey);
            if (subject, sid) == ("", "") {
                let one = world.one.end_session(end(&unreadable.session_id)).await.unwrap();
                assert!(one.into_inner().ended, "by its secret");
                let other = newer.create_session(alice()).await.unwrap().into_inner();
                let by = Some(v1::end_session_request::By::Handle(
                    other.session.as_ref().unwrap().handle.clone(),
                ));
                let by_handle = v1::EndSessionRequest {
                    by,
                    ..Default::default()
                };
                assert!(
                    world.one.end_session(by_handle).await.unwrap().into_inner().ended,
                    "by its handle"
                );
                let gone = newer.get_session(by_id(&other.session_id)).await;
                assert_eq!(reason(gone), ErrorReason::ErrMissingSession);
            } else {
                let strangers = world.one.end_sessions(end_all("bob", "sid-1")).await;
                assert_eq!(reason(strangers), ErrorReason::ErrInvalidArgument);
                let except = v1::EndSessionsRequest {
                    except_handle: unreadable.session.as_ref().unwrap().handle.clone(),
                    ..end_all(subject, sid)
                };
                let ended = world.one.end_sessions(except).await.unwrap().into_inner();
                assert_eq!(ended.ended_count, 1, "{subject} {sid}");
                newer.get_session(by_id(&unreadable.session_id)).await.unwrap();
                let ended = world.one.end_sessions(end_all(subject, sid)).await.unwrap();
                assert_eq!(ended.into_inner().ended_count, 1, "{subject} {sid}");
                let gone = newer.get_session(by_id(&readable.session_id)).await;
                assert_eq!(reason(gone), ErrorReason::ErrMissingSession);
            }
            let gone = newer.get_session(by_id(&unreadable.session_id)).await;
            assert_eq!(reason(gone), ErrorReason::ErrMissingSession);
        }
    }
}

// conformance: B-128
#[tokio::test]
async fn what_is_good_once_is_refused_at_every_replica_until_it_may_be_forgotten() {
    let mut world = world().await;
    world.create(alice()).await;
    let ended = world
        .one
        .end_sessions(once("alice", "jti-1", CALL))
        .await
        .unwrap();
    assert_eq!(ended.into_inner().ended_count, 1);
    let kept = world.create(alice()).await;
    for replay in [
        once("alice", "jti-1", REPLAY),
        once("alice", "jti-1", ""),
        once("bob", "jti-1", REPLAY),
    ] {
        let refused = reason(world.two.end_sessions(replay).await);
        assert_eq!(refused, ErrorReason::ErrRequestIdReused);
    }
    let repeated = world
        .two
        .end_sessions(once("alice", "jti-1", CALL))
        .await
        .unwrap();
    assert_eq!(
        repeated.into_inner().ended_count,
        0,
        "the same call again is no second use, and ends nothing more"
    );
    world.two.get_session(by_id(&kept.session_id)).await.unwrap();
    world.clock.advance_ms(420_000);
    let forgotten = world
        .two
        .end_sessions(once("alice", "jti-1", REPLAY))
        .await
        .unwrap();
    assert_eq!(forgotten.into_inner().ended_count, 1);
    let without_end = v1::EndSessionsRequest {
        once_until: None,
        ..once("alice", "jti-2", CALL)
    };
    assert_eq!(
        reason(world.one.end_sessions(without_end).await),
        ErrorReason::ErrInvalidArgument
    );
}

#[tokio::test]
async fn what_is_good_once_is_remembered_for_a_day_at_most() {
    let mut world = world().await;
    for (until_ms, at_most_ms) in [(START_MS + 10 * 24 * HOUR_MS, 24 * HOUR_MS), (START_MS, 120_000)] {
        let call = v1::EndSessionsRequest {
            once_until: Some(timestamp::from_ms(until_ms)),
            ..once("alice", "jti-1", CALL)
        };
        world.one.end_sessions(call).await.unwrap();
        world.clock.advance_ms(at_most_ms - 1);
        let replay = world.two.end_sessions(once("alice", "jti-1", REPLAY)).await;
        assert_eq!(reason(replay), ErrorReason::ErrRequestIdReused);
        world.clock.advance_ms(1);
        world.store.sweep().await.unwrap();
        assert_eq!(
            world.store.holdings().unwrap().records,
            0,
            "nothing is left of it"
        );
    }
}

#[tokio::test]
async fn of_many_calls_at_the_same_moment_one_succeeds_and_the_others_are_refused() {
    let mut world = world().await;
    let id = world.create(alice()).await.session_id;
    let calls = (0..16).map(|number| {
        let mut replica = if number % 2 == 0 {
            world.one.clone()
        } else {
            world.two.clone()
        };
        let request = once(
            "alice",
            "jti-1",
            &format!("00000000-0000-4000-8000-0000000001{number:02}"),
        );
        tokio::spawn(async move { replica.end_sessions(request).await })
    });
    let calls: Vec<_> = calls.collect();
    let mut successes = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => successes += 1,
            refused => assert_eq!(reason(refused), ErrorReason::ErrRequestIdReused),
        }
    }
    assert_eq!(successes, 1);
    let gone = world.one.get_session(by_id(&id)).await;
    assert_eq!(reason(gone), ErrorReason::ErrMissingSession);
}

#[tokio::test]
async fn an_ending_that_was_refused_uses_nothing_up() {
    let mut world = world().await;
    world.create(alice()).await;
    let of_somebody_else = v1::EndSessionsRequest {
        provider_sid: "sid-1".to_owned(),
        ..once("bob", "jti-1", CALL)
    };
    assert_eq!(
        reason(world.one.end_sessions(of_somebody_else).await),
        ErrorReason::ErrInvalidArgument
    );
    let ended = world
        .two
        .end_sessions(once("alice", "jti-1", REPLAY))
        .await
        .unwrap();
    assert_eq!(ended.into_inner().ended_count, 1);
}

// conformance: B-129
#[tokio::test]
async fn keeping_offline_tokens_leaves_the_offline_grant_good_at_the_provider() {
    for (scope, keep, revoked) in [
        ("openid offline_access", true, false),
        ("openid", true, true),
        // The reason of an ending is for people, and decides nothing.
        ("openid offline_access", false, true),
    ] {
        for all in [true, false] {
            let mut world = world().await;
            let mut granted = alice();
            let tokens = granted.tokens.as_mut().unwrap();
            tokens.scope = scope.to_owned();
            tokens.refresh_token = "granted".to_owned();
            let id = world.create(granted).await.session_id;
            let cause = v1::Cause::BackChannelLogout.into();
            let ended = if all {
                let request = v1::EndSessionsRequest {
                    cause,
                    keep_offline_tokens: keep,
                    ..end_all("", "sid-1")
                };
                let ended = world.one.end_sessions(request).await.unwrap();
                ended.into_inner().ended_count == 1
            } else {
                let request = v1::EndSessionRequest {
                    cause,
                    keep_offline_tokens: keep,
                    ..end(&id)
                };
                world.one.end_session(request).await.unwrap().into_inner().ended
            };
            assert!(ended, "{scope} {keep} {all}");
            if revoked {
                world.provider.wait_for_revoked("granted").await;
            } else {
                // After a sign-out here, the token is revoked with any scopes.
                let other = world.create(alice()).await;
                world.one.end_session(end(&other.session_id)).await.unwrap();
                world.provider.wait_for_revoked("refresh-0").await;
                assert!(!world.provider.has_revoked("granted"));
            }
        }
    }
}

#[tokio::test]
async fn ending_existing_sessions_only_leaves_no_trace_where_there_is_nothing() {
    let existing = |sid: &str| v1::EndSessionsRequest {
        existing_only: true,
        ..end_all("", sid)
    };
    let mut world = world().await;
    let alices = world.create(alice()).await;
    let before = world.store.holdings().unwrap();
    for number in 0..500 {
        let ended = world
            .one
            .end_sessions(existing(&format!("nobody-{number}")))
            .await;
        assert_eq!(ended.unwrap().into_inner().ended_count, 0);
    }
    assert_eq!(world.store.holdings().unwrap(), before);
    let ended = world.two.end_sessions(existing("sid-1")).await.unwrap();
    assert_eq!(ended.into_inner().ended_count, 1);
    assert_eq!(
        reason(world.one.get_session(by_id(&alices.session_id)).await),
        ErrorReason::ErrMissingSession
    );
    world.create(alice()).await;
}
