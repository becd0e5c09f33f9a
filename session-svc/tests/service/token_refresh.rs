//! Refreshing: every answer of the provider, and its effect on the session.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oidc::{IdTokenError, RefreshedTokens};
use session_proto::v1::ErrorReason;
use session_proto::v1::session::State;
use tonic::Code;

use crate::failing_store::{Loses, failing};
use crate::support::*;

// conformance: B-031 B-054
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
        world.clock.advance_ms(1_000); // the pause after a refusal
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

// conformance: B-031
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

// conformance: B-108
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

// conformance: A-058
#[tokio::test]
async fn a_new_id_token_brings_claims_up_to_date_and_becomes_the_hint() {
    let (mut world, id) = signed_in().await;
    let claims = r#"{"sub":"alice","name":"Alice B.","aud":"client","secret_claim":1}"#;
    let raw = format!("header.{}.signature", URL_SAFE_NO_PAD.encode(claims));
    let answer = RefreshedTokens {
        id_token: Some(raw.clone()),
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
    assert_eq!(session.user, r#"{"sub":"alice","name":"Alice B."}"#);
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
async fn tokens_of_somebody_else_are_revoked_though_the_process_dies_with_the_removal() {
    let (world, id) = signed_in().await;
    let (store, mut dying) = failing(&world).await;
    store.loses(Loses::Caller);
    world.provider.refuses_id_token(IdTokenError::Subject);
    let answer = RefreshedTokens {
        id_token: Some("{}".to_owned()),
        ..tokens(1, START_MS / 1000)
    };
    world.provider.says(Says::Tokens(answer));
    let call = tokio::spawn(async move { dying.get_access_token(forced(&id)).await });
    let revoked = world.provider.wait_for_revoked("refresh-1");
    // Another replica acts on a note once the note's writer has had its time.
    let time_passes = async {
        loop {
            world.clock.advance_ms(1_000);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::select! {
        () = revoked => {}
        () = time_passes => {}
    }
    call.abort();
}

// conformance: B-096
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
