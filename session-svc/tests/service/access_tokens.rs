//! GetAccessToken: the decision order, one grant per expiry, and every odd answer of the provider.

use oidc::{IdTokenError, RefreshedTokens};
use session_proto::v1::session::State;
use session_proto::v1::{self, ErrorReason};
use tonic::Code;

use crate::support::*;

/// Just past the margin before Alice's first access token expires.
const EXPIRED_MS: u64 = 240_001;

async fn signed_in() -> (World, String) {
    let mut world = world().await;
    let id = world.create(alice()).await.session_id;
    (world, id)
}

async fn without(access: bool, refresh: bool) -> (World, String) {
    let mut world = world().await;
    let mut request = alice();
    let tokens = request.tokens.as_mut().unwrap();
    if !access {
        tokens.access_token.clear();
    }
    if !refresh {
        tokens.refresh_token.clear();
    }
    let id = world.create(request).await.session_id;
    (world, id)
}

#[tokio::test]
async fn a_good_token_is_served_without_asking_the_provider() {
    let (mut world, id) = signed_in().await;
    world.clock.advance_ms(240_000);
    let answer = world.one.get_access_token(token(&id)).await.unwrap().into_inner();
    assert_eq!(
        (answer.access_token.as_str(), answer.token_type.as_str()),
        ("access-0", "Bearer")
    );
    assert_eq!(answer.scope, "openid email");
    assert_eq!(
        world.provider.grants(),
        0,
        "exactly 60 seconds left are still valid"
    );
}

#[tokio::test]
async fn every_refusal_has_its_reason() {
    let mut world = world().await;
    assert_eq!(
        reason(world.one.get_access_token(token(&"0".repeat(32))).await),
        ErrorReason::ErrMissingSession
    );
    let (mut world, id) = without(false, false).await;
    assert_eq!(
        reason(world.one.get_access_token(forced(&id)).await),
        ErrorReason::ErrMissingAccessToken
    );
    let (mut world, id) = without(true, false).await;
    assert_eq!(
        reason(world.one.get_access_token(forced(&id)).await),
        ErrorReason::ErrMissingRefreshToken
    );
    world.clock.advance_ms(EXPIRED_MS);
    assert_eq!(
        reason(world.one.get_access_token(token(&id)).await),
        ErrorReason::ErrExpiredAccessToken
    );
}

#[tokio::test]
async fn a_missing_scope_is_named_and_never_a_reason_to_refresh() {
    let (mut world, id) = signed_in().await;
    world.clock.advance_ms(EXPIRED_MS);
    let scopes = vec!["email".to_owned(), "orders:read".to_owned()];
    let status = world
        .one
        .get_access_token(v1::GetAccessTokenRequest {
            scopes,
            ..forced(&id)
        })
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    assert_eq!(
        session_proto::error::metadata_of(&status)["scopes"],
        "orders:read"
    );
    assert_eq!(world.provider.grants(), 0);
}

#[tokio::test]
async fn two_hundred_callers_at_two_replicas_cost_one_grant() {
    let (world, id) = signed_in().await;
    world.clock.advance_ms(EXPIRED_MS);
    world.provider.open(false);
    let callers: Vec<_> = (0..200)
        .map(|at| {
            let (mut client, id) = (
                if at % 2 == 0 {
                    world.one.clone()
                } else {
                    world.two.clone()
                },
                id.clone(),
            );
            tokio::spawn(async move { client.get_access_token(token(&id)).await })
        })
        .collect();
    world.provider.wait_for_grants(1).await;
    world.provider.open(true);
    for caller in callers {
        assert_eq!(
            within(caller).await.unwrap().unwrap().into_inner().access_token,
            "access-1"
        );
    }
    assert_eq!((world.provider.grants(), world.provider.reused()), (1, 0));
}

#[tokio::test]
async fn the_session_refreshes_again_with_the_rotated_token() {
    let (mut world, id) = signed_in().await;
    for number in 1..4 {
        world.clock.advance_ms(HOUR_MS);
        let answer = world.two.get_access_token(token(&id)).await.unwrap().into_inner();
        assert_eq!(answer.access_token, format!("access-{number}"));
    }
    assert_eq!((world.provider.grants(), world.provider.reused()), (3, 0));
}

