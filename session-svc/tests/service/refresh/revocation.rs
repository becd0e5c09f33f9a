//! Refresh tokens are revoked at the provider when their session ends: in the background, bounded, counted.

use scripted_provider::{Answer, Endpoint};
use serde_json::json;

use super::support::*;

// conformance: B-112
#[tokio::test]
async fn ending_a_session_takes_its_refresh_token_back_behind_the_answer() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    let gate = world.provider.hold(Endpoint::Revocation);
    let ended = within(world.one.end(&signed_in.id)).await;
    assert_eq!(
        (ended.ended, ended.id_token_hint.as_str()),
        (true, signed_in.id_token.as_str())
    );
    world.provider.wait_for_held(Endpoint::Revocation, 1).await;
    let asked = world.provider.last_request(Endpoint::Revocation);
    assert_eq!(asked.param("token"), Some(signed_in.refresh_token.as_str()));
    assert_eq!(asked.param("token_type_hint"), Some("refresh_token"));
    gate.release();
    eventually("the revocation", || revoked(&world, "done") == 1).await;
    assert!(!world.provider.knows_refresh_token(&signed_in.refresh_token));
}

#[tokio::test]
async fn a_provider_that_fails_is_counted_and_the_session_ends_all_the_same() {
    for answer in [
        Answer::status(503),
        Answer::json(400, &json!({"error": "unsupported_token_type"})),
    ] {
        let world = world().await;
        let signed_in = world.sign_in().await;
        world
            .provider
            .script(|script| _ = script.answers.insert(Endpoint::Revocation, answer));
        assert!(world.one.end(&signed_in.id).await.ended);
        eventually("the failure", || revoked(&world, "failed") == 1).await;
        assert!(world.two.session(&signed_in.id).await.is_err());
    }
}

#[tokio::test]
async fn a_provider_without_revocation_is_not_asked() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    world
        .provider
        .script(|script| _ = script.metadata.insert("revocation_endpoint".into(), json!(null)));
    assert!(world.one.end(&signed_in.id).await.ended);
    eventually("nothing to be offered", || revoked(&world, "not_offered") == 1).await;
    assert_eq!(world.provider.calls(Endpoint::Revocation), 0);
}

#[tokio::test]
async fn a_slow_provider_gets_a_bounded_number_of_revocations_at_once() {
    let world = world().await;
    let mut sessions = Vec::new();
    for _ in 0..70 {
        sessions.push(world.sign_in().await);
    }
    let gate = world.provider.hold(Endpoint::Revocation);
    for signed_in in &sessions {
        assert!(world.one.end(&signed_in.id).await.ended);
    }
    world.provider.wait_for_held(Endpoint::Revocation, 64).await;
    assert_eq!(revoked(&world, "put_off"), 6);
    gate.release();
    eventually("those under way", || revoked(&world, "done") == 64).await;
    world.advance_ms(NOTED_MS);
    eventually("those that were put off", || {
        revoked(&world, "done") + revoked_at(&world.two, "done") == 70
    })
    .await;
    eventually("the notes to go", || {
        world.store.holdings().unwrap().index_entries == 0
    })
    .await;
}

/// The age at which other replicas act on a revocation note.
const NOTED_MS: u64 = 10_000;

#[tokio::test]
async fn a_provider_that_is_away_is_asked_again_until_it_has_taken_the_token_back() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    world
        .provider
        .script(|script| _ = script.answers.insert(Endpoint::Revocation, Answer::status(503)));
    assert!(world.one.end(&signed_in.id).await.ended);
    eventually("the failure", || revoked(&world, "failed") == 1).await;
    assert!(world.provider.knows_refresh_token(&signed_in.refresh_token));
    world
        .provider
        .script(|script| _ = script.answers.remove(&Endpoint::Revocation));
    world.advance_ms(NOTED_MS);
    eventually("the revocation", || {
        !world.provider.knows_refresh_token(&signed_in.refresh_token)
    })
    .await;
    eventually("the note to go", || {
        world.store.holdings().unwrap().index_entries == 0
    })
    .await;
}

fn revoked(world: &World, outcome: &str) -> u64 {
    revoked_at(&world.one, outcome)
}

fn revoked_at(replica: &Replica, outcome: &str) -> u64 {
    replica.counted("session_revocations_total", outcome)
}
