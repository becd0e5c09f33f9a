//! ID tokens with an unknown key: the answer is pending, and its access token stays hidden until the key is
//! known. Nothing is lost, and nothing is requested twice.

use std::sync::Arc;
use std::time::Instant;

use scripted_provider::{Answer, Claims, Endpoint, IdTokenShape, Script};
use serde_json::json;
use session_proto::timestamp;
use session_proto::v1::session::State;
use session_proto::v1::{ErrorReason, GetAccessTokenResponse};
use tonic::Code;

use super::odd_responses::{INSIDE_THE_MARGIN_MS, scene};
use super::support::*;

/// After this the first token and each later one have expired.
const EXPIRED_MS: u64 = 3_600_001;

impl World {
    fn keys_are_published(&self) {
        self.provider.script(|script| {
            script.jwks = None;
            script.answers.clear();
        });
    }

    /// Only the key is missing: callers must retry, and the provider receives no grant.
    async fn waits_for_the_key(&self, signed_in: &SignedIn) {
        let grants = self.provider.calls(Endpoint::Token);
        for replica in [&self.one, &self.two] {
            let status = replica.token(&signed_in.id).await.unwrap_err();
            assert_eq!(status.code(), Code::Unavailable);
            assert_eq!(reason(Err::<(), _>(status)), ErrorReason::ErrProviderUnavailable);
        }
        assert_eq!(self.provider.calls(Endpoint::Token), grants);
        assert_eq!(self.state(&signed_in.id).await, (State::Active, true));
    }

    /// The answer once the provider's keys are fetched again.
    async fn token_in_the_end(&self, signed_in: &SignedIn) -> GetAccessTokenResponse {
        let began = Instant::now();
        loop {
            match self.two.token(&signed_in.id).await {
                Ok(answer) => return answer,
                Err(status) => assert_eq!(status.code(), Code::Unavailable, "{status:?}"),
            }
            assert!(began.elapsed().as_secs() < 20, "still waiting for the key");
            tokio::task::yield_now().await;
        }
    }
}

/// The session's tokens have expired, and its refresh answer is pending.
async fn kept(change: impl FnOnce(&mut Script)) -> (World, SignedIn) {
    let (world, signed_in) = scene(|_| ()).await;
    world.provider.rotate_keys_unpublished();
    world.provider.script(change);
    world.advance_ms(EXPIRED_MS);
    world.waits_for_the_key_after_one_grant(&signed_in).await;
    (world, signed_in)
}

impl World {
    async fn waits_for_the_key_after_one_grant(&self, signed_in: &SignedIn) {
        let status = self.one.token(&signed_in.id).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(self.one.refreshes("unjudged"), 1);
        self.waits_for_the_key(signed_in).await;
    }
}

// conformance: A-033 B-031
#[tokio::test]
async fn an_answer_whose_key_is_not_published_yet_is_kept_and_counts_once_it_is() {
    let (world, signed_in) =
        kept(|script| _ = script.claims.insert("name".into(), json!("Alice Other"))).await;
    assert_eq!(world.provider.calls(Endpoint::Token), 1);
    let user = world.two.session(&signed_in.id).await.unwrap().user;
    let user: Claims = serde_json::from_str(&user).unwrap();
    assert_eq!(user["name"], json!("Alice Example"));

    world.keys_are_published();
    let answer = world.token_in_the_end(&signed_in).await;
    assert!(world.provider.knows_access_token(&answer.access_token));
    assert_ne!(answer.access_token, signed_in.access_token);
    assert_eq!(world.provider.calls(Endpoint::Token), 1, "the kept answer");
    let user = world.two.session(&signed_in.id).await.unwrap().user;
    let user: Claims = serde_json::from_str(&user).unwrap();
    assert_eq!(user["name"], json!("Alice Other"));
    // The rotated refresh token was not lost.
    let next = world.one.forced(&signed_in.id).await.unwrap();
    assert_ne!(next.access_token, answer.access_token);
    assert_eq!((world.provider.rotations(), world.provider.reuses()), (2, 0));
}

#[tokio::test]
async fn a_key_set_that_is_away_after_a_rotation_ends_no_session() {
    let (world, signed_in) = scene(|_| ()).await;
    world.one.forced(&signed_in.id).await.unwrap();
    world.provider.rotate_keys();
    world
        .provider
        .script(|script| _ = script.answers.insert(Endpoint::Jwks, Answer::status(503)));
    world.advance_ms(EXPIRED_MS);
    world.waits_for_the_key_after_one_grant(&signed_in).await;
    world.keys_are_published();
    world.token_in_the_end(&signed_in).await;
    assert_eq!((world.provider.rotations(), world.provider.reuses()), (2, 0));
}