#[tokio::test]
async fn a_caller_that_hangs_up_loses_nothing() {
    let (mut world, id) = signed_in().await;
    world.clock.advance_ms(EXPIRED_MS);
    world.provider.open(false);
    let (mut client, asked) = (world.one.clone(), token(&id));
    let caller = tokio::spawn(async move { client.get_access_token(asked).await });
    world.provider.wait_for_grants(1).await;
    caller.abort();
    world.provider.open(true);
    let answer = within(world.two.get_access_token(token(&id)))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (answer.access_token.as_str(), world.provider.grants()),
        ("access-1", 1)
    );
}

#[tokio::test]
async fn an_invalid_grant_needs_a_sign_in_and_is_not_tried_again() {
    let (mut world, id) = signed_in().await;
    world.provider.says(Says::Refuses("invalid_grant"));
    assert_eq!(
        reason(world.one.get_access_token(forced(&id)).await),
        ErrorReason::ErrFailedRefreshGrant
    );
    let session = world
        .two
        .get_session(by_id(&id))
        .await
        .unwrap()
        .into_inner()
        .session
        .unwrap();
    assert_eq!(
        (session.state(), session.has_refresh_token),
        (State::NeedsSignIn, false)
    );
    assert_eq!(
        world
            .one
            .get_access_token(token(&id))
            .await
            .unwrap()
            .into_inner()
            .access_token,
        "access-0"
    );
    world.clock.advance_ms(EXPIRED_MS);
    assert_eq!(
        reason(world.one.get_access_token(token(&id)).await),
        ErrorReason::ErrFailedRefreshGrant
    );
    assert_eq!(world.provider.grants(), 1);
}

#[tokio::test]
async fn a_refusal_of_the_client_or_an_empty_answer_keeps_the_refresh_token() {
    for says in [Says::Refuses("invalid_client"), Says::GivesNothing] {
        let (mut world, id) = signed_in().await;
        world.provider.says(says);
        assert_eq!(
            reason(world.one.get_access_token(forced(&id)).await),
            ErrorReason::ErrFailedRefreshGrant
        );
        let session = world
            .one
            .get_session(by_id(&id))
            .await
            .unwrap()
            .into_inner()
            .session
            .unwrap();
        assert_eq!(
            (session.state(), session.has_refresh_token),
            (State::Active, true)
        );
        assert_eq!(
            world
                .one
                .get_access_token(forced(&id))
                .await
                .unwrap()
                .into_inner()
                .access_token,
            "access-2"
        );
    }
}

#[tokio::test]
async fn a_failing_provider_loses_nothing_and_the_old_token_serves_to_its_end() {
    let (mut world, id) = signed_in().await;
    world.clock.advance_ms(EXPIRED_MS);
    world.provider.says(Says::Fails);
    assert_eq!(
        world
            .one
            .get_access_token(token(&id))
            .await
            .unwrap()
            .into_inner()
            .access_token,
        "access-0"
    );
    world.provider.says(Says::Fails);
    assert_eq!(
        reason(world.one.get_access_token(forced(&id)).await),
        ErrorReason::ErrProviderUnavailable
    );
    world.clock.advance_ms(60_000);
    world.provider.says(Says::Fails);
    let status = world.one.get_access_token(token(&id)).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(
        world
            .one
            .get_access_token(token(&id))
            .await
            .unwrap()
            .into_inner()
            .access_token,
        "access-4"
    );
}

#[tokio::test]
async fn an_answer_without_refresh_token_scope_and_id_token_keeps_them() {
    let (mut world, id) = signed_in().await;
    let bare = RefreshedTokens {
        refresh_token: None,
        ..tokens(7, START_MS / 1000)
    };
    world.provider.says(Says::Tokens(bare));
    let answer = world
        .one
        .get_access_token(forced(&id))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (answer.access_token.as_str(), answer.scope.as_str()),
        ("access-7", "openid email")
    );
    let session = world
        .one
        .get_session(by_id(&id))
        .await
        .unwrap()
        .into_inner()
        .session
        .unwrap();
    assert!(session.has_refresh_token);
    let ended = world.one.end_session(end(&id)).await.unwrap().into_inner();
    assert_eq!(ended.id_token_hint, "hint");
    world.provider.wait_for_revoked("refresh-0").await;
}

