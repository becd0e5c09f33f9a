//! Refreshing before the token expires: nobody waits, and it still costs one grant.

use scripted_provider::{Answer, Endpoint};
use serde_json::json;
use session_svc::sessions::SessionLimits;

use super::support::*;

/// The first token lives 300 s and counts as expired with 60 s left: this is when it is due ahead.
const DUE_MS: u64 = 120_001;

async fn eager() -> (World, SignedIn) {
    let limits = SessionLimits {
        refresh_ahead_ms: 120_000,
        ..limits()
    };
    let world = world_with(limits).await;
    let signed_in = world.sign_in().await;
    (world, signed_in)
}

#[tokio::test]
async fn a_token_used_shortly_before_its_end_is_served_and_refreshed_in_the_background() {
    let (world, signed_in) = eager().await;
    world.advance_ms(DUE_MS - 1);
    let served = world.one.token(&signed_in.id).await.unwrap();
    assert_eq!(served.access_token, signed_in.access_token);

    world.advance_ms(1);
    let gate = world.provider.hold(Endpoint::Token);
    for replica in [&world.one, &world.two, &world.one] {
        let served = replica.token(&signed_in.id).await.unwrap();
        assert_eq!(served.access_token, signed_in.access_token, "nobody waits");
    }
    world.provider.wait_for_held(Endpoint::Token, 1).await;
    gate.release();
    eventually("the refresh", || {
        world.one.refreshes("refreshed") + world.two.refreshes("refreshed") == 1
    })
    .await;
    let fresh = world.two.token(&signed_in.id).await.unwrap();
    assert_ne!(fresh.access_token, signed_in.access_token);
    assert!(world.provider.knows_access_token(&fresh.access_token));
    eventually("the second replica's try to be over", || {
        world.two.counted("session_refreshes_ahead_total", "tried_before") == 1
    })
    .await;
    assert_eq!(
        world.provider.calls(Endpoint::Token),
        1,
        "not tried before: {}",
        world.one.counted("session_refreshes_ahead_total", "refreshed")
    );
}

#[tokio::test]
async fn rolling_a_session_refreshes_ahead_as_well() {
    let (world, signed_in) = eager().await;
    world.advance_ms(DUE_MS);
    world.two.roll(&signed_in.id).await;
    eventually("the refresh", || world.two.refreshes("refreshed") == 1).await;
    assert_eq!(world.two.counted("session_refreshes_ahead_total", "refreshed"), 1);
}

#[tokio::test]
async fn a_failed_try_is_seen_by_nobody_and_made_again_only_after_a_pause() {
    let (world, signed_in) = eager().await;
    world.advance_ms(DUE_MS);
    let outage = Answer::status(503);
    world
        .provider
        .script(|script| _ = script.answers.insert(Endpoint::Token, outage));
    for _ in 0..5 {
        let served = world.one.token(&signed_in.id).await.unwrap();
        assert_eq!(served.access_token, signed_in.access_token);
        eventually("the tries to be over", || {
            world.one.counted("session_refreshes_ahead_total", "failed") == 1
        })
        .await;
    }
    assert_eq!(world.provider.calls(Endpoint::Token), 1);

    world.provider.script(|script| script.answers.clear());
    world.advance_ms(15_000);
    world.one.token(&signed_in.id).await.unwrap();
    eventually("the refresh", || world.one.refreshes("refreshed") == 1).await;
}

#[tokio::test]
async fn tokens_that_live_shorter_than_the_span_are_not_refreshed_without_end() {
    let (world, signed_in) = eager().await;
    world
        .provider
        .script(|script| _ = script.refresh.insert("expires_in".into(), json!(100)));
    world.advance_ms(DUE_MS);
    for _ in 0..20 {
        world.one.token(&signed_in.id).await.unwrap();
        world.two.roll(&signed_in.id).await;
    }
    eventually("the refresh", || {
        world.one.refreshes("refreshed") + world.two.refreshes("refreshed") == 1
    })
    .await;
    world.one.token(&signed_in.id).await.unwrap();
    assert_eq!(world.provider.calls(Endpoint::Token), 1);
}

#[tokio::test]
async fn off_by_default() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    world.advance_ms(240_000);
    world.one.token(&signed_in.id).await.unwrap();
    world.one.roll(&signed_in.id).await;
    assert_eq!(world.provider.calls(Endpoint::Token), 0);
    assert_eq!(world.one.counted("session_refreshes_ahead_total", "refreshed"), 0);
}
