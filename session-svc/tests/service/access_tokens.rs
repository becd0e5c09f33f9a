//! GetAccessToken: the decision order.

use session_proto::v1::{self, ErrorReason};
use tonic::Code;

use crate::support::*;

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

// conformance: B-110
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