#[tokio::test]
async fn a_new_id_token_brings_claims_up_to_date_and_becomes_the_hint() {
    let (mut world, id) = signed_in().await;
    let raw = r#"{"sub":"alice","name":"Alice B.","aud":"client","secret_claim":1}"#;
    let answer = RefreshedTokens {
        id_token: Some(raw.to_owned()),
        scope: Some("openid".to_owned()),
        ..tokens(1, START_MS / 1000)
    };
    world.provider.says(Says::Tokens(answer));
    world.one.get_access_token(forced(&id)).await.unwrap();
    let session = world
        .one
        .get_session(by_id(&id))
        .await
        .unwrap()
        .into_inner()
        .session
        .unwrap();
    assert_eq!(
        session.user.unwrap(),
        claims(serde_json::json!({"sub": "alice", "name": "Alice B."}))
    );
    assert_eq!(session.scope, "openid");
    assert_eq!(
        world
            .one
            .end_session(end(&id))
            .await
            .unwrap()
            .into_inner()
            .id_token_hint,
        raw
    );
}

#[tokio::test]
async fn an_id_token_of_somebody_else_ends_the_session() {
    for error in [
        IdTokenError::Subject,
        IdTokenError::Issuer,
        IdTokenError::Signature,
    ] {
        let (mut world, id) = signed_in().await;
        world.provider.refuses_id_token(error);
        let answer = RefreshedTokens {
            id_token: Some("{}".to_owned()),
            ..tokens(1, START_MS / 1000)
        };
        world.provider.says(Says::Tokens(answer));
        assert_eq!(
            reason(world.one.get_access_token(forced(&id)).await),
            ErrorReason::ErrFailedRefreshGrant
        );
        assert_eq!(
            reason(world.two.get_session(by_id(&id)).await),
            ErrorReason::ErrMissingSession
        );
        world.provider.wait_for_revoked("refresh-1").await;
    }
}

#[tokio::test]
async fn a_session_that_ends_during_a_refresh_stays_ended_and_the_new_token_is_taken_back() {
    let (mut world, id) = signed_in().await;
    world.provider.open(false);
    let (mut client, asked) = (world.one.clone(), forced(&id));
    let caller = tokio::spawn(async move { client.get_access_token(asked).await });
    world.provider.wait_for_grants(1).await;
    assert!(world.two.end_session(end(&id)).await.unwrap().into_inner().ended);
    world.provider.open(true);
    assert_eq!(
        reason(within(caller).await.unwrap()),
        ErrorReason::ErrMissingSession
    );
    assert_eq!(
        reason(world.one.get_session(by_id(&id)).await),
        ErrorReason::ErrMissingSession
    );
    world.provider.wait_for_revoked("refresh-1").await;
    assert_eq!(world.provider.grants(), 1);
}

#[tokio::test]
async fn an_update_during_a_refresh_and_the_refresh_are_both_kept() {
    let (mut world, id) = signed_in().await;
    world.provider.open(false);
    let (mut client, asked) = (world.one.clone(), forced(&id));
    let caller = tokio::spawn(async move { client.get_access_token(asked).await });
    world.provider.wait_for_grants(1).await;
    let attributes = Some(claims(serde_json::json!({"theme": "dark"})));
    let update = v1::UpdateSessionRequest {
        session_id: id.clone(),
        attributes: attributes.clone(),
        ..Default::default()
    };
    world.two.update_session(update).await.unwrap();
    world.provider.open(true);
    assert_eq!(
        within(caller).await.unwrap().unwrap().into_inner().access_token,
        "access-1"
    );
    let session = world
        .one
        .get_session(by_id(&id))
        .await
        .unwrap()
        .into_inner()
        .session
        .unwrap();
    assert_eq!((session.attributes, session.version), (attributes, 3));
}
