//! A replica that is stopped during a refresh saves the provider's answer before it exits.

use scripted_provider::Endpoint;

use super::support::*;

/// Enough yields for every step that needs no time.
const LOOKS: usize = 200;

#[tokio::test]
async fn a_refresh_whose_caller_has_gone_is_finished_before_the_service_stops() {
    let mut world = world().await;
    let signed_in = world.sign_in().await;
    world.advance_ms(240_001);
    let gate = world.provider.hold_answers(Endpoint::Token);
    let pending_call = world.one.pending_call(&signed_in.id);
    world.provider.wait_for_held(Endpoint::Token, 1).await;
    pending_call.abort();
    world.one.shutdown.cancel();
    // The service takes no calls and no caller waits: only the refresh keeps it running.
    while world.one.session(&signed_in.id).await.is_ok() {
        tokio::task::yield_now().await;
    }
    for _ in 0..LOOKS {
        tokio::task::yield_now().await;
        assert!(
            !world.one.serving.is_finished(),
            "it did not wait for the refresh"
        );
    }
    gate.release();
    within(&mut world.one.serving).await.unwrap();

    let fresh = world.two.token(&signed_in.id).await.unwrap();
    assert_ne!(fresh.access_token, signed_in.access_token);
    assert_eq!(world.provider.grants("refresh_token"), 1);
    let again = world.two.forced(&signed_in.id).await.unwrap();
    assert_ne!(again.access_token, fresh.access_token);
    assert_eq!(world.provider.reuses(), 0);
}
