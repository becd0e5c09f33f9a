//! Back-channel logout, module by module.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::support::{Answer, Browser, Stack};

async fn send(stack: &Stack, token: &str) -> Answer {
    let answer = stack
        .browser()
        .post(
            "/api/auth/backchannel-logout",
            &[],
            &format!("logout_token={token}"),
        )
        .await;
    assert_eq!(answer.header("cache-control"), "no-store");
    answer
}

async fn signed_in() -> (Stack, Browser) {
    let stack = Stack::start().await;
    stack
        .provider
        .script(|script| script.sid = Some("sid-1".to_owned()));
    let mut browser = stack.browser();
    browser.sign_in().await;
    (stack, browser)
}

async fn rejected(header: Value, claims: Value) {
    let (stack, mut browser) = signed_in().await;
    let mut good = json!({ "sub": "alice", "sid": "sid-1" });
    good.as_object_mut()
        .unwrap()
        .extend(claims.as_object().unwrap().clone());
    let token = stack.provider.logout_token_with_header(header, good);
    let answer = send(&stack, &token).await;
    assert_eq!(answer.status, 400, "{claims}");
    assert!(answer.json()["error"].is_string() && !answer.body.contains(&token));
    assert_eq!(browser.get("/api/auth/me").await.status, 200, "{claims}");
}

// conformance: A-059 A-060
#[tokio::test]
async fn a_good_token_with_claims_nobody_knows_ends_the_session_before_the_answer() {
    let (stack, mut browser) = signed_in().await;
    let token = stack
        .provider
        .logout_token(json!({ "sub": "alice", "sid": "sid-1", "extra": { "a": 1 } }));
    assert_eq!(send(&stack, &token).await.status, 200);
    assert_eq!(browser.get("/api/auth/me").await.status, 204);
}

// conformance: A-061
#[tokio::test]
async fn an_unsigned_token_ends_nothing() {
    let (stack, mut browser) = signed_in().await;
    let token = stack
        .provider
        .logout_token(json!({ "sub": "alice", "sid": "sid-1" }));
    let claims = token.split('.').nth(1).unwrap();
    for header in [
        json!({ "alg": "none", "typ": "logout+jwt" }),
        json!({ "alg": "None" }),
        json!({}),
    ] {
        let unsigned = format!("{}.{claims}.", URL_SAFE_NO_PAD.encode(header.to_string()));
        assert_eq!(send(&stack, &unsigned).await.status, 400, "{header}");
    }
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
}

// conformance: A-062
#[tokio::test]
async fn without_the_event_a_token_ends_nothing() {
    rejected(json!({}), json!({ "events": null })).await;
    rejected(json!({}), json!({ "events": {} })).await;
}

// conformance: A-064
#[tokio::test]
async fn with_a_nonce_a_token_ends_nothing() {
    rejected(json!({}), json!({ "nonce": "n" })).await;
}

// conformance: A-066
#[tokio::test]
async fn for_somebody_else_or_from_somebody_else_a_token_ends_nothing() {
    rejected(json!({}), json!({ "aud": "another" })).await;
    rejected(json!({}), json!({ "iss": "https://evil.example" })).await;
}

// conformance: B-115
#[tokio::test]
async fn a_token_of_another_kind_ends_nothing() {
    rejected(json!({ "typ": "at+jwt" }), json!({})).await;
    rejected(json!({ "crit": ["exp"] }), json!({})).await;
}

// conformance: B-115
#[tokio::test]
async fn a_token_by_an_unknown_key_ends_nothing_and_can_be_sent_again() {
    let (stack, mut browser) = signed_in().await;
    let claims = json!({ "sub": "alice", "sid": "sid-1" });
    let unknown = json!({ "kid": "nobody-knows-me" });
    let token = stack.provider.logout_token_with_header(unknown.clone(), claims);
    for _ in 0..2 {
        let answer = send(&stack, &token).await;
        assert_eq!(answer.status, 503);
        assert!(answer.json()["error"].is_string() && !answer.body.contains(&token));
    }
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
    // A token that is invalid under any key is rejected permanently; no retry helps.
    rejected(unknown, json!({ "nonce": "n" })).await;
}

/// A late key set: the provider resends the token, which is accepted once the key appears.
// conformance: B-115
#[tokio::test]
async fn a_token_by_a_key_that_is_published_late_counts_when_it_is_sent_again() {
    let (stack, mut browser) = signed_in().await;
    stack.provider.rotate_keys_unpublished();
    let token = stack
        .provider
        .logout_token(json!({ "sub": "alice", "sid": "sid-1" }));
    assert_eq!(send(&stack, &token).await.status, 503);
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
    stack.provider.script(|script| script.jwks = None);
    // A sign-in needs the key too, and has a separate limit for key fetches.
    stack.browser().sign_in().await;
    assert_eq!(send(&stack, &token).await.status, 200);
    assert_eq!(browser.get("/api/auth/me").await.status, 204);
}

// conformance: B-115
#[tokio::test]
async fn a_token_by_a_key_that_was_just_rotated_in_counts() {
    let (stack, mut browser) = signed_in().await;
    stack.provider.rotate_keys();
    let token = stack
        .provider
        .logout_token(json!({ "sub": "alice", "sid": "sid-1" }));
    assert_eq!(send(&stack, &token).await.status, 200);
    assert_eq!(browser.get("/api/auth/me").await.status, 204);
}
