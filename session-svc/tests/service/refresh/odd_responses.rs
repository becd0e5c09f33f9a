//! Every unusual answer a provider may give to a refresh, over the real HTTP client and real gRPC.

use scripted_provider::{Answer, Claims, Endpoint, IdTokenShape, Script};
use serde_json::json;
use session_proto::timestamp;
use session_proto::v1::session::State;
use session_proto::v1::{self, ErrorReason};
use tonic::Code;

use super::support::*;

/// Just past the start of the 60 s margin. The first token expires after 300 s.
pub(crate) const INSIDE_THE_MARGIN_MS: u64 = 240_001;

/// A signed-in user, at a provider that answers refreshes as scripted.
pub(crate) async fn scene(change: impl FnOnce(&mut Script)) -> (World, SignedIn) {
    let world = world().await;
    let signed_in = world.sign_in().await;
    world.provider.script(change);
    (world, signed_in)
}

/// The same with a refresh response that lacks a member.
async fn without(member: &str) -> (World, SignedIn) {
    scene(|script| _ = script.refresh.insert(member.to_owned(), json!(null))).await
}

impl World {
    /// The refresh token sent last.
    fn sent(&self) -> String {
        let request = self.provider.last_request(Endpoint::Token);
        request.param("refresh_token").unwrap().to_owned()
    }

    pub(crate) async fn state(&self, id: &str) -> (State, bool) {
        let session = self.two.session(id).await.unwrap();
        (session.state(), session.has_refresh_token)
    }

    /// The session refreshes with this token.
    pub(crate) async fn refreshes_with(&self, signed_in: &SignedIn, refresh_token: &str) {
        let answer = self.two.forced(&signed_in.id).await.unwrap();
        assert!(self.provider.knows_access_token(&answer.access_token));
        assert_ne!(answer.access_token, signed_in.access_token);
        assert_eq!(self.sent(), refresh_token);
        assert_eq!(self.provider.reuses(), 0);
    }
}

// conformance: B-108
#[tokio::test]
async fn without_a_refresh_token_the_old_one_is_kept() {
    let (world, signed_in) = without("refresh_token").await;
    world
        .provider
        .script(|script| script.rotate_refresh_tokens = false);
    world.refreshes_with(&signed_in, &signed_in.refresh_token).await;
    world.refreshes_with(&signed_in, &signed_in.refresh_token).await;
    assert_eq!(world.state(&signed_in.id).await, (State::Active, true));
}

// conformance: A-049 B-108
#[tokio::test]
async fn with_a_new_refresh_token_the_old_one_is_not_used_again() {
    let (world, signed_in) = scene(|_| ()).await;
    world.refreshes_with(&signed_in, &signed_in.refresh_token).await;
    world.one.forced(&signed_in.id).await.unwrap();
    assert_ne!(world.sent(), signed_in.refresh_token);
    assert_eq!(world.provider.reuses(), 0);
}

#[tokio::test]
async fn without_an_id_token_the_person_and_the_hint_are_kept() {
    let (world, signed_in) = without("id_token").await;
    let before = world.one.session(&signed_in.id).await.unwrap();
    world.one.forced(&signed_in.id).await.unwrap();
    let after = world.two.session(&signed_in.id).await.unwrap();
    assert_eq!(after.user, before.user);
    assert_eq!(
        world.one.end(&signed_in.id).await.id_token_hint,
        signed_in.id_token
    );
}

// conformance: A-058
#[tokio::test]
async fn a_new_id_token_brings_the_person_up_to_date_and_becomes_the_hint() {
    let (world, signed_in) = scene(|script| {
        script.claims.insert("name".into(), json!("Alice Other"));
        script
            .claims
            .insert("azp".into(), json!(scripted_provider::CLIENT_ID));
        script.claims.insert("team".into(), json!("blue"));
    })
    .await;
    world.one.forced(&signed_in.id).await.unwrap();
    let user = world.two.session(&signed_in.id).await.unwrap().user;
    let user: Claims = serde_json::from_str(&user).unwrap();
    assert_eq!(user["name"], json!("Alice Other"));
    assert_eq!(user["team"], json!("blue"), "what is new comes in");
    for name in ["aud", "azp"] {
        assert!(
            !user.contains_key(name),
            "claims of the protocol stay out: {name}"
        );
    }
    let hint = world.one.end(&signed_in.id).await.id_token_hint;
    assert!(hint != signed_in.id_token && hint.split('.').count() == 3);
}

