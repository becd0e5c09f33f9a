//! A refresh that moves the session to another session of the provider: logout by `sid` finds it.

use scripted_provider::Endpoint;
use serde_json::json;
use session_proto::v1::{Cause, EndSessionsRequest, ErrorReason, GetAccessTokenRequest};

use super::support::*;

/// A session whose refresh returned an ID token of the provider's session `sid-new`.
async fn moved() -> (World, SignedIn, String) {
    let world = world().await;
    let tokens = world.provider.sign_in(SCOPE);
    let first_sid = tokens["sid"].as_str().unwrap().to_owned();
    let request = request(&tokens, world.provider.issuer(), START_MS + 300_000);
    let signed_in = signed_in(&world.one.client, request).await;
    world
        .provider
        .script(|script| _ = script.claims.insert("sid".into(), json!("sid-new")));
    world.one.forced(&signed_in.id).await.unwrap();
    (world, signed_in, first_sid)
}

async fn log_out(world: &World, sid: &str, subject: &str) -> u32 {
    let request = EndSessionsRequest {
        issuer: world.provider.issuer().to_owned(),
        provider_sid: sid.to_owned(),
        subject: subject.to_owned(),
        cause: Cause::BackChannelLogout.into(),
        ..Default::default()
    };
    let answer = world.two.client.clone().end_sessions(request).await;
    answer.unwrap().into_inner().ended_count
}

#[tokio::test]
async fn a_logout_by_the_sid_of_the_refreshed_id_token_ends_the_session() {
    for subject in ["", "alice"] {
        let (world, signed_in, _) = moved().await;
        let session = world.two.session(&signed_in.id).await.unwrap();
        assert_eq!(session.provider_sid, "sid-new", "{subject}");
        assert_eq!(log_out(&world, "sid-new", subject).await, 1, "{subject}");
        let gone = reason(world.one.session(&signed_in.id).await);
        assert_eq!(gone, ErrorReason::ErrMissingSession, "{subject}");
    }
}

/// The logout may be in transit while the refresh is saved.
#[tokio::test]
async fn a_logout_by_the_sid_before_ends_it_too() {
    let (world, signed_in, first_sid) = moved().await;
    world.one.forced(&signed_in.id).await.unwrap();
    assert_eq!(log_out(&world, &first_sid, "alice").await, 1);
    let gone = reason(world.one.session(&signed_in.id).await);
    assert_eq!(gone, ErrorReason::ErrMissingSession);
}

/// The keys are held back: the logout is handled between the token response and the save.
#[tokio::test]
async fn a_logout_by_the_new_sid_while_the_refresh_is_under_way_ends_the_session() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    world
        .provider
        .script(|script| _ = script.claims.insert("sid".into(), json!("sid-new")));
    // An earlier logout of `sid-new` does not end this session.
    assert_eq!(log_out(&world, "sid-new", "").await, 0);
    world.advance_ms(1);
    world.one.forced(&signed_in.id).await.unwrap();
    world
        .provider
        .script(|script| _ = script.claims.insert("sid".into(), json!("sid-newer")));
    world.provider.rotate_keys();
    world.advance_ms(120_000);
    let keys = world.provider.hold(Endpoint::Jwks);
    let fetched = world.provider.calls(Endpoint::Jwks);
    let (mut client, id) = (world.one.client.clone(), signed_in.id.clone());
    let refreshing = tokio::spawn(async move {
        let request = GetAccessTokenRequest {
            session_id: id,
            force_refresh: true,
            ..Default::default()
        };
        client.get_access_token(request).await
    });
    world.provider.wait_for_calls(Endpoint::Jwks, fetched + 1).await;
    assert_eq!(log_out(&world, "sid-newer", "").await, 0);
    keys.release();
    let refused = refreshing.await.unwrap();
    assert_eq!(reason(refused), ErrorReason::ErrMissingSession);
    let gone = reason(world.two.session(&signed_in.id).await);
    assert_eq!(gone, ErrorReason::ErrMissingSession);
    world.wait_for_revocations(1).await;
}
