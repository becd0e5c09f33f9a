//! A refresh that names the API rotates the refresh token like any other, and never races with one.

use scripted_provider::{Answer, Endpoint};
use serde_json::json;
use session_proto::v1::ErrorReason;
use session_proto::v1::session::State;

use super::support::*;
use crate::refresh::support::*;

#[tokio::test]
async fn the_refresh_names_the_api_and_its_token_is_kept_beside_the_sessions_own() {
    let world = world_by_refresh().await;
    let signed_in = world.sign_in().await;
    let mut request = for_resource(&signed_in.id, ORDERS);
    request.scopes = vec!["read".to_owned()];
    let orders = token(&world.one, request.clone()).await;
    let sent = world.provider.last_request(Endpoint::Token);
    assert_eq!(
        sent.param("refresh_token"),
        Some(signed_in.refresh_token.as_str())
    );
    assert_eq!(
        (sent.param("resource"), sent.param("scope")),
        (Some(ORDERS), Some("read"))
    );
    assert_eq!(token(&world.two, request).await, orders);
    let own = world.two.token(&signed_in.id).await.unwrap().access_token;
    assert_eq!(own, signed_in.access_token);
    assert_eq!((world.provider.rotations(), world.provider.reuses()), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refreshes_for_several_apis_and_the_session_itself_never_reuse_a_token() {
    let world = world_by_refresh().await;
    let signed_in = world.sign_in().await;
    let mut earlier = vec![signed_in.access_token.clone()];
    for round in 1..=3 {
        world.advance_ms(3_600_000);
        let mut callers = Vec::new();
        for _ in 0..20 {
            for replica in [&world.one, &world.two] {
                callers.push(asking(replica, for_resource(&signed_in.id, ORDERS)));
                callers.push(asking(replica, for_resource(&signed_in.id, BILLING)));
                callers.push(replica.pending_call(&signed_in.id));
            }
        }
        let mut tokens = Vec::new();
        for caller in callers {
            tokens.push(within(caller).await.unwrap().unwrap().access_token);
        }
        tokens.sort();
        tokens.dedup();
        assert_eq!(tokens.len(), 3, "one for each");
        assert!(
            tokens.iter().all(|token| !earlier.contains(token)),
            "none of before"
        );
        assert_eq!(
            (world.provider.rotations(), world.provider.reuses()),
            (3 * round, 0)
        );
        earlier.extend(tokens);
    }
}

/// The session's own token has expired. A refresh for an API rotates the refresh token meanwhile.
#[tokio::test]
async fn a_refresh_for_an_api_is_no_newer_token_of_the_session() {
    let world = world_by_refresh().await;
    let signed_in = world.sign_in().await;
    world.advance_ms(300_000);
    let gate = world.provider.hold(Endpoint::Token);
    let for_api = asking(&world.one, for_resource(&signed_in.id, ORDERS));
    world.provider.wait_for_held(Endpoint::Token, 1).await;
    let own = world.two.pending_call(&signed_in.id);
    eventually("the other to wait", || world.two.waiting() == 1).await;
    gate.release();
    let for_api = within(for_api).await.unwrap().unwrap().access_token;
    let own = within(own).await.unwrap().unwrap();
    assert!(own.access_token != signed_in.access_token && own.access_token != for_api);
    assert!(session_proto::timestamp::to_ms(&own.expires_at.unwrap()) > START_MS + 300_000);
    assert_eq!((world.provider.rotations(), world.provider.reuses()), (2, 0));
}

#[tokio::test]
async fn a_resource_the_provider_does_not_know_costs_no_session() {
    let world = world_by_refresh().await;
    let signed_in = world.sign_in().await;
    world
        .provider
        .script(|script| script.unknown_resources = vec![BILLING.to_owned()]);
    let refused = ask(&world.one, for_resource(&signed_in.id, BILLING)).await;
    assert_eq!(reason(refused), ErrorReason::ErrInvalidTarget);
    assert_eq!(api_tokens(&world.one, "target"), 1);
    token(&world.one, for_resource(&signed_in.id, ORDERS)).await;
    assert_eq!(
        world.one.session(&signed_in.id).await.unwrap().state(),
        State::Active
    );
}

/// Signing in again meets the same refusal. Only a dead refresh token requires a new sign-in.
#[tokio::test]
async fn no_refusal_of_the_client_or_the_request_sends_anybody_to_sign_in() {
    let world = world_by_refresh().await;
    let signed_in = world.sign_in().await;
    for answer in [
        Answer::json(400, &json!({"error": "unauthorized_client"})),
        Answer::json(400, &json!({"error": "invalid_request"})),
        Answer::json(400, &json!({"error": "unsupported_grant_type"})),
        Answer::json(400, &json!({"error": "invalid_scope"})),
        Answer::json(200, &json!({"token_type": "N_A", "access_token": "x"})),
    ] {
        let told = format!("{answer:?}");
        world
            .provider
            .script(|script| _ = script.answers.insert(Endpoint::Token, answer));
        world.advance_ms(REMEMBERED_MS);
        let refused = ask(&world.one, for_resource(&signed_in.id, ORDERS)).await;
        assert_eq!(reason(refused), ErrorReason::ErrInvalidTarget, "{told}");
    }
    world.provider.script(|script| script.answers.clear());
    world.advance_ms(REMEMBERED_MS);
    token(&world.one, for_resource(&signed_in.id, ORDERS)).await;
}

#[tokio::test]
async fn a_dead_refresh_token_is_not_tried_for_one_api_after_the_other() {
    let world = world_by_refresh().await;
    let signed_in = world.sign_in().await;
    let orders = token(&world.one, for_resource(&signed_in.id, ORDERS)).await;
    world.provider.forget_refresh_tokens();
    for resource in [BILLING, "https://third.example/"] {
        let refused = ask(&world.one, for_resource(&signed_in.id, resource)).await;
        assert_eq!(reason(refused), ErrorReason::ErrFailedRefreshGrant);
    }
    assert_eq!(world.provider.grants("refresh_token"), 2);
    assert_eq!(
        world.one.session(&signed_in.id).await.unwrap().state(),
        State::NeedsSignIn
    );
    assert_eq!(
        token(&world.two, for_resource(&signed_in.id, ORDERS)).await,
        orders,
        "while it is good"
    );
}

/// The answer's ID token is checked as in any refresh (OpenID Connect Core, section 12.2).
#[tokio::test]
async fn an_answer_about_somebody_else_ends_the_session() {
    let world = world_by_refresh().await;
    let signed_in = world.sign_in().await;
    world
        .provider
        .script(|script| _ = script.claims.insert("sub".into(), json!("mallory")));
    let refused = ask(&world.one, for_resource(&signed_in.id, ORDERS)).await;
    assert_eq!(reason(refused), ErrorReason::ErrFailedRefreshGrant);
    assert!(world.two.session(&signed_in.id).await.is_err());
    assert_eq!(api_tokens(&world.one, "mismatched"), 1);
}

#[tokio::test]
async fn while_an_id_token_cannot_be_judged_the_rotated_token_is_kept_and_no_other_shown() {
    let world = world_by_refresh().await;
    let signed_in = world.sign_in().await;
    world.provider.rotate_keys_unpublished();
    let refused = ask(&world.one, for_resource(&signed_in.id, ORDERS)).await;
    assert_eq!(reason(refused), ErrorReason::ErrProviderUnavailable);
    world.provider.script(|script| script.jwks = None);
    world.advance_ms(60_000);
    eventually_token(&world, &signed_in.id).await;
    assert_eq!(world.provider.reuses(), 0);
}

/// Keys are fetched again after a pause.
async fn eventually_token(world: &World, id: &str) {
    let asked = async {
        while ask(&world.one, for_resource(id, ORDERS)).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    };
    within(asked).await;
}
