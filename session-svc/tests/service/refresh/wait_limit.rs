//! A slow provider: callers do not wait for it, and its late answer serves their next call.

use std::time::{Duration, Instant};

use oidc::RelyingParty;
use scripted_provider::{Endpoint, ScriptedProvider};
use serde_json::json;
use session_proto::v1::ErrorReason;

use super::odd_responses::INSIDE_THE_MARGIN_MS;
use super::support::*;

/// After this the first token has really expired.
const EXPIRED_MS: u64 = 300_001;

/// Well above a caller's time here, well below a refresh's.
const BOUND: Duration = Duration::from_secs(20);

async fn patient_world() -> (World, SignedIn) {
    let provider = ScriptedProvider::start();
    let (one, two): (RelyingParty, RelyingParty) = (impatient(&provider), impatient(&provider));
    let world = world_of(provider, limits(), one, two).await;
    let signed_in = world.sign_in().await;
    world
        .provider
        .script(|script| _ = script.refresh.insert("expires_in".into(), json!(300)));
    // Discovery is not part of the measured time.
    world.one.forced(&signed_in.id).await.unwrap();
    world.two.forced(&signed_in.id).await.unwrap();
    (world, signed_in)
}

#[tokio::test]
async fn callers_wait_at_most_the_http_timeout_and_the_next_request_has_the_outcome() {
    let (world, signed_in) = patient_world().await;
    world.advance_ms(EXPIRED_MS);
    let gate = world.provider.hold_answers(Endpoint::Token);
    for _ in 0..2 {
        for replica in [&world.one, &world.two] {
            let began = Instant::now();
            let answer = tokio::time::timeout(BOUND, replica.token(&signed_in.id)).await;
            let answer = answer.expect("an answer while the provider takes its time");
            assert_eq!(
                reason(answer),
                ErrorReason::ErrProviderUnavailable,
                "{:?}",
                began.elapsed()
            );
        }
    }
    world.provider.wait_for_held(Endpoint::Token, 1).await;
    gate.release();
    eventually("the outcome", || world.one.refreshes("refreshed") == 2).await;
    let first = world.one.token(&signed_in.id).await.unwrap();
    let second = world.two.token(&signed_in.id).await.unwrap();
    assert!(world.provider.knows_access_token(&first.access_token));
    assert_eq!(first.access_token, second.access_token);
    assert_eq!(
        (world.provider.grants("refresh_token"), world.provider.reuses()),
        (3, 0)
    );
}

#[tokio::test]
async fn inside_the_margin_the_old_token_is_served_when_the_wait_is_over() {
    let (world, signed_in) = patient_world().await;
    let old = world.one.token(&signed_in.id).await.unwrap();
    world.advance_ms(INSIDE_THE_MARGIN_MS);
    let gate = world.provider.hold_answers(Endpoint::Token);
    for replica in [&world.one, &world.two] {
        let answer = tokio::time::timeout(BOUND, replica.token(&signed_in.id)).await;
        let served = answer
            .expect("an answer while the provider takes its time")
            .unwrap();
        assert_eq!(served.access_token, old.access_token);
    }
    let forced = tokio::time::timeout(BOUND, world.one.forced(&signed_in.id)).await;
    let forced = forced.expect("an answer while the provider takes its time");
    assert_eq!(reason(forced), ErrorReason::ErrProviderUnavailable);
    gate.release();
    eventually("the outcome", || world.one.refreshes("refreshed") == 2).await;
    let fresh = world.two.token(&signed_in.id).await.unwrap();
    assert_ne!(fresh.access_token, old.access_token);
    assert_eq!(
        (world.provider.grants("refresh_token"), world.provider.reuses()),
        (3, 0)
    );
}
