//! The refresh grant as a browser sees it.

use scripted_provider::Endpoint;
use serde_json::json;

use crate::support::{Browser, Stack};

async fn signed_in() -> (Stack, Browser) {
    let stack = Stack::with(&[("EDGE_ACCESS_TOKEN_ENDPOINT", "true")]).await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    (stack, browser)
}

// conformance: A-049 A-052 B-002
#[tokio::test]
async fn a_refresh_asks_for_no_scope_and_userinfo_is_read_with_the_new_token() {
    let (stack, mut browser) = signed_in().await;
    for _ in 0..2 {
        stack.advance(3600);
        assert_eq!(browser.get("/api/auth/me?refetch=true").await.status, 200);
    }
    let requests = stack.provider.requests(Endpoint::Token);
    let grants: Vec<_> = requests
        .iter()
        .map(|request| request.param("grant_type").unwrap())
        .collect();
    assert_eq!(grants, ["authorization_code", "refresh_token", "refresh_token"]);
    assert!(
        requests[1..]
            .iter()
            .all(|request| request.param("scope").is_none())
    );
    assert_ne!(
        requests[1].param("refresh_token"),
        requests[2].param("refresh_token"),
        "the rotated token took the place of the old one"
    );
    let tokens: Vec<_> = stack
        .provider
        .requests(Endpoint::Userinfo)
        .iter()
        .map(|request| request.header("authorization").unwrap().to_owned())
        .collect();
    assert_eq!(tokens.len(), 2);
    assert_ne!(tokens[0], tokens[1]);
}

// conformance: B-109
#[tokio::test]
async fn a_scope_that_a_refresh_narrowed_is_gone() {
    let (stack, mut browser) = signed_in().await;
    let origin = stack.base().to_owned();
    let proof = [("x-csrf", "1"), ("origin", origin.as_str())];
    let with_email = "/api/auth/access-token?scope=email";
    assert_eq!(browser.get_with(with_email, &proof).await.status, 200);
    stack
        .provider
        .script(|script| _ = script.refresh.insert("scope".into(), json!("openid profile")));
    stack.advance(3600);
    assert_eq!(
        browser.get_with("/api/auth/access-token", &proof).await.status,
        200
    );
    let narrowed = browser.get_with(with_email, &proof).await;
    assert_eq!(
        (narrowed.status, narrowed.json()["error"].as_str()),
        (403, Some("ERR_INSUFFICIENT_SCOPE"))
    );
    assert_eq!(stack.provider.grants("refresh_token"), 1);
}
