//! Sessions in use are revalidated even if no caller needs a token. They end if the provider refuses.

use scripted_provider::{Answer, Endpoint};
use serde_json::json;
use session_proto::v1::session::State;
use session_proto::v1::session_event::Kind;
use session_proto::v1::{self, ErrorReason};
use session_svc::sessions::SessionLimits;

use super::support::*;

const REVALIDATE_MS: u64 = 900_000;

fn revalidating() -> SessionLimits {
    SessionLimits {
        revalidate_ms: REVALIDATE_MS,
        ..limits()
    }
}

async fn scene() -> (World, SignedIn) {
    let world = world_with(revalidating()).await;
    let signed_in = world.sign_in().await;
    (world, signed_in)
}

impl World {
    fn refuses(&self) {
        self.provider
            .script(|script| script.refresh_error = Some("invalid_grant".into()));
    }

    async fn has_ended(&self, id: &str) {
        eventually("the ending", || self.ended("refused") == 1).await;
        for replica in [&self.one, &self.two] {
            assert_eq!(reason(replica.session(id).await), ErrorReason::ErrMissingSession);
        }
    }

    fn ended(&self, cause: &str) -> u64 {
        let ended = |replica: &Replica| replica.counted("sessions_ended_total", cause);
        ended(&self.one) + ended(&self.two)
    }
}

// conformance: B-054
#[tokio::test]
async fn a_session_in_use_whose_grant_is_refused_ends_though_nobody_needs_a_token() {
    let (world, signed_in) = scene().await;
    world.refuses();
    world.advance_ms(REVALIDATE_MS - 1);
    world.one.roll(&signed_in.id).await;
    assert_eq!(world.provider.calls(Endpoint::Token), 0, "it is not time");
    world.advance_ms(1);
    world.two.roll(&signed_in.id).await;
    world.has_ended(&signed_in.id).await;
    assert_eq!(world.two.refreshes("refused"), 1);
}

#[tokio::test]
async fn a_session_that_is_confirmed_stays_and_costs_one_grant_in_the_time() {
    let (world, signed_in) = scene().await;
    for round in 1..=3 {
        world.advance_ms(REVALIDATE_MS);
        for _ in 0..5 {
            world.one.roll(&signed_in.id).await;
            world.two.roll(&signed_in.id).await;
        }
        let refreshed = || world.one.refreshes("refreshed") + world.two.refreshes("refreshed");
        eventually("the refresh", || refreshed() == round).await;
        world.one.roll(&signed_in.id).await;
        world.advance_ms(60_000);
        world.two.roll(&signed_in.id).await;
        assert_eq!(
            u64::try_from(world.provider.calls(Endpoint::Token)).unwrap(),
            round
        );
        assert_eq!(world.provider.reuses(), 0);
    }
}

#[tokio::test]
async fn a_session_bound_to_a_device_ends_too_and_its_watchers_learn_why() {
    let (mut world, signed_in) = scene().await;
    let bind = v1::BindSessionRequest {
        session_id: signed_in.id.clone(),
        jwk: json!({"kty": "EC", "crv": "P-256", "x": "AA", "y": "BB"}).to_string(),
    };
    world.one.client.bind_session(bind).await.unwrap();
    let everything = v1::WatchSessionsRequest::default();
    let watch = world.two.client.watch_sessions(everything).await.unwrap();
    let mut events = watch.into_inner();
    world.refuses();
    world.advance_ms(REVALIDATE_MS);
    world.one.roll(&signed_in.id).await;
    let ended = loop {
        let event = events.message().await.unwrap().unwrap();
        if event.kind() == Kind::Ended {
            break event;
        }
    };
    assert_eq!(ended.cause(), v1::Cause::Refused);
    world.has_ended(&signed_in.id).await;
}

#[tokio::test]
async fn a_refresh_that_a_caller_waits_for_ends_a_refused_session_too() {
    let (world, signed_in) = scene().await;
    world.refuses();
    let refused = world.one.forced(&signed_in.id).await;
    assert_eq!(reason(refused), ErrorReason::ErrFailedRefreshGrant);
    world.has_ended(&signed_in.id).await;
}

#[tokio::test]
async fn an_outage_or_a_refused_client_ends_nothing_and_the_next_tries_wait_longer() {
    for answer in [
        Answer::status(503),
        Answer::json(404, &json!({ "error": "NotFound" })),
        Answer::json(401, &json!({ "error": "invalid_client" })),
        Answer::json(200, &json!({})),
    ] {
        let (world, signed_in) = scene().await;
        world
            .provider
            .script(|script| _ = script.answers.insert(Endpoint::Token, answer.clone()));
        world.advance_ms(REVALIDATE_MS);
        let failed = || world.one.counted("session_refreshes_ahead_total", "failed");
        // Pauses of 30 s, 60 s and 120 s.
        for (after_ms, tries) in [
            (0, 1),
            (29_999, 1),
            (1, 2),
            (59_999, 2),
            (1, 3),
            (119_999, 3),
            (1, 4),
        ] {
            world.advance_ms(after_ms);
            let over = || {
                let tried = world.one.counted("session_refreshes_ahead_total", "tried_before");
                tried + failed()
            };
            let before = over();
            world.one.roll(&signed_in.id).await;
            eventually("the try to be over", || over() == before + 1).await;
            assert_eq!(failed(), tries, "{after_ms}");
        }
        assert_eq!(world.state(&signed_in.id).await, (State::Active, true));
        world.provider.script(|script| script.answers.clear());
        world.advance_ms(REVALIDATE_MS);
        world.one.roll(&signed_in.id).await;
        eventually("the refresh", || world.one.refreshes("refreshed") == 1).await;
    }
}

#[tokio::test]
async fn a_session_without_a_refresh_token_is_not_asked_about() {
    let world = world_with(revalidating()).await;
    let mut request = request(&world.provider.sign_in(SCOPE), world.provider.issuer(), START_MS);
    if let Some(tokens) = &mut request.tokens {
        tokens.refresh_token.clear();
    }
    let id = signed_in(&world.one.client, request).await.id;
    world.refuses();
    world.advance_ms(REVALIDATE_MS);
    world.one.roll(&id).await;
    assert!(world.two.session(&id).await.is_ok());
    assert_eq!(world.one.counted("session_refreshes_ahead_total", "failed"), 0);
    assert_eq!(world.provider.calls(Endpoint::Token), 0);
}

#[tokio::test]
async fn a_session_that_was_refused_before_sessions_were_revalidated_ends_when_it_is_used() {
    let (world, signed_in) = scene().await;
    let party = relying_party(world.provider.issuer());
    let store = std::sync::Arc::new(world.store.clone());
    let clock = std::sync::Arc::new(world.clock.clone());
    let before = replica(store, clock, party, limits()).await;
    world.refuses();
    let refused = before.forced(&signed_in.id).await;
    assert_eq!(reason(refused), ErrorReason::ErrFailedRefreshGrant);
    assert_eq!(world.state(&signed_in.id).await, (State::NeedsSignIn, false));
    world.one.roll(&signed_in.id).await;
    world.has_ended(&signed_in.id).await;
}