#[tokio::test]
async fn a_key_that_is_a_second_late_costs_the_caller_a_second() {
    let (world, signed_in) = scene(|_| ()).await;
    world.one.forced(&signed_in.id).await.unwrap();
    world.provider.rotate_keys_unpublished();
    world.advance_ms(EXPIRED_MS);
    let gate = world.provider.hold_answers(Endpoint::Jwks);
    let pending_call = world.one.pending_call(&signed_in.id);
    world.provider.wait_for_held(Endpoint::Jwks, 1).await;
    world.keys_are_published();
    gate.release();
    let answer = within(pending_call).await.unwrap().unwrap();
    assert!(world.provider.knows_access_token(&answer.access_token));
    assert_eq!((world.provider.rotations(), world.provider.reuses()), (2, 0));
}

#[tokio::test]
async fn a_token_that_is_still_valid_is_served_while_the_answer_waits() {
    let (world, signed_in) = scene(|_| ()).await;
    world.provider.rotate_keys_unpublished();
    world.advance_ms(INSIDE_THE_MARGIN_MS);
    for _ in 0..2 {
        let served = world.one.token(&signed_in.id).await.unwrap();
        assert_eq!(served.access_token, signed_in.access_token);
        let forced = world.two.forced(&signed_in.id).await;
        assert_eq!(reason(forced), ErrorReason::ErrProviderUnavailable);
    }
    world.advance_ms(300_000 - INSIDE_THE_MARGIN_MS);
    world.waits_for_the_key(&signed_in).await;
    assert_eq!(
        (world.provider.calls(Endpoint::Token), world.provider.reuses()),
        (1, 0)
    );
}

#[tokio::test]
async fn however_many_ask_for_a_token_that_waits_one_grant_was_made() {
    let (world, signed_in) = scene(|_| ()).await;
    world.provider.rotate_keys_unpublished();
    world.advance_ms(EXPIRED_MS);
    let pending_call: Vec<_> = (0..100)
        .flat_map(|_| {
            [
                world.one.pending_call(&signed_in.id),
                world.two.pending_call(&signed_in.id),
            ]
        })
        .collect();
    for pending_call in pending_call {
        let answer = within(pending_call).await.unwrap();
        assert_eq!(reason(answer), ErrorReason::ErrProviderUnavailable);
    }
    assert_eq!(
        (world.provider.calls(Endpoint::Token), world.provider.reuses()),
        (1, 0)
    );
}

#[tokio::test]
async fn a_replica_that_starts_later_validates_what_another_stored() {
    let (world, signed_in) = kept(|_| ()).await;
    world.keys_are_published();
    let store = Arc::new(world.store.clone());
    let party = relying_party(world.provider.issuer());
    let later = replica(store, Arc::new(world.clock.clone()), party, limits()).await;
    let answer = later.token(&signed_in.id).await.unwrap();
    assert!(world.provider.knows_access_token(&answer.access_token));
    assert_eq!(world.provider.calls(Endpoint::Token), 1);
}

/// The session has ended at every replica, and the newest refresh token is revoked.
async fn is_over(world: &World, signed_in: &SignedIn) {
    for replica in [&world.one, &world.two] {
        let gone = replica.session(&signed_in.id).await;
        assert_eq!(reason(gone), ErrorReason::ErrMissingSession);
    }
    world.wait_for_revocations(1).await;
    assert_eq!(world.provider.refresh_tokens(), 0);
}

#[tokio::test]
async fn an_answer_that_turns_out_not_to_be_the_providers_ends_the_session() {
    let (world, signed_in) = kept(|script| script.id_token = IdTokenShape::UnknownKid).await;
    world.keys_are_published();
    let mut keys = world.provider.published_keys();
    keys["keys"][0]["kid"] = json!("nobody-knows-me");
    world.provider.script(|script| script.jwks = Some(keys));
    let began = Instant::now();
    let refused = loop {
        let status = world.two.token(&signed_in.id).await.unwrap_err();
        if status.code() != Code::Unavailable {
            break status;
        }
        assert!(began.elapsed().as_secs() < 20);
    };
    assert_eq!(reason(Err::<(), _>(refused)), ErrorReason::ErrFailedRefreshGrant);
    assert_eq!(world.two.refreshes("mismatched"), 1);
    is_over(&world, &signed_in).await;
}

