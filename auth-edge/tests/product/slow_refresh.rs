//! A provider that is slow on refresh: clients wait no longer than for its other answers.

use std::time::{Duration, Instant};

use reqwest::Method;
use scripted_provider::{Answer as Script, Endpoint};
use serde_json::json;

use crate::gateway::Gateway;
use crate::support::{Answer, Browser, NAVIGATION};

/// The time limit for an exchange with the provider here.
const TIMEOUT_MS: &str = "1000";

/// Well above that limit, and well below the time a refresh has.
const BOUND: Duration = Duration::from_secs(8);

/// Longer than the provider's access tokens live.
const EXPIRED: u64 = 4_000;

/// A page's answer, within the bound.
async fn answer(browser: &mut Browser, path: &str) -> Answer {
    let answer = tokio::time::timeout(BOUND, browser.get(path)).await;
    answer.expect("an answer while the provider takes its time")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_needs_a_token_is_answered_in_time_and_the_next_request_has_it() {
    let settings = [
        ("OIDC_HTTP_TIMEOUT_MS", TIMEOUT_MS),
        ("EDGE_PROFILE_REFETCH", "on-request"),
    ];
    let gateway = Gateway::start("", &settings).await;
    let mut browser = gateway.stack.browser();
    browser.sign_in().await;
    assert_eq!(browser.get("/token/a").await.status, 200);
    gateway.stack.advance(EXPIRED);

    let gate = gateway.stack.provider.hold_answers(Endpoint::Token);
    for path in ["/token/a", "/api/auth/me?refetch=true", "/token/a"] {
        let answer = answer(&mut browser, path).await;
        assert_eq!(answer.status, 503, "{path}: {answer:?}");
        assert!(
            answer.body.contains("ERR_PROVIDER_UNAVAILABLE") || path.contains("me"),
            "{answer:?}"
        );
        assert!(!answer.header("retry-after").is_empty(), "{path}: {answer:?}");
    }
    assert_eq!(
        browser.get("/api/auth/me").await.status,
        200,
        "nobody is signed out"
    );
    gate.release();
    let released = Instant::now();
    while browser.get("/token/a").await.status != 200 {
        assert!(released.elapsed() < BOUND, "the outcome is not kept");
    }
    let sent = gateway.upstream.requests();
    let tokens: Vec<String> = sent
        .iter()
        .map(|seen| seen.all("authorization")[0].clone())
        .collect();
    assert_eq!(tokens.len(), 2);
    assert_ne!(tokens[0], tokens[1]);
    let provider = &gateway.stack.provider;
    assert_eq!((provider.grants("refresh_token"), provider.reuses()), (1, 0));
}

/// A provider may answer a dead grant with a status that OAuth lacks. Without a way to sign in, the person
/// would get the same page until the session ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_whose_token_cannot_be_had_offers_to_try_again_and_to_sign_in() {
    let rule =
        "[[route]]\npath = \"/mail/*\"\nguard = \"page\"\nupstream = \"{upstream}\"\naccess_token = true\n";
    let gateway = Gateway::start(rule, &[]).await;
    let mut browser = gateway.stack.browser();
    browser.sign_in().await;
    gateway.stack.advance(EXPIRED);
    let answer = Script::json(404, &json!({ "error": "NotFound" }));
    gateway
        .stack
        .provider
        .script(|script| _ = script.answers.insert(Endpoint::Token, answer));
    for _ in 0..2 {
        let page = browser
            .send(Method::GET, "/mail/inbox?a=b", &NAVIGATION, None)
            .await;
        assert_eq!(page.status, 503, "{page:?}");
        assert!(page.body.contains("/mail/inbox?a=b\">Try again"), "{page:?}");
        let sign_in = "href=\"/api/auth/login?returnTo=%2Fmail%2Finbox%3Fa%3Db\">Sign in";
        assert!(page.body.contains(sign_in), "{page:?}");
        let status = browser.get("/api/auth/me").await.status;
        assert_eq!(status, 200, "nobody is signed out");
    }
    let provider = &gateway.stack.provider;
    provider.script(|script| script.answers.clear());
    browser.sign_in().await;
    let page = browser.send(Method::GET, "/mail/inbox", &NAVIGATION, None).await;
    assert_eq!(page.status, 200, "{page:?}");
}
