//! A provider that takes its time over a refresh: nobody waits for it longer than for any other answer of its.

use std::time::{Duration, Instant};

use scripted_provider::Endpoint;

use crate::gateway::Gateway;
use crate::support::{Answer, Browser};

/// What an exchange with the provider may take here.
const TIMEOUT_MS: &str = "1000";

/// Well above that, well below what the refresh has.
const BOUND: Duration = Duration::from_secs(8);

/// Longer than the provider's access tokens live.
const EXPIRED: u64 = 4_000;

/// What a page gets within the bound.
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