/// Providers may answer with the latest sign-in, even another browser's (Core, section 12.2).
#[tokio::test]
async fn the_session_keeps_the_sign_in_it_came_from_whatever_a_refreshed_id_token_says() {
    let now = START_MS / 1_000;
    for keeps_id_token in [true, false] {
        let world = world().await;
        let mut request = request(&world.provider.sign_in(SCOPE), world.provider.issuer(), START_MS);
        request.authenticated_at = Some(timestamp::from_ms(START_MS));
        request.user = json!({ "sub": "alice", "acr": "gold", "amr": ["otp"] }).to_string();
        if let (Some(tokens), false) = (&mut request.tokens, keeps_id_token) {
            tokens.id_token.clear();
        }
        let id = signed_in(&world.one.client, request).await.id;
        let before = world.one.session(&id).await.unwrap();
        for auth_time in [
            json!(now + 1),
            json!(now - 3_600),
            json!(now + 86_400),
            json!(null),
            json!("soon"),
        ] {
            world.provider.script(|script| {
                script.claims.insert("auth_time".into(), auth_time.clone());
                script.claims.insert("acr".into(), json!("0"));
                script.claims.insert("amr".into(), json!(["pwd"]));
            });
            let refreshed = world.one.forced(&id).await;
            assert!(refreshed.is_ok(), "{auth_time}: {refreshed:?}");
            let after = world.two.session(&id).await.unwrap();
            assert_eq!(after.authenticated_at, before.authenticated_at, "{auth_time}");
            let claims = |user: &str| serde_json::from_str::<Claims>(user).unwrap();
            assert_eq!(claims(&after.user), claims(&before.user), "{auth_time}");
        }
        assert_eq!(world.one.refreshes("mismatched"), 0);
        assert_eq!(world.provider.calls(Endpoint::Revocation), 0);
    }
}

/// A class that only a later sign-in had does not apply to the session.
#[tokio::test]
async fn a_refreshed_id_token_adds_no_class_to_a_session_without_one() {
    let (world, signed_in) = scene(|script| _ = script.claims.insert("acr".into(), json!("gold"))).await;
    world.one.forced(&signed_in.id).await.unwrap();
    world.one.forced(&signed_in.id).await.unwrap();
    let user = world.two.session(&signed_in.id).await.unwrap().user;
    assert!(!user.contains("acr"), "{user}");
}

#[tokio::test]
async fn without_a_scope_the_scope_is_kept() {
    let (world, signed_in) = without("scope").await;
    let answer = world.one.forced(&signed_in.id).await.unwrap();
    assert_eq!(answer.scope, SCOPE);
}

// conformance: B-109
#[tokio::test]
async fn a_narrower_scope_counts_from_now_on() {
    let (world, signed_in) = scene(|script| {
        script.refresh.insert("scope".into(), json!("openid"));
    })
    .await;
    let request = v1::GetAccessTokenRequest {
        session_id: signed_in.id.clone(),
        scopes: vec!["email".to_owned()],
        force_refresh: true,
        ..Default::default()
    };
    let refused = world.one.client.clone().get_access_token(request).await;
    assert_eq!(reason(refused), ErrorReason::ErrInsufficientScope);
    assert_eq!(world.one.token(&signed_in.id).await.unwrap().scope, "openid");
}

#[tokio::test]
async fn without_a_lifetime_the_configured_one_is_assumed() {
    let (world, signed_in) = without("expires_in").await;
    let answer = world.one.forced(&signed_in.id).await.unwrap();
    let lives_ms = timestamp::to_ms(&answer.expires_at.unwrap()) - START_MS;
    assert_eq!(lives_ms, oidc::DEFAULT_TOKEN_LIFETIME_SECS * 1_000);
}

#[tokio::test]
async fn without_an_access_token_the_grant_failed_and_the_old_tokens_are_kept() {
    for patch in [("access_token", json!(null)), ("token_type", json!("mac"))] {
        let (world, signed_in) = scene(|script| {
            script.rotate_refresh_tokens = false;
            script.refresh.insert(patch.0.into(), patch.1.clone());
        })
        .await;
        let refused = world.one.forced(&signed_in.id).await;
        assert_eq!(reason(refused), ErrorReason::ErrFailedRefreshGrant);
        assert_eq!(world.one.refreshes("unusable"), 1);
        assert_eq!(world.state(&signed_in.id).await, (State::Active, true));
        let old = world.one.token(&signed_in.id).await.unwrap();
        assert_eq!(old.access_token, signed_in.access_token);
        world.provider.script(|script| script.refresh.clear());
        world.refreshes_with(&signed_in, &signed_in.refresh_token).await;
    }
}

