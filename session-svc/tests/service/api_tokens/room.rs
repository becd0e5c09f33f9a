//! API tokens of a session are limited in size.

use serde_json::json;
use session_proto::v1::UpdateSessionRequest;
use session_svc::sessions::SessionLimits;

use super::support::*;
use crate::refresh::support::*;

fn small() -> SessionLimits {
    SessionLimits {
        max_bytes: 4_096,
        ..limits()
    }
}

/// Lets tokens for APIs take that many bytes.
fn tokens_of(world: &World, bytes: usize) {
    let token = format!("big-{}", "x".repeat(bytes));
    world
        .provider
        .script(|script| _ = script.exchange.insert("access_token".into(), json!(token)));
}

#[tokio::test]
async fn the_oldest_go_where_there_is_no_room_for_all() {
    let world = world_with(small()).await;
    let signed_in = world.sign_in().await;
    tokens_of(&world, 900);
    for audience in ["a", "b", "c", "d"] {
        token(&world.one, for_audience(&signed_in.id, audience, &[])).await;
    }
    assert_eq!(exchanges(&world), 4);
    token(&world.two, for_audience(&signed_in.id, "d", &[])).await;
    assert_eq!(exchanges(&world), 4, "the newest is kept");
    token(&world.two, for_audience(&signed_in.id, "a", &[])).await;
    assert_eq!(exchanges(&world), 5, "the oldest is not");
}

#[tokio::test]
async fn a_token_that_does_not_fit_is_handed_out_and_leaves_the_others() {
    let world = world_with(small()).await;
    let signed_in = world.sign_in().await;
    token(&world.one, for_audience(&signed_in.id, "a", &[])).await;
    tokens_of(&world, 5_000);
    for count in 2..4 {
        let huge = token(&world.one, for_audience(&signed_in.id, "huge", &[])).await;
        assert!(huge.len() > 5_000);
        assert_eq!(exchanges(&world), count, "each call requests one");
    }
    token(&world.one, for_audience(&signed_in.id, "a", &[])).await;
    assert_eq!(exchanges(&world), 3);
}

#[tokio::test]
async fn what_callers_want_remembered_comes_before_tokens_that_can_be_had_again() {
    let world = world_with(small()).await;
    let signed_in = world.sign_in().await;
    tokens_of(&world, 1_500);
    token(&world.one, for_audience(&signed_in.id, "a", &[])).await;
    let request = UpdateSessionRequest {
        session_id: signed_in.id.clone(),
        attributes: json!({"note": "y".repeat(1_500)}).to_string(),
        ..Default::default()
    };
    world.one.client.clone().update_session(request).await.unwrap();
    assert!(world.two.session(&signed_in.id).await.unwrap().attributes.len() > 1_500);
}

#[tokio::test]
async fn an_expired_token_is_not_shown_in_the_place_of_one_that_has_no_room() {
    let world = world_with(small()).await;
    let signed_in = world.sign_in().await;
    let before = token(&world.one, for_audience(&signed_in.id, "a", &[])).await;
    world.advance_ms(3_600_000);
    tokens_of(&world, 5_000);
    for count in 2..4 {
        let huge = token(&world.one, for_audience(&signed_in.id, "a", &[])).await;
        assert!(huge != before && huge.len() > 5_000);
        assert_eq!(exchanges(&world), count, "each call requests one");
    }
}
