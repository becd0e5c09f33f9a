//! Sessions cached by the edge: read once, rejected as soon as they end, and not served from the cache while
//! endings cannot arrive.

use std::time::{Duration, Instant};

use session_proto::client::SessionClient;
use session_proto::v1::{Cause, EndSessionsRequest, UpdateSessionRequest};

use crate::support::{Browser, Stack};

/// For changes that take milliseconds; only a failing test waits this long.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

const HIT: (&str, &str) = ("session_cache_lookups_total", "hit");

async fn stack() -> Stack {
    Stack::with(&[
        ("EDGE_SESSION_CACHE_SECS", "60"),
        ("EDGE_ACCESS_TOKEN_ENDPOINT", "true"),
    ])
    .await
}

fn hits(stack: &Stack) -> u64 {
    stack.counter(HIT.0, HIT.1)
}

/// Asks until an answer comes from the cache.
async fn until_remembered(stack: &Stack, browser: &mut Browser) {
    let deadline = Instant::now() + LONGEST_WAIT;
    let before = hits(stack);
    while hits(stack) == before {
        assert!(Instant::now() < deadline, "nothing is ever remembered");
        assert_eq!(browser.get("/api/auth/me").await.status, 200);
    }
}

/// Asks until the profile answers with this status. Returns the last answer's cookies.
async fn until_status(browser: &mut Browser, status: u16) -> usize {
    let deadline = Instant::now() + LONGEST_WAIT;
    loop {
        let answer = browser.get("/api/auth/me").await;
        if answer.status == status {
            return answer.set_cookies().len();
        }
        assert!(Instant::now() < deadline, "still {}", answer.status);
    }
}

fn client(stack: &Stack) -> SessionClient {
    stack.sessions.client()
}