/// The session ends, and the refresh token received last is revoked.
async fn ends_the_session(what: &str, change: impl FnOnce(&mut Script)) {
    let (world, signed_in) = scene(change).await;
    let refused = world.one.forced(&signed_in.id).await;
    assert_eq!(reason(refused), ErrorReason::ErrFailedRefreshGrant, "{what}");
    assert_eq!(world.one.refreshes("mismatched"), 1, "{what}");
    for replica in [&world.one, &world.two] {
        let gone = replica.session(&signed_in.id).await;
        assert_eq!(reason(gone), ErrorReason::ErrMissingSession, "{what}");
    }
    world.wait_for_revocations(1).await;
    let revoked = world.provider.last_request(Endpoint::Revocation);
    assert_ne!(
        revoked.param("token"),
        Some(signed_in.refresh_token.as_str()),
        "{what}"
    );
}

#[tokio::test]
async fn an_id_token_of_somebody_or_somewhere_else_ends_the_session() {
    for (claim, value) in [
        ("sub", json!("mallory")),
        ("iss", json!("https://evil.example")),
        ("aud", json!("another-client")),
        ("sub", json!(null)),
        ("iss", json!(null)),
    ] {
        let patch: Claims = [(claim.to_owned(), value.clone())].into_iter().collect();
        ends_the_session(&format!("{claim} {value}"), |script| script.claims = patch).await;
    }
}

#[tokio::test]
async fn an_id_token_that_is_not_the_providers_ends_the_session() {
    for shape in [
        IdTokenShape::BadSignature,
        IdTokenShape::AlgNone,
        IdTokenShape::Hs256WithPublicKey,
        IdTokenShape::EmbeddedJwk,
        IdTokenShape::Raw("no token".to_owned()),
    ] {
        ends_the_session(&format!("{shape:?}"), |script| script.id_token = shape.clone()).await;
    }
}

#[tokio::test]
async fn a_session_that_ended_so_does_not_come_back_when_its_creation_is_repeated() {
    let world = world().await;
    let tokens = world.provider.sign_in(SCOPE);
    let creation = v1::CreateSessionRequest {
        request_id: "6f1c8a52-3d0e-4b7f-9a64-0c2d5e8b7a10".to_owned(),
        ..request(&tokens, world.provider.issuer(), START_MS + 300_000)
    };
    let id = signed_in(&world.one.client, creation.clone()).await.id;
    world
        .provider
        .script(|script| script.id_token = IdTokenShape::BadSignature);
    let refused = world.one.forced(&id).await;
    assert_eq!(reason(refused), ErrorReason::ErrFailedRefreshGrant);
    let again = world.two.client.clone().create_session(creation).await;
    assert_eq!(reason(again), ErrorReason::ErrMissingSession);
    assert_eq!(
        reason(world.two.session(&id).await),
        ErrorReason::ErrMissingSession
    );
}

/// A new process that cannot fetch the keys keeps the answer until it can.
#[tokio::test]
async fn keys_out_of_reach_cost_neither_the_session_nor_the_id_token() {
    let (world, signed_in) = scene(|script| {
        script.answers.insert(Endpoint::Jwks, Answer::status(503));
        script.claims.insert("name".into(), json!("Alice Other"));
    })
    .await;
    let before = world.one.session(&signed_in.id).await.unwrap();
    let unavailable = world.one.forced(&signed_in.id).await;
    assert_eq!(reason(unavailable), ErrorReason::ErrProviderUnavailable);
    let after = world.two.session(&signed_in.id).await.unwrap();
    assert_eq!(after.user, before.user);
    world.provider.script(|script| script.answers.clear());
    world.advance_ms(INSIDE_THE_MARGIN_MS);
    eventually_refreshed(&world, &signed_in).await;
    let user = world.two.session(&signed_in.id).await.unwrap().user;
    let user: Claims = serde_json::from_str(&user).unwrap();
    assert_eq!(user["name"], json!("Alice Other"));
    assert_eq!((world.provider.rotations(), world.provider.reuses()), (1, 0));
    let hint = world.one.end(&signed_in.id).await.id_token_hint;
    assert_ne!(hint, signed_in.id_token);
}

