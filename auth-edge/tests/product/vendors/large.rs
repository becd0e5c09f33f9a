//! People in more groups than a session can store.

use serde_json::json;

use crate::support::{Answer, Browser, Stack};

/// This many groups, named by UUIDs.
fn groups(count: usize) -> Vec<String> {
    let groups = 0..count;
    groups
        .map(|at| format!("c0ffee00-0000-4000-8000-{at:012}"))
        .collect()
}

/// Goes to the provider and back. Returns the browser, and the callback's answer.
async fn callback(stack: &Stack) -> (Browser, Answer) {
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login").await;
    let answer = browser.visit(&callback).await;
    (browser, answer)
}

#[tokio::test]
async fn a_person_in_850_groups_is_signed_in_without_the_hint_for_sign_out() {
    let stack = Stack::start().await;
    let claim = json!(groups(850));
    stack
        .provider
        .script(|script| drop(script.claims.insert("groups".into(), claim)));
    let (mut browser, answer) = callback(&stack).await;
    assert_eq!(answer.status, 302, "{answer:?}");
    let me = browser.get("/api/auth/me").await.json();
    assert_eq!(me["groups"].as_array().unwrap().len(), 850);
    let logout = browser.visit("/api/auth/logout").await;
    assert!(
        logout.location().contains("post_logout_redirect_uri="),
        "{logout:?}"
    );
    assert!(!logout.location().contains("id_token_hint="), "{logout:?}");
}

#[tokio::test]
async fn beyond_a_limit_the_page_names_it_and_offers_nothing_to_try_again() {
    for (by_userinfo, limit) in [(false, "64 KiB"), (true, "than a session here can hold")] {
        let stack = Stack::with(&[("EDGE_USERINFO_AT_LOGIN", "always")]).await;
        let claim = json!(groups(2_000));
        stack.provider.script(|script| {
            let claims = if by_userinfo {
                &mut script.userinfo
            } else {
                &mut script.claims
            };
            claims.insert("groups".into(), claim);
        });
        let (mut browser, answer) = callback(&stack).await;
        assert_eq!(answer.status, 400, "{limit}");
        assert!(
            answer.body.contains(limit) && answer.body.contains("will not help"),
            "{answer:?}"
        );
        assert!(!answer.body.contains("/api/auth/login"), "{answer:?}");
        assert_eq!(browser.get("/api/auth/me").await.status, 204, "{limit}");
    }
}