#[tokio::test]
async fn a_session_in_use_is_asked_for_once() {
    let stack = stack().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    until_remembered(&stack, &mut browser).await;
    let (calls, remembered) = (stack.sessions.calls(), hits(&stack));
    let first = browser.get("/api/auth/me").await;
    for _ in 0..20 {
        let answer = browser.get("/api/auth/me").await;
        assert_eq!((answer.status, answer.body.as_str()), (200, first.body.as_str()));
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    assert_eq!(hits(&stack), remembered + 21);
    // The edge checks every two seconds whether the service is there: no more calls than that.
    assert!(
        stack.sessions.calls() <= calls + 2,
        "the service was called again"
    );
}

#[tokio::test]
async fn a_session_that_is_ended_elsewhere_is_refused_as_soon_as_that_is_heard() {
    let stack = stack().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    until_remembered(&stack, &mut browser).await;
    let ended = client(&stack)
        .end_sessions(EndSessionsRequest {
            issuer: stack.provider.issuer().to_owned(),
            subject: browser.get("/api/auth/me").await.json()["sub"]
                .as_str()
                .unwrap()
                .to_owned(),
            cause: Cause::Operator.into(),
            ..EndSessionsRequest::default()
        })
        .await
        .unwrap();
    assert_eq!(ended.ended_count, 1);
    until_status(&mut browser, 204).await;
    // This does not change: an ended session is never cached, however often it is requested.
    for _ in 0..5 {
        assert_eq!(browser.get("/api/auth/me").await.status, 204);
    }
}

#[tokio::test]
async fn signing_out_here_is_seen_by_the_very_next_request() {
    let stack = stack().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    until_remembered(&stack, &mut browser).await;
    let mut thief = browser.clone();
    browser.visit("/api/auth/logout").await;
    assert_eq!(thief.get("/api/auth/me").await.status, 204);
}

#[tokio::test]
async fn a_session_that_is_changed_elsewhere_is_read_again() {
    let stack = stack().await;
    let (name, value) = stack.session_cookie().await;
    let mut browser = stack.browser();
    browser.jar.insert(name, value.clone());
    until_remembered(&stack, &mut browser).await;
    let user = serde_json::json!({"sub": "person-1", "name": "Grace"});
    let update = UpdateSessionRequest {
        session_id: value.split('.').next().unwrap().to_owned(),
        user: user.to_string(),
        ..UpdateSessionRequest::default()
    };
    client(&stack).update_session(update).await.unwrap();
    let deadline = Instant::now() + LONGEST_WAIT;
    while browser.get("/api/auth/me").await.json()["name"] != "Grace" {
        assert!(Instant::now() < deadline, "the change was never seen");
    }
}

#[tokio::test]
async fn nothing_is_believed_once_endings_cannot_be_heard() {
    let stack = stack().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    until_remembered(&stack, &mut browser).await;
    stack.sessions.stop().await;
    let cookies = until_status(&mut browser, 503).await;
    assert_eq!(cookies, 0, "the cookie stays as it is");
    stack.sessions.start_again().await;
    until_status(&mut browser, 200).await;
    until_remembered(&stack, &mut browser).await;
}

#[tokio::test]
async fn a_login_asks_for_the_session_of_its_cookie_only_where_the_edge_does_not_know_it() {
    for (kept_secs, asked) in [("60", 0), ("0", 1)] {
        let stack = Stack::with(&[("EDGE_SESSION_CACHE_SECS", kept_secs)]).await;
        let mut browser = stack.browser();
        browser.sign_in().await;
        if asked == 0 {
            until_remembered(&stack, &mut browser).await;
        }
        let calls = stack.sessions.calls();
        assert_eq!(browser.visit("/api/auth/login").await.status, 302);
        assert_eq!(stack.sessions.calls() - calls, asked, "{kept_secs}");
    }
}

#[tokio::test]
async fn sessions_are_remembered_however_seldom_the_service_beats() {
    // Longer than an edge trusts its last heartbeat, and longer than the shorter of the two.
    const WATCHED: Duration = Duration::from_millis(1_500);
    for interval in ["1000", "10000"] {
        let stack = Stack::with(&[("EDGE_SESSION_CACHE_SECS", "60"), ("heartbeat_ms", interval)]).await;
        let mut browser = stack.browser();
        browser.sign_in().await;
        until_remembered(&stack, &mut browser).await;
        let unheard = || stack.counter(HIT.0, "unheard");
        let (hits_before, unheard_before) = (hits(&stack), unheard());
        let until = Instant::now() + WATCHED;
        while Instant::now() < until {
            assert_eq!(browser.get("/api/auth/me").await.status, 200);
        }
        let (hits, unheard) = (hits(&stack) - hits_before, unheard() - unheard_before);
        // A busy machine may be late at times.
        assert!(
            unheard < hits / 4,
            "{interval} ms: {hits} of memory, {unheard} unheard"
        );
    }
}

#[tokio::test]
async fn a_session_is_not_served_from_memory_when_its_time_is_up() {
    let stack = stack().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    until_remembered(&stack, &mut browser).await;
    stack.advance(86_400);
    assert_eq!(browser.get("/api/auth/me").await.status, 204);
}

#[tokio::test]
async fn looking_does_not_keep_use_from_being_noticed() {
    let stack = stack().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    until_remembered(&stack, &mut browser).await;
    let mut looking = browser.clone();
    // A session that this edge has only read, as not used yet.
    let second = {
        let (name, value) = stack.session_cookie().await;
        looking.jar.insert(name, value);
        looking
    };
    let mut second = second;
    assert_eq!(second.get("/api/auth/status").await.status, 200);
    stack.advance(120);
    assert_eq!(second.get("/api/auth/status").await.status, 200);
    let used = second.get("/api/auth/me").await;
    assert!(
        used.set_cookie("session").is_some(),
        "use rolls, though it was remembered: {used:?}"
    );
}

#[tokio::test]
async fn an_access_token_is_asked_for_once_and_again_when_it_is_about_to_expire() {
    let stack = stack().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    until_remembered(&stack, &mut browser).await;
    let csrf = [("x-csrf", "1"), ("sec-fetch-site", "same-origin")];
    let token = |answer: crate::support::Answer| answer.json()["access_token"].as_str().unwrap().to_owned();
    let first = token(browser.get_with("/api/auth/access-token", &csrf).await);
    let calls = stack.sessions.calls();
    for _ in 0..20 {
        assert_eq!(
            token(browser.get_with("/api/auth/access-token", &csrf).await),
            first
        );
    }
    assert!(
        stack.sessions.calls() <= calls + 2,
        "the service was called again"
    );
    let scoped = browser
        .get_with("/api/auth/access-token?scope=launch:missiles", &csrf)
        .await;
    assert_eq!(
        scoped.status, 403,
        "what is remembered is for the scopes it was requested with"
    );
    stack.advance(3_600);
    let renewed = token(browser.get_with("/api/auth/access-token", &csrf).await);
    assert_ne!(renewed, first, "an expired one is not handed out");
}
