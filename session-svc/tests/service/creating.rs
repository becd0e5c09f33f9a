//! CreateSession: idempotence, replaced sessions, bounds, earlier endings.

use session_proto::timestamp;
use session_proto::v1::{self, ErrorReason};

use crate::support::*;

#[tokio::test]
async fn a_repeated_request_gives_the_same_session_until_that_has_ended() {
    let mut world = world().await;
    let request = v1::CreateSessionRequest {
        request_id: "3b241101-e2bb-4255-8caf-4136c566a962".to_owned(),
        ..alice()
    };
    let first = world.create(request.clone()).await;
    let again = world
        .two
        .create_session(request.clone())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(first.session_id, again.session_id);
    let other = v1::CreateSessionRequest {
        provider_sid: "sid-2".to_owned(),
        ..request.clone()
    };
    assert_eq!(
        reason(world.two.create_session(other).await),
        ErrorReason::ErrRequestIdReused
    );
    world.one.end_session(end(&first.session_id)).await.unwrap();
    assert_eq!(
        reason(world.two.create_session(request).await),
        ErrorReason::ErrMissingSession
    );
    assert_eq!(
        reason(world.one.get_session(by_id(&first.session_id)).await),
        ErrorReason::ErrMissingSession
    );
}

#[tokio::test]
async fn claims_are_told_word_for_word_as_they_were_given() {
    let mut world = world().await;
    let user =
        " {\"zip\": 12345678901234567890123,\n \"sub\":\"alice\", \"rate\" : 1.10, \"name\": \"\\u0041\"}";
    let created = world
        .create(v1::CreateSessionRequest {
            user: user.to_owned(),
            ..alice()
        })
        .await;
    let session = created.session.unwrap();
    assert_eq!((session.user.as_str(), session.attributes.as_str()), (user, "{}"));
    let attributes = "{\"b\": 1e2, \"a\": 0.30}";
    let update = v1::UpdateSessionRequest {
        session_id: created.session_id.clone(),
        attributes: attributes.to_owned(),
        ..Default::default()
    };
    world.one.update_session(update).await.unwrap();
    let read = world.two.get_session(by_id(&created.session_id)).await;
    let session = read.unwrap().into_inner().session.unwrap();
    assert_eq!(
        (session.user.as_str(), session.attributes.as_str()),
        (user, attributes)
    );
}

#[tokio::test]
async fn the_session_replaced_ends_and_the_oldest_beyond_the_limit_end() {
    let mut world = world_with(session_svc::sessions::SessionLimits {
        max_per_subject: 2,
        ..limits()
    })
    .await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(world.create(alice()).await.session_id);
        world.clock.advance_ms(1);
    }
    assert_eq!(
        reason(world.one.get_session(by_id(&ids[0])).await),
        ErrorReason::ErrMissingSession
    );
    world.one.get_session(by_id(&ids[1])).await.unwrap();
    let request = v1::CreateSessionRequest {
        replaces_session_id: ids[2].clone(),
        ..alice()
    };
    world.create(request).await;
    assert_eq!(
        reason(world.one.get_session(by_id(&ids[2])).await),
        ErrorReason::ErrMissingSession
    );
    world.one.get_session(by_id(&ids[1])).await.unwrap();
}

#[tokio::test]
async fn the_token_of_somebody_else_who_is_replaced_is_taken_back() {
    let mut world = world().await;
    let before = world.create(alice()).await;
    let bob = v1::CreateSessionRequest {
        user: claims(serde_json::json!({"sub": "bob"})),
        replaces_session_id: before.session_id.clone(),
        ..alice()
    };
    world.create(bob).await;
    assert_eq!(
        reason(world.one.get_session(by_id(&before.session_id)).await),
        ErrorReason::ErrMissingSession
    );
    world.provider.wait_for_revoked("refresh-0").await;
}

#[tokio::test]
async fn a_session_larger_than_the_bound_is_refused() {
    let mut world = world().await;
    let user = claims(serde_json::json!({"sub": "alice", "groups": "g".repeat(5_000)}));
    assert_eq!(
        reason(
            world
                .one
                .create_session(v1::CreateSessionRequest { user, ..alice() })
                .await
        ),
        ErrorReason::ErrSessionTooLarge
    );
}

