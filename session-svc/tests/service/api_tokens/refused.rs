//! A refused request is not retried for a moment. The refusal applies to no other session or API.

use scripted_provider::{Answer, Endpoint};
use session_proto::v1::{ErrorReason, GetAccessTokenRequest};

use super::support::*;
use crate::refresh::support::*;

async fn refused(world: &World, request: GetAccessTokenRequest) -> ErrorReason {
    reason(ask(&world.one, request).await)
}

fn asked(world: &World) -> usize {
    of_grant(&world.provider, EXCHANGE).len()
}

#[tokio::test]
async fn an_api_the_provider_refuses_costs_one_request_in_half_a_minute() {
    for (error, expected) in [
        ("invalid_target", ErrorReason::ErrInvalidTarget),
        ("invalid_scope", ErrorReason::ErrInsufficientScope),
        ("unsupported_grant_type", ErrorReason::ErrFailedTokenExchange),
    ] {
        let world = world().await;
        let (alice, bob) = (world.sign_in().await, world.sign_in().await);
        world
            .provider
            .script(|script| script.exchange_error = Some(error.to_owned()));
        let request = for_audience(&alice.id, "orders", &["read"]);
        for _ in 0..5 {
            assert_eq!(refused(&world, request.clone()).await, expected, "{error}");
        }
        assert_eq!(asked(&world), 1, "{error}");
        for other in [
            for_audience(&bob.id, "orders", &["read"]),
            for_audience(&alice.id, "billing", &["read"]),
            for_audience(&alice.id, "orders", &["read", "write"]),
        ] {
            let before = asked(&world);
            assert_eq!(refused(&world, other).await, expected, "{error}");
            assert_eq!(asked(&world), before + 1, "asked for itself");
        }
        world.provider.script(|script| script.exchange_error = None);
        world.advance_ms(REMEMBERED_MS - 1);
        assert_eq!(refused(&world, request.clone()).await, expected, "{error}");
        world.advance_ms(1);
        ask(&world.one, request).await.unwrap();
    }
}

#[tokio::test]
async fn after_a_refresh_of_the_session_the_provider_is_asked_again() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    world
        .provider
        .script(|script| script.exchange_error = Some("invalid_target".to_owned()));
    let request = for_audience(&signed_in.id, "orders", &[]);
    assert_eq!(
        refused(&world, request.clone()).await,
        ErrorReason::ErrInvalidTarget
    );
    world.provider.script(|script| script.exchange_error = None);
    world.one.forced(&signed_in.id).await.unwrap();
    ask(&world.one, request).await.unwrap();
}

#[tokio::test]
async fn an_outage_is_not_remembered_as_a_refusal() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    let request = for_audience(&signed_in.id, "orders", &[]);
    world
        .provider
        .script(|script| _ = script.answers.insert(Endpoint::Token, Answer::status(503)));
    for _ in 0..2 {
        assert_eq!(
            refused(&world, request.clone()).await,
            ErrorReason::ErrProviderUnavailable
        );
    }
    world.provider.script(|script| script.answers.clear());
    ask(&world.one, request).await.unwrap();
}
