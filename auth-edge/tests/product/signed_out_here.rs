//! A sign-out at the edge only: at the next sign-in, the edge makes the provider prompt.

use serde_json::json;
use url::Url;

use crate::support::{Answer, Browser, Stack};

fn prompt(answer: &Answer) -> Option<String> {
    let url = Url::parse(answer.location()).unwrap();
    let prompt = url.query_pairs().find(|(name, _)| name == "prompt");
    prompt.map(|(_, value)| value.into_owned())
}

/// A browser in which a user signed in and out.
async fn signed_out(stack: &Stack) -> (Browser, Answer) {
    let mut browser = stack.browser();
    browser.sign_in().await;
    let answer = browser.visit("/api/auth/logout").await;
    (browser, answer)
}

#[tokio::test]
async fn the_next_sign_in_asks_until_one_succeeds() {
    let stack = Stack::with(&[("EDGE_IDP_LOGOUT", "off")]).await;
    let (mut browser, answer) = signed_out(&stack).await;
    assert_eq!(
        answer.location(),
        format!("{}/#signed-out-here-only", stack.base()),
        "the page that follows can say so"
    );
    for attempt in ["first", "given up"] {
        let login = browser.visit("/api/auth/login").await;
        assert_eq!(prompt(&login).as_deref(), Some("login"), "{attempt}");
    }
    browser.visit("/api/auth/logout").await;
    let silent = browser.visit("/api/auth/login?prompt=none&returnTo=/a").await;
    assert_eq!(
        silent.location(),
        format!("{}/a", stack.base()),
        "a silent sign-in finds nobody"
    );
    browser.sign_in().await;
    let again = browser.visit("/api/auth/login").await;
    assert_eq!(prompt(&again), None, "the person was asked");
    assert_eq!(
        prompt(&stack.browser().visit("/api/auth/login").await),
        None,
        "another browser"
    );
}

#[tokio::test]
async fn a_sign_out_at_the_provider_too_asks_for_nothing() {
    let stack = Stack::start().await;
    let (mut browser, answer) = signed_out(&stack).await;
    assert!(!answer.location().contains("signed-out-here-only"));
    assert_eq!(prompt(&browser.visit("/api/auth/login").await), None);
}

#[tokio::test]
async fn a_provider_without_a_sign_out_has_to_ask() {
    let stack = Stack::start().await;
    stack
        .provider
        .script(|script| _ = script.metadata.insert("end_session_endpoint".into(), json!(null)));
    let (mut browser, _) = signed_out(&stack).await;
    assert_eq!(
        prompt(&browser.visit("/api/auth/login").await).as_deref(),
        Some("login")
    );
}

#[tokio::test]
async fn the_prompt_is_one_that_the_provider_knows_beside_the_configured_one() {
    for (supported, asks) in [
        (json!(["none", "select_account"]), "select_account consent"),
        (json!(["none", "login", "select_account"]), "login consent"),
        (json!(null), "login consent"),
    ] {
        let stack = Stack::with(&[
            ("EDGE_IDP_LOGOUT", "off"),
            ("OIDC_AUTHORIZATION_PARAMS", "prompt=consent"),
        ])
        .await;
        stack.provider.script(|script| {
            _ = script
                .metadata
                .insert("prompt_values_supported".into(), supported.clone());
        });
        let (mut browser, _) = signed_out(&stack).await;
        let login = browser.visit("/api/auth/login").await;
        assert_eq!(prompt(&login).as_deref(), Some(asks), "{supported}");
    }
}

#[tokio::test]
async fn a_sign_out_that_waits_for_the_session_service_asks_as_well() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    stack.sessions.stop().await;
    let answer = browser.visit("/api/auth/logout").await;
    assert_eq!(answer.status, 503);
    assert_eq!(
        prompt(&browser.visit("/api/auth/login").await).as_deref(),
        Some("login")
    );
}
