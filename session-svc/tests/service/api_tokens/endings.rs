//! API tokens end with their session: they are revoked at the provider and never restore a session.

use scripted_provider::{Answer, Endpoint};
use serde_json::json;
use session_proto::v1::ErrorReason;

use super::support::*;
use crate::refresh::support::*;

/// The tokens sent for revocation, with their type hints.
fn revoked(world: &World) -> Vec<(String, String)> {
    let requests = world.provider.requests(Endpoint::Revocation);
    let param =
        |request: &scripted_provider::Recorded, name| request.param(name).unwrap_or_default().to_owned();
    let mut revoked: Vec<_> = requests
        .iter()
        .map(|request| (param(request, "token"), param(request, "token_type_hint")))
        .collect();
    revoked.sort();
    revoked
}

#[tokio::test]
async fn ending_a_session_takes_back_its_tokens_for_apis_too() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    let orders = token(&world.one, for_audience(&signed_in.id, "orders", &[])).await;
    let billing = token(&world.two, for_audience(&signed_in.id, "billing", &[])).await;
    assert!(world.one.end(&signed_in.id).await.ended);
    world.wait_for_revocations(3).await;
    let mut expected = vec![
        (orders, "access_token".to_owned()),
        (billing, "access_token".to_owned()),
        (signed_in.refresh_token.clone(), "refresh_token".to_owned()),
    ];
    expected.sort();
    assert_eq!(revoked(&world), expected);
    eventually("the note to go", || {
        world.store.holdings().unwrap().index_entries == 0
    })
    .await;
}

#[tokio::test]
async fn what_expires_in_seconds_is_left_to_expire() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    token(&world.one, for_audience(&signed_in.id, "orders", &[])).await;
    world.advance_ms(3_595_000);
    assert!(world.one.end(&signed_in.id).await.ended);
    world.wait_for_revocations(1).await;
    eventually("the note to go", || {
        world.store.holdings().unwrap().index_entries == 0
    })
    .await;
    assert_eq!(world.provider.calls(Endpoint::Revocation), 1);
}

#[tokio::test]
async fn a_session_without_a_refresh_token_has_its_tokens_for_apis_taken_back() {
    let world = world().await;
    let mut tokens = world.provider.sign_in(SCOPE);
    tokens.insert("refresh_token".to_owned(), json!(""));
    let request = request(&tokens, world.provider.issuer(), START_MS + 300_000);
    let signed_in = crate::refresh::support::signed_in(&world.one.client, request).await;
    let orders = token(&world.one, for_audience(&signed_in.id, "orders", &[])).await;
    // The first try fails, so the later revocation comes from the stored note.
    world
        .provider
        .script(|script| _ = script.answers.insert(Endpoint::Revocation, Answer::status(503)));
    assert!(world.one.end(&signed_in.id).await.ended);
    world.wait_for_revocations(1).await;
    world.provider.script(|script| script.answers.clear());
    world.advance_ms(10_000);
    eventually("the note to go", || {
        world.store.holdings().unwrap().index_entries == 0
    })
    .await;
    assert!(
        revoked(&world)
            .iter()
            .all(|revoked| *revoked == (orders.clone(), "access_token".to_owned()))
    );
}

#[tokio::test]
async fn a_provider_that_revokes_no_access_tokens_still_takes_refresh_tokens_back() {
    let world = world().await;
    let first = world.sign_in().await;
    token(&world.one, for_audience(&first.id, "orders", &[])).await;
    let refusal = Answer::json(400, &json!({"error": "unsupported_token_type"}));
    let gate = world.provider.hold(Endpoint::Revocation);
    assert!(world.one.end(&first.id).await.ended);
    world.provider.wait_for_held(Endpoint::Revocation, 1).await;
    gate.release();
    world
        .provider
        .script(|script| _ = script.answers.insert(Endpoint::Revocation, refusal));
    world.wait_for_revocations(2).await;
    eventually("the note to go", || {
        world.store.holdings().unwrap().index_entries == 0
    })
    .await;
    world.provider.script(|script| script.answers.clear());
    let second = world.sign_in().await;
    assert!(world.one.end(&second.id).await.ended);
    eventually("the refresh token", || {
        !world.provider.knows_refresh_token(&second.refresh_token)
    })
    .await;
}

#[tokio::test]
async fn a_token_for_an_api_whose_revocation_is_refused_holds_up_no_other() {
    let world = world().await;
    for refusal in [
        Answer::json(400, &json!({"error": "invalid_request"})),
        Answer::json(400, &json!({"error": "invalid_token"})),
        Answer::status(404),
    ] {
        let signed_in = world.sign_in().await;
        token(&world.one, for_audience(&signed_in.id, "orders", &[])).await;
        // The refresh token is revoked first.
        let gate = world.provider.hold_answers(Endpoint::Revocation);
        assert!(world.one.end(&signed_in.id).await.ended);
        world.provider.wait_for_held(Endpoint::Revocation, 1).await;
        world
            .provider
            .script(|script| _ = script.answers.insert(Endpoint::Revocation, refusal));
        gate.release();
        eventually("the note to go", || {
            world.store.holdings().unwrap().index_entries == 0
        })
        .await;
        world.provider.script(|script| script.answers.clear());
    }
}

#[tokio::test]
async fn a_session_that_ends_during_an_exchange_stays_ended_and_the_token_is_taken_back() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    let gate = world.provider.hold_answers(Endpoint::Token);
    let caller = asking(&world.one, for_audience(&signed_in.id, "orders", &[]));
    world.provider.wait_for_held(Endpoint::Token, 1).await;
    assert!(world.two.end(&signed_in.id).await.ended);
    gate.release();
    assert_eq!(
        reason(within(caller).await.unwrap()),
        ErrorReason::ErrMissingSession
    );
    assert_eq!(
        reason(world.one.session(&signed_in.id).await),
        ErrorReason::ErrMissingSession
    );
    world.wait_for_revocations(2).await;
    let kinds: Vec<String> = revoked(&world).into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, ["access_token", "refresh_token"]);
    eventually("the notes to go", || {
        world.store.holdings().unwrap().index_entries == 0
    })
    .await;
}

/// A later sign-in in the same browser may share the earlier session's grant (RFC 7009, section 2.1).
#[tokio::test]
async fn signing_in_again_takes_nothing_back_that_the_new_session_shares() {
    let world = world().await;
    let before = world.sign_in().await;
    token(&world.one, for_audience(&before.id, "orders", &[])).await;
    let mut again = request(
        &world.provider.sign_in(SCOPE),
        world.provider.issuer(),
        START_MS + 300_000,
    );
    again.replaces_session_id = before.id.clone();
    signed_in(&world.one.client, again).await;
    assert!(world.one.session(&before.id).await.is_err());
    assert_eq!(world.provider.calls(Endpoint::Revocation), 0);
}
