//! A provider that cannot be reached, in every way: nothing is lost.

use std::time::Duration;

use scripted_provider::{Answer, Endpoint, ScriptedProvider};
use serde_json::json;
use session_proto::v1::ErrorReason;
use session_proto::v1::session::State;
use tonic::Code;

use super::odd_responses::{INSIDE_THE_MARGIN_MS, scene};
use super::support::*;

/// After this the first token has really expired.
const EXPIRED_MS: u64 = 300_001;

/// Answers that make a provider count as unreachable.
fn outages() -> Vec<(&'static str, Answer)> {
    vec![
        ("500", Answer::status(500)),
        ("502", Answer::text(502, "text/html", "<h1>Bad gateway</h1>")),
        ("503", Answer::status(503)),
        ("429", Answer::status(429)),
        (
            "temporarily",
            Answer::json(400, &json!({"error": "temporarily_unavailable"})),
        ),
        (
            "server_error",
            Answer::json(400, &json!({"error": "server_error"})),
        ),
        ("page", Answer::text(200, "text/html", "<h1>Maintenance</h1>")),
        (
            "broken",
            Answer::text(200, "application/json", "{\"access_token\":"),
        ),
        ("redirect", Answer::redirect("https://elsewhere.example/")),
        ("400 page", Answer::text(400, "text/html", "no")),
    ]
}

// conformance: B-031
#[tokio::test]
async fn an_outage_loses_nothing_and_inside_the_margin_the_old_token_serves_to_its_end() {
    let (world, signed_in) = scene(|_| ()).await;
    let outages = outages();
    world.advance_ms(INSIDE_THE_MARGIN_MS);
    for (what, answer) in &outages {
        world
            .provider
            .script(|script| _ = script.answers.insert(Endpoint::Token, answer.clone()));
        let served = world.one.token(&signed_in.id).await.unwrap();
        assert_eq!(served.access_token, signed_in.access_token, "{what}");
        let refused = world.one.forced(&signed_in.id).await;
        assert_eq!(reason(refused), ErrorReason::ErrProviderUnavailable, "{what}");
    }
    world.advance_ms(EXPIRED_MS - INSIDE_THE_MARGIN_MS);
    for (what, answer) in &outages {
        world
            .provider
            .script(|script| _ = script.answers.insert(Endpoint::Token, answer.clone()));
        let status = world.one.token(&signed_in.id).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{what}");
        assert_eq!(
            reason(Err::<(), _>(status)),
            ErrorReason::ErrProviderUnavailable,
            "{what}"
        );
    }
    assert_eq!(world.state(&signed_in.id).await, (State::Active, true));
    let attempts = u64::try_from(3 * outages.len()).unwrap();
    assert_eq!(world.one.refreshes("transient"), attempts);
    world.provider.reset();
    world.refreshes_with(&signed_in, &signed_in.refresh_token).await;
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_loses_nothing() {
    let (world, signed_in) = scene(|_| ()).await;
    world.refreshes_with(&signed_in, &signed_in.refresh_token).await;
    world.provider.stop();
    let refused = world.one.forced(&signed_in.id).await;
    assert_eq!(reason(refused), ErrorReason::ErrProviderUnavailable);
    assert_eq!(world.state(&signed_in.id).await, (State::Active, true));
    world.provider.start_again();
    assert!(world.one.forced(&signed_in.id).await.is_ok());
    assert_eq!(world.provider.reuses(), 0);
}

#[tokio::test]
async fn a_provider_that_never_answers_is_given_up() {
    let provider = ScriptedProvider::start();
    let mut settings = provider_settings(provider.issuer());
    settings.http_timeout = Duration::from_millis(300);
    settings.refresh_timeout = Duration::from_millis(600);
    let party = oidc::RelyingParty::new(settings).unwrap();
    let world = world_of(provider, limits(), party.clone(), party).await;
    let signed_in = world.sign_in().await;
    world
        .provider
        .script(|script| _ = script.answers.insert(Endpoint::Token, Answer::Hang));
    world.advance_ms(INSIDE_THE_MARGIN_MS);
    let served = world.one.token(&signed_in.id).await.unwrap();
    assert_eq!(served.access_token, signed_in.access_token);
    assert_eq!(
        reason(world.one.forced(&signed_in.id).await),
        ErrorReason::ErrProviderUnavailable
    );
    // No caller waits for these requests, but a late answer would still count.
    eventually("all requests to be given up", || {
        world.one.refreshes("transient") == world.provider.calls(Endpoint::Token) as u64
    })
    .await;
    world.provider.reset();
    world.refreshes_with(&signed_in, &signed_in.refresh_token).await;
}
