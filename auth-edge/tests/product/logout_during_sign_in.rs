//! A logout token handled while its session is being created; arrival times decide.

use scripted_provider::Endpoint;
use serde_json::{Value, json};

use crate::support::{Browser, Stack};

const ROUNDS: usize = 40;

/// The session or user a logout token names.
fn named() -> [(&'static str, Value); 3] {
    [
        ("sid", json!({"sid": "sid-1", "sub": null})),
        ("sub", json!({"sub": "alice", "sid": null})),
        ("both", json!({"sub": "alice", "sid": "sid-1"})),
    ]
}

async fn log_out(stack: &Stack, edge: &mut Browser, claims: Value) {
    let form = format!("logout_token={}", stack.provider.logout_token(claims));
    let answer = edge.post("/api/auth/backchannel-logout", &[], &form).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// A stack whose sign-ins wait for userinfo between token response and creation, and another edge with a
/// clock five seconds ahead.
async fn scene(more: &[(&str, &str)]) -> (Stack, Browser) {
    let settings = [&[("EDGE_USERINFO_AT_LOGIN", "always")], more].concat();
    let stack = Stack::with(&settings).await;
    stack
        .provider
        .script(|script| script.sid = Some("sid-1".to_owned()));
    let ahead = stack.clock.clone();
    let ahead = chassis::clock::ManualClock::new(chassis::clock::Clock::now_ms(&ahead) + 5_000);
    let other = stack.beside_at_another_time(ahead).await;
    (stack, other)
}

/// The logout is handled after the token response and before the creation.
async fn round(stack: &Stack, other: &mut Browser, named: &str, claims: Value) {
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login").await;
    let gate = stack.provider.hold(Endpoint::Userinfo);
    let calls = stack.provider.calls(Endpoint::Userinfo);
    let mut tab = browser.clone();
    let path = callback.clone();
    let visit = tokio::spawn(async move {
        let answer = tab.visit(&path).await;
        (answer, tab)
    });
    stack.provider.wait_for_calls(Endpoint::Userinfo, calls + 1).await;
    log_out(stack, other, claims).await;
    gate.release();
    let (answer, mut tab) = visit.await.unwrap();
    assert_eq!(answer.status, 400, "{named}: {answer:?}");
    assert!(answer.set_cookie("session").is_none(), "{named}: {answer:?}");
    assert_eq!(tab.get("/api/auth/me").await.status, 204, "{named}");
    stack.clock.advance_ms(1);
    let mut again = stack.browser();
    again.sign_in().await;
    assert_eq!(
        again.get("/api/auth/me").await.status,
        200,
        "{named}: a later sign-in"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_between_token_response_and_creation_ends_the_session_and_no_later_one() {
    for more in [&[][..], &[("EDGE_STORE_ID_TOKEN", "false")]] {
        let (stack, mut other) = scene(more).await;
        for (named, claims) in named() {
            for _ in 0..ROUNDS {
                round(&stack, &mut other, named, claims.clone()).await;
                stack.clock.advance_ms(1);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_that_arrived_before_the_token_response_ends_only_what_was_there() {
    let (stack, mut other) = scene(&[]).await;
    let mut before = stack.browser();
    before.sign_in().await;
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login").await;
    let gate = stack.provider.hold(Endpoint::Userinfo);
    let tokens = stack.provider.hold_answers(Endpoint::Token);
    let visit = tokio::spawn(async move { browser.visit(&callback).await });
    stack.provider.wait_for_held(Endpoint::Token, 1).await;
    log_out(&stack, &mut other, json!({"sub": "alice", "sid": null})).await;
    // One millisecond could vanish when times are cut to whole ones.
    stack.clock.advance_ms(2);
    tokens.release();
    gate.release();
    let answer = visit.await.unwrap();
    assert_eq!(answer.status, 302, "{answer:?}");
    assert_eq!(before.get("/api/auth/me").await.status, 204);
}

/// The second edge has to fetch the keys first; the user signs in again meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_logout_token_that_is_judged_late_ends_only_sessions_begun_before_it_arrived() {
    let stack = Stack::start().await;
    stack
        .provider
        .script(|script| script.sid = Some("sid-1".to_owned()));
    let mut before = stack.browser();
    before.sign_in().await;
    let mut slow = stack.beside().await;
    let keys = stack.provider.hold(Endpoint::Jwks);
    let fetched = stack.provider.calls(Endpoint::Jwks);
    let token = stack
        .provider
        .logout_token(json!({"sub": "alice", "sid": "sid-1"}));
    let logout = tokio::spawn(async move {
        let form = format!("logout_token={token}");
        slow.post("/api/auth/backchannel-logout", &[], &form).await
    });
    stack.provider.wait_for_calls(Endpoint::Jwks, fetched + 1).await;
    stack.clock.advance_ms(100);
    let mut after = stack.browser();
    after.sign_in().await;
    keys.release();
    assert_eq!(logout.await.unwrap().status, 200);
    assert_eq!(before.get("/api/auth/me").await.status, 204);
    assert_eq!(after.get("/api/auth/me").await.status, 200);
}

/// Both edges cut times to whole milliseconds: one tick of their clocks may be lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_logout_of_the_very_millisecond_of_the_token_response_ends_the_session() {
    let stack = Stack::with(&[("EDGE_USERINFO_AT_LOGIN", "always")]).await;
    stack
        .provider
        .script(|script| script.sid = Some("sid-1".to_owned()));
    let now_ms = chassis::clock::Clock::now_ms(&stack.clock);
    let [of_sign_in, of_logout] = [0, 1].map(|_| chassis::clock::ManualClock::new(now_ms));
    let mut browser = stack.beside_at_another_time(of_sign_in.clone()).await;
    let mut edge = stack.beside_at_another_time(of_logout.clone()).await;

    let callback = browser.until_callback("/api/auth/login").await;
    let userinfo = stack.provider.hold(Endpoint::Userinfo);
    let tokens = stack.provider.hold_answers(Endpoint::Token);
    let visit = tokio::spawn(async move { browser.visit(&callback).await });
    stack.provider.wait_for_held(Endpoint::Token, 1).await;
    of_sign_in.advance_ms(1);
    tokens.release();
    stack.provider.wait_for_calls(Endpoint::Userinfo, 1).await;

    let keys = stack.provider.hold(Endpoint::Jwks);
    let fetched = stack.provider.calls(Endpoint::Jwks);
    let token = stack
        .provider
        .logout_token(json!({"sub": "alice", "sid": "sid-1"}));
    let logout = tokio::spawn(async move {
        let form = format!("logout_token={token}");
        edge.post("/api/auth/backchannel-logout", &[], &form).await
    });
    stack.provider.wait_for_calls(Endpoint::Jwks, fetched + 1).await;
    of_logout.advance_ms(1);
    keys.release();
    assert_eq!(logout.await.unwrap().status, 200);
    userinfo.release();
    let answer = visit.await.unwrap();
    assert_eq!(answer.status, 400, "{answer:?}");
}