/// Asks until the token changes: right after a failed fetch, the keys are not fetched again.
async fn eventually_refreshed(world: &World, signed_in: &SignedIn) {
    let fresh = async {
        while world.one.token(&signed_in.id).await.unwrap().access_token == signed_in.access_token {}
    };
    within(fresh).await;
}

#[tokio::test]
async fn keys_that_were_rotated_meanwhile_are_fetched() {
    let (world, signed_in) = scene(|_| ()).await;
    world.one.forced(&signed_in.id).await.unwrap();
    world.provider.rotate_keys();
    world.advance_ms(120_000);
    world.one.forced(&signed_in.id).await.unwrap();
    assert_eq!(world.state(&signed_in.id).await, (State::Active, true));
}

// conformance: B-031 B-054
#[tokio::test]
async fn an_invalid_grant_needs_a_sign_in_and_is_not_tried_again() {
    let (world, signed_in) = scene(|script| script.refresh_error = Some("invalid_grant".into())).await;
    world.advance_ms(INSIDE_THE_MARGIN_MS);
    let refused = world.one.token(&signed_in.id).await;
    let status = refused.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(reason(Err::<(), _>(status)), ErrorReason::ErrFailedRefreshGrant);
    assert_eq!(world.state(&signed_in.id).await, (State::NeedsSignIn, false));
    world.provider.reset();
    for replica in [&world.one, &world.two] {
        assert_eq!(
            reason(replica.token(&signed_in.id).await),
            ErrorReason::ErrFailedRefreshGrant
        );
        assert_eq!(
            reason(replica.forced(&signed_in.id).await),
            ErrorReason::ErrFailedRefreshGrant
        );
    }
    assert_eq!(world.provider.calls(Endpoint::Token), 1);
    assert_eq!(world.one.refreshes("refused"), 1);
}

#[tokio::test]
async fn other_refusals_are_not_final() {
    for error in [
        "invalid_client",
        "unauthorized_client",
        "invalid_scope",
        "invalid_request",
    ] {
        let (world, signed_in) = scene(|script| script.refresh_error = Some(error.into())).await;
        let refused = world.one.forced(&signed_in.id).await;
        assert_eq!(reason(refused), ErrorReason::ErrFailedRefreshGrant, "{error}");
        assert_eq!(world.state(&signed_in.id).await, (State::Active, true), "{error}");
        assert_eq!(world.one.refreshes("rejected"), 1, "{error}");
        world.provider.reset();
        world.refreshes_with(&signed_in, &signed_in.refresh_token).await;
    }
}

/// As in an outage: changing the client secret ends no session.
#[tokio::test]
async fn while_this_client_is_refused_the_old_token_serves_to_its_end() {
    for answer in [
        Answer::json(401, &json!({ "error": "invalid_client" })),
        Answer::json(400, &json!({ "error": "invalid_request" })),
        Answer::json(401, &json!({ "error": "Unauthorized", "message": "too early" })),
        Answer::status(401),
        Answer::text(403, "text/html", "<h1>Forbidden</h1>"),
        Answer::json(200, &json!({})),
    ] {
        let (world, signed_in) =
            scene(|script| _ = script.answers.insert(Endpoint::Token, answer.clone())).await;
        world.advance_ms(INSIDE_THE_MARGIN_MS);
        // The second call meets the pause after the first.
        for _ in 0..2 {
            let served = world.one.token(&signed_in.id).await.unwrap();
            assert_eq!(served.access_token, signed_in.access_token, "{answer:?}");
        }
        assert_eq!(world.state(&signed_in.id).await, (State::Active, true));
        world.provider.reset();
        world.refreshes_with(&signed_in, &signed_in.refresh_token).await;
    }
}

