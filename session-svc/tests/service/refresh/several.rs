//! Several providers: a token is sent only to the issuer of its session.

use std::sync::Arc;

use chassis::clock::ManualClock;
use scripted_provider::{Endpoint, ScriptedProvider};
use session_proto::v1::ErrorReason;
use session_svc::refresh::RefreshProviders;
use session_svc::store::embedded::EmbeddedStore;

use super::support::*;

/// Two providers, and a replica that knows both.
struct Two {
    a: ScriptedProvider,
    b: ScriptedProvider,
    replica: Replica,
}

async fn two() -> Two {
    let (a, b) = (ScriptedProvider::start(), ScriptedProvider::start());
    b.rotate_keys();
    for provider in [&a, &b] {
        provider.script(|script| script.now = Some(START_MS / 1_000));
    }
    let clock = Arc::new(ManualClock::new(START_MS));
    let store = Arc::new(EmbeddedStore::in_memory(clock.clone(), 1_000).unwrap());
    let parties = vec![relying_party(a.issuer()), relying_party(b.issuer())];
    let replica = replica(
        store,
        clock,
        RefreshProviders::of_parties(true, parties),
        limits(),
    )
    .await;
    Two { a, b, replica }
}

impl Two {
    async fn sign_in(&self, provider: &ScriptedProvider) -> SignedIn {
        sign_in(&self.replica.client, provider, START_MS).await
    }
}

#[tokio::test]
async fn each_session_is_refreshed_at_its_own_issuer() {
    let two = two().await;
    let (of_a, of_b) = (two.sign_in(&two.a).await, two.sign_in(&two.b).await);
    let token = two.replica.token(&of_a.id).await.unwrap().access_token;
    assert!(two.a.knows_access_token(&token));
    assert_eq!((two.a.rotations(), two.b.rotations()), (1, 0));
    let token = two.replica.token(&of_b.id).await.unwrap().access_token;
    assert!(two.b.knows_access_token(&token));
    assert_eq!((two.a.rotations(), two.b.rotations()), (1, 1));
}

#[tokio::test]
async fn an_id_token_of_the_other_issuer_ends_the_session() {
    let two = two().await;
    let of_b = two.sign_in(&two.b).await;
    let claims = two.a.sign_in(SCOPE);
    two.b.script(|script| {
        script
            .refresh
            .insert("id_token".to_owned(), claims["id_token"].clone());
    });
    assert_eq!(
        reason(two.replica.token(&of_b.id).await),
        ErrorReason::ErrFailedRefreshGrant
    );
    assert_eq!(
        reason(two.replica.session(&of_b.id).await),
        ErrorReason::ErrMissingSession
    );
}

#[tokio::test]
async fn each_refresh_token_is_taken_back_at_its_own_issuer() {
    let two = two().await;
    let of_b = two.sign_in(&two.b).await;
    assert!(two.b.knows_refresh_token(&of_b.refresh_token));
    assert_eq!(two.replica.end(&of_b.id).await.issuer, two.b.issuer());
    eventually("the revocation", || {
        !two.b.knows_refresh_token(&of_b.refresh_token)
    })
    .await;
    assert_eq!(two.a.calls(Endpoint::Revocation), 0);
}

#[tokio::test]
async fn the_token_of_an_issuer_that_is_not_configured_is_shown_to_nobody_and_kept() {
    let two = two().await;
    let stranger = ScriptedProvider::start();
    let signed_in = two.sign_in(&stranger).await;
    assert_eq!(
        reason(two.replica.token(&signed_in.id).await),
        ErrorReason::ErrFailedRefreshGrant
    );
    for provider in [&two.a, &two.b, &stranger] {
        assert_eq!(provider.calls(Endpoint::Token), 0);
    }
    assert!(
        two.replica
            .session(&signed_in.id)
            .await
            .unwrap()
            .has_refresh_token
    );
    assert!(two.replica.end(&signed_in.id).await.ended);
    eventually("the token that is left to expire", || {
        two.replica.counted("session_revocations_total", "given_up") == 1
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_is_down_does_no_harm_to_sessions_of_the_other() {
    let two = two().await;
    let before = two.sign_in(&two.a).await;
    let (of_a, of_b) = (two.sign_in(&two.a).await, two.sign_in(&two.b).await);
    assert!(two.replica.token(&before.id).await.is_ok());
    two.a.stop();
    assert!(two.replica.token(&of_a.id).await.is_err());
    assert!(two.replica.token(&of_b.id).await.is_ok());
    two.a.start_again();
    assert!(two.replica.token(&of_a.id).await.is_ok());
}
