//! Answers at the callback that are not the provider's, or have the wrong shape: what they use up, and the
//! page's text.

use scripted_provider::Endpoint;
use serde_json::json;
use url::Url;

use crate::support::{Answer, Browser, Stack};

/// The callback's address with other parameters and the same state.
fn with(callback: &str, pairs: &[(&str, &str)]) -> String {
    let mut url = Url::parse(callback).unwrap();
    let all = url.query_pairs().into_owned().collect::<Vec<_>>();
    let state = all.iter().find(|(name, _)| name == "state").unwrap();
    url.query_pairs_mut()
        .clear()
        .append_pair("state", &state.1)
        .extend_pairs(pairs);
    url.to_string()
}

fn ignored(answer: &Answer, what: &str) {
    assert_eq!(answer.status, 400, "{what}: {answer:?}");
    assert!(
        answer.set_cookies().is_empty(),
        "{what} uses nothing up: {answer:?}"
    );
    assert!(
        answer.body.contains("not from your sign-in provider"),
        "{what}: {}",
        answer.body
    );
    assert!(!answer.body.contains("cancelled"), "{what}");
}

async fn finishes(stack: &Stack, browser: &mut Browser, callback: &str) {
    assert_eq!(stack.provider.calls(Endpoint::Token), 0);
    assert_eq!(browser.visit(callback).await.status, 302);
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
}

// conformance: B-060 B-061
#[tokio::test]
async fn an_answer_with_another_or_no_issuer_uses_nothing_up_whatever_it_says() {
    let evil = ("iss", "https://evil.example");
    let denied = ("error", "access_denied");
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login").await;
    for said in [
        &[denied, evil][..],
        &[denied],
        &[("error", "login_required")],
        &[("error", "server_error"), evil],
        &[("code", "x"), evil],
        &[("code", "x")],
        &[evil],
        &[],
        &[denied, evil, evil],
    ] {
        ignored(&browser.visit(&with(&callback, said)).await, &format!("{said:?}"));
    }
    finishes(&stack, &mut browser, &callback).await;
}

#[tokio::test]
async fn a_silent_sign_in_is_not_over_because_somebody_else_says_so() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login?prompt=none").await;
    let said = with(&callback, &[("error", "login_required")]);
    ignored(&browser.visit(&said).await, "login_required without iss");
    finishes(&stack, &mut browser, &callback).await;
}

#[tokio::test]
async fn a_cancelled_sign_in_is_called_so_when_the_provider_says_it_and_is_over() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let issuer = stack.provider.issuer().to_owned();
    let callback = browser.until_callback("/api/auth/login").await;
    let said = with(&callback, &[("error", "access_denied"), ("iss", &issuer)]);
    let answer = browser.visit(&said).await;
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("cancelled"), "{}", answer.body);
    assert!(browser.jar.is_empty());
}

#[tokio::test]
async fn an_error_without_an_issuer_is_believed_where_none_is_promised() {
    let stack = Stack::start().await;
    let promise = "authorization_response_iss_parameter_supported".to_owned();
    stack
        .provider
        .script(|script| _ = script.metadata.insert(promise, json!(null)));
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login").await;
    let answer = browser
        .visit(&with(&callback, &[("error", "access_denied")]))
        .await;
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("cancelled"), "{}", answer.body);
    assert!(browser.jar.is_empty());
}

// conformance: B-017
#[tokio::test]
async fn a_code_that_no_provider_issues_is_refused_without_a_call() {
    let stack = Stack::start().await;
    let issuer = stack.provider.issuer().to_owned();
    let long = "c".repeat(4097);
    for said in [
        &[("code", long.as_str())][..],
        &[("code[]", "REAL")],
        &[("code[0]", "REAL")],
        &[("code", "REAL"), ("code[]", "x")],
        &[("code[]", "REAL"), ("code[]", "x")],
        &[("code", "REAL"), ("code", "REAL")],
        &[("code", "a\nb")],
        &[("code", "a\0")],
        &[("code", "\u{e9}")],
        &[("code", "")],
    ] {
        let mut browser = stack.browser();
        let callback = browser.until_callback("/api/auth/login").await;
        let pairs = Url::parse(&callback).unwrap();
        let pairs = pairs.query_pairs().into_owned().collect::<Vec<_>>();
        let real = pairs.iter().find(|(name, _)| name == "code").unwrap().1.clone();
        let said: Vec<_> = said
            .iter()
            .map(|(name, value)| (*name, if *value == "REAL" { real.as_str() } else { *value }))
            .chain([("iss", issuer.as_str())])
            .collect();
        let answer = browser.visit(&with(&callback, &said)).await;
        assert_eq!(answer.status, 400, "{said:?}");
        assert!(answer.set_cookie("session").is_none());
        assert_eq!(stack.provider.calls(Endpoint::Token), 0, "{said:?}");
    }
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login").await;
    let most = "c".repeat(4096);
    let answer = browser
        .visit(&with(&callback, &[("code", &most), ("iss", &issuer)]))
        .await;
    assert_eq!(answer.status, 400, "the provider does not know it");
    assert_eq!(stack.provider.calls(Endpoint::Token), 1);
}