#[tokio::test]
async fn a_session_too_large_with_its_id_token_is_kept_without_it() {
    let mut world = world().await;
    for request_id in ["", "c0ffee00-0000-4000-8000-000000000001"] {
        let tokens = v1::TokenSet {
            id_token: "i".repeat(3_500),
            ..alice().tokens.unwrap()
        };
        let created = world
            .create(v1::CreateSessionRequest {
                user: claims(serde_json::json!({"sub": "alice", "groups": "g".repeat(2_000)})),
                tokens: Some(tokens),
                request_id: request_id.to_owned(),
                ..alice()
            })
            .await;
        let ended = world.one.end_session(end(&created.session_id)).await.unwrap();
        assert_eq!(ended.into_inner().id_token_hint, "", "{request_id:?}");
    }
}

#[tokio::test]
async fn claims_that_grow_take_the_place_of_the_id_token() {
    let mut world = world().await;
    let tokens = v1::TokenSet {
        id_token: "i".repeat(2_000),
        ..alice().tokens.unwrap()
    };
    let created = world
        .create(v1::CreateSessionRequest {
            tokens: Some(tokens),
            ..alice()
        })
        .await;
    let grown = v1::UpdateSessionRequest {
        session_id: created.session_id.clone(),
        user: claims(serde_json::json!({"sub": "alice", "groups": "g".repeat(2_500)})),
        update_mask: Some(prost_types::FieldMask {
            paths: vec!["user".to_owned()],
        }),
        ..Default::default()
    };
    world.one.update_session(grown).await.unwrap();
    let ended = world.one.end_session(end(&created.session_id)).await.unwrap();
    assert_eq!(ended.into_inner().id_token_hint, "");
}

// conformance: B-143
#[tokio::test]
async fn a_logout_that_came_before_its_session_still_ends_it_and_no_later_login() {
    let mut world = world().await;
    let received_at = |ms: u64| v1::CreateSessionRequest {
        tokens_received_at: Some(timestamp::from_ms(ms)),
        ..alice()
    };
    world.one.end_sessions(end_all("", "sid-1")).await.unwrap();
    let late = world.two.create_session(received_at(START_MS - 1)).await;
    assert_eq!(reason(late), ErrorReason::ErrMissingSession);
    world.create(received_at(START_MS + 1)).await;
    world.clock.advance_ms(120_000);
    world.create(received_at(START_MS + 20_000)).await;
}

#[tokio::test]
async fn one_request_repeated_at_both_replicas_at_once_gives_one_session() {
    let mut world = world().await;
    let request = v1::CreateSessionRequest {
        request_id: "3b241101-e2bb-4255-8caf-4136c566a962".to_owned(),
        ..alice()
    };
    let pending_call: Vec<_> = (0..20)
        .map(|at| {
            let mut client = if at % 2 == 0 {
                world.one.clone()
            } else {
                world.two.clone()
            };
            let request = request.clone();
            tokio::spawn(async move { client.create_session(request).await.unwrap().into_inner() })
        })
        .collect();
    let mut ids = Vec::new();
    for one in pending_call {
        ids.push(within(one).await.unwrap().session_id);
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    let listed = world.one.list_sessions(list(0, "")).await.unwrap().into_inner();
    assert_eq!(listed.sessions.len(), 1);
    // Ten minutes later it is a request like any other.
    world.clock.advance_ms(600_001);
    let later = world.create(request).await;
    assert_ne!(later.session_id, ids[0]);
}

#[tokio::test]
async fn a_time_of_authentication_that_nobody_told_stays_unknown() {
    let mut world = world().await;
    let created = world
        .create(v1::CreateSessionRequest {
            authenticated_at: None,
            ..alice()
        })
        .await;
    assert_eq!(created.session.unwrap().authenticated_at, None);
    world.clock.advance_ms(120_000);
    let rolled = world.two.roll_session(roll(&created.session_id)).await;
    let rolled = rolled.unwrap().into_inner();
    assert!(rolled.rolled);
    assert_eq!(rolled.session.unwrap().authenticated_at, None);
    let read = world.two.get_session(by_id(&created.session_id)).await.unwrap();
    assert_eq!(read.into_inner().session.unwrap().authenticated_at, None);
}