#[tokio::test]
async fn a_session_that_ends_while_its_answer_waits_leaves_no_refresh_token() {
    let (world, signed_in) = kept(|_| ()).await;
    assert!(world.two.end(&signed_in.id).await.ended);
    is_over(&world, &signed_in).await;
    world.keys_are_published();
    let gone = world.one.token(&signed_in.id).await;
    assert_eq!(reason(gone), ErrorReason::ErrMissingSession);
}

/// A key that never appears: the session continues and is refreshed with the newest token.
#[tokio::test]
async fn an_answer_whose_access_token_has_expired_gives_way_to_another() {
    let (world, signed_in) = kept(|_| ()).await;
    world.advance_ms(EXPIRED_MS);
    let unavailable = world.one.token(&signed_in.id).await;
    assert_eq!(reason(unavailable), ErrorReason::ErrProviderUnavailable);
    world.waits_for_the_key(&signed_in).await;
    assert_eq!((world.provider.rotations(), world.provider.reuses()), (2, 0));
    // An answer validated too late is expired: it is refreshed at once.
    world.advance_ms(EXPIRED_MS);
    world.keys_are_published();
    let answer = world.token_in_the_end(&signed_in).await;
    assert!(timestamp::to_ms(&answer.expires_at.unwrap()) > START_MS + 3 * EXPIRED_MS);
    assert_eq!((world.provider.rotations(), world.provider.reuses()), (3, 0));
}

/// The claims are validated at once, whether or not the signature can be verified.
#[tokio::test]
async fn an_id_token_of_somebody_else_ends_the_session_though_no_key_is_known() {
    for (claim, value) in [
        ("sub", json!("mallory")),
        ("iss", json!("https://evil.example")),
        ("aud", json!("another-client")),
        ("azp", json!("another-client")),
        ("at_hash", json!("AAAAAAAAAAAAAAAAAAAAAA")),
        ("exp", json!(START_MS / 1_000 - 61)),
    ] {
        let (world, signed_in) = scene(|script| {
            script.answers.insert(Endpoint::Jwks, Answer::status(503));
            script.claims.insert(claim.to_owned(), value.clone());
        })
        .await;
        let refused = world.one.forced(&signed_in.id).await;
        assert_eq!(reason(refused), ErrorReason::ErrFailedRefreshGrant, "{claim}");
        assert_eq!(world.one.refreshes("mismatched"), 1, "{claim}");
        is_over(&world, &signed_in).await;
    }
}

/// OpenID Connect Core, section 12.2: a nonce, if present, is that of the sign-in.
#[tokio::test]
async fn a_refreshed_id_token_keeps_the_nonce_it_repeats() {
    let (world, _) = scene(|script| _ = script.claims.insert("nonce".into(), json!("n-1"))).await;
    let sign_in = || world.sign_in();
    let same = sign_in().await;
    world.one.forced(&same.id).await.unwrap();
    let without = sign_in().await;
    world
        .provider
        .script(|script| _ = script.claims.insert("nonce".into(), json!(null)));
    world.one.forced(&without.id).await.unwrap();
    world
        .provider
        .script(|script| _ = script.claims.insert("nonce".into(), json!("n-2")));
    let refused = world.one.forced(&same.id).await;
    assert_eq!(reason(refused), ErrorReason::ErrFailedRefreshGrant);
    let gone = world.two.session(&same.id).await;
    assert_eq!(reason(gone), ErrorReason::ErrMissingSession);
}

/// Our session ends no later than the provider's known end, and at once if that has passed.
#[tokio::test]
async fn the_session_ends_when_a_refreshed_id_token_says_so() {
    let (world, signed_in) = scene(|_| ()).await;
    let ends_at_ms = async || {
        let session = world.two.session(&signed_in.id).await.unwrap();
        timestamp::to_ms(&session.absolute_expires_at.unwrap())
    };
    let refreshed = async |ends_at_secs: u64| {
        world
            .provider
            .script(|script| _ = script.claims.insert("session_expiry".into(), json!(ends_at_secs)));
        world.one.forced(&signed_in.id).await
    };
    let now = START_MS / 1_000;
    for (says, ends_at) in [
        (now + 7_200, now + 7_200),
        (now + 3_600, now + 3_600),
        (now + 7_200, now + 3_600),
    ] {
        refreshed(says).await.unwrap();
        assert_eq!(ends_at_ms().await, ends_at * 1_000, "{}", says - now);
    }
    let over = refreshed(now - 1).await;
    assert_eq!(reason(over), ErrorReason::ErrMissingSession);
    let gone = world.two.session(&signed_in.id).await;
    assert_eq!(reason(gone), ErrorReason::ErrMissingSession);
}