/// Providers may answer a dead grant this way: no session ends, and a week of retries costs little.
#[tokio::test]
async fn a_status_that_oauth_does_not_have_is_an_outage_whose_next_tries_wait_longer() {
    for status in [402, 404, 405, 410, 422] {
        let answer = Answer::json(
            status,
            &json!({ "error": "NotFound", "message": "no such session" }),
        );
        let (world, signed_in) = scene(|script| _ = script.answers.insert(Endpoint::Token, answer)).await;
        world.advance_ms(INSIDE_THE_MARGIN_MS);
        let served = world.one.token(&signed_in.id).await.unwrap();
        assert_eq!(served.access_token, signed_in.access_token, "{status}");
        world.advance_ms(60_000);
        let before = world.provider.calls(Endpoint::Token);
        for _ in 0..5 {
            let refused = world.one.token(&signed_in.id).await;
            assert_eq!(reason(refused), ErrorReason::ErrProviderUnavailable, "{status}");
        }
        assert_eq!(world.provider.calls(Endpoint::Token) - before, 1, "{status}");
        assert_eq!(
            world.state(&signed_in.id).await,
            (State::Active, true),
            "{status}"
        );
        world.provider.reset();
        world.advance_ms(30_000);
        world.refreshes_with(&signed_in, &signed_in.refresh_token).await;
    }
}

#[tokio::test]
async fn a_token_that_is_short_lived_is_served_as_it_came() {
    let world = world().await;
    let signed_in = world.sign_in().await;
    world
        .provider
        .script(|script| _ = script.refresh.insert("expires_in".into(), json!(0)));
    let answer = world.one.forced(&signed_in.id).await.unwrap();
    assert!(world.provider.knows_access_token(&answer.access_token));
    assert_eq!(timestamp::to_ms(&answer.expires_at.unwrap()), START_MS);
}

#[tokio::test]
async fn what_only_a_sign_in_mends_needs_one_and_is_not_tried_again() {
    for (status, code) in [
        (400, "interaction_required"),
        (400, "login_required"),
        (400, "consent_required"),
        (400, "account_selection_required"),
        (200, "invalid_grant"),
        (200, "session_expired"),
    ] {
        let answer = Answer::json(status, &json!({ "error": code }));
        let (world, signed_in) =
            scene(|script| _ = script.answers.insert(Endpoint::Token, answer.clone())).await;
        world.advance_ms(INSIDE_THE_MARGIN_MS);
        let before = world.provider.calls(Endpoint::Token);
        for _ in 0..30 {
            let refused = world.one.token(&signed_in.id).await;
            assert_eq!(
                reason(refused),
                ErrorReason::ErrFailedRefreshGrant,
                "{status} {code}"
            );
        }
        let state = world.state(&signed_in.id).await;
        assert_eq!(state, (State::NeedsSignIn, false), "{status} {code}");
        assert_eq!(
            world.provider.calls(Endpoint::Token) - before,
            1,
            "{status} {code}"
        );
    }
}

#[tokio::test]
async fn another_refusal_makes_the_next_tries_wait_longer_and_longer() {
    for unusable in [false, true] {
        let (world, signed_in) = scene(|script| match unusable {
            false => script.refresh_error = Some("invalid_request".into()),
            true => _ = script.refresh.insert("access_token".into(), json!(null)),
        })
        .await;
        world
            .provider
            .script(|script| script.rotate_refresh_tokens = false);
        let calls = || world.provider.calls(Endpoint::Token);
        let before = calls();
        for (asked, wait_ms) in [(1, 1_000), (2, 2_000), (3, 4_000)] {
            for _ in 0..10 {
                let refused = world.one.forced(&signed_in.id).await;
                assert_eq!(reason(refused), ErrorReason::ErrFailedRefreshGrant);
            }
            assert_eq!(calls() - before, asked, "unusable: {unusable}");
            world.advance_ms(wait_ms);
        }
        assert_eq!(world.state(&signed_in.id).await, (State::Active, true));
        world.provider.script(|script| {
            script.refresh_error = None;
            script.refresh.clear();
        });
        world.one.forced(&signed_in.id).await.unwrap();
    }
}

#[tokio::test]
async fn a_token_of_a_minute_or_less_is_good_for_half_of_its_life() {
    for secs in [30, 60, 90] {
        let (world, signed_in) =
            scene(|script| _ = script.refresh.insert("expires_in".into(), json!(secs))).await;
        let token = world.one.forced(&signed_in.id).await.unwrap().access_token;
        let half_ms = secs * 1_000 / 2;
        world.advance_ms(half_ms);
        for replica in [&world.one, &world.two] {
            assert_eq!(
                replica.token(&signed_in.id).await.unwrap().access_token,
                token,
                "{secs}"
            );
        }
        world.advance_ms(1);
        assert_ne!(
            world.two.token(&signed_in.id).await.unwrap().access_token,
            token,
            "{secs}"
        );
    }
}
