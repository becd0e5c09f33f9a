//! One callback at several edges: the code is redeemed once, and all callers get the same answer.

use std::time::{Duration, Instant};

use scripted_provider::{Answer as Scripted, Endpoint};

use crate::support::{Answer, Browser, Stack};

/// Waits until the session service has received this many calls. Panics after 20 seconds.
async fn wait_for_sessions_calls(stack: &Stack, calls: usize) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while stack.sessions.calls() < calls {
        assert!(Instant::now() < deadline, "{} calls", stack.sessions.calls());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn visiting(browser: &Browser, callback: &str) -> tokio::task::JoinHandle<Answer> {
    let (mut browser, callback) = (browser.clone(), callback.to_owned());
    tokio::spawn(async move { browser.visit(&callback).await })
}

/// A pending sign-in at two edges with the same cookies, and its callback.
async fn pending(stack: &Stack) -> (Browser, Browser, String) {
    let mut here = stack.browser();
    let callback = here.until_callback("/api/auth/login?returnTo=/there").await;
    let mut there = stack.beside().await;
    there.jar = here.jar.clone();
    (here, there, callback)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_at_two_edges_at_once_gives_one_session_and_leaves_its_grant_alone() {
    let stack = Stack::with(&[("EDGE_ACCESS_TOKEN_ENDPOINT", "true")]).await;
    let (mut here, there, callback) = pending(&stack).await;
    let before = stack.sessions.calls();
    let gate = stack.provider.hold(Endpoint::Token);
    let visits: Vec<_> = (0..4)
        .flat_map(|_| [visiting(&here, &callback), visiting(&there, &callback)])
        .collect();
    wait_for_sessions_calls(&stack, before + 8).await;
    gate.release();
    let mut cookies = Vec::new();
    for visit in visits {
        let answer = visit.await.unwrap();
        assert_eq!(answer.status, 302, "{answer:?}");
        assert!(answer.location().ends_with("/there"), "{answer:?}");
        let cookie = answer.set_cookie("session").unwrap();
        cookies.push(cookie.split(';').next().unwrap().to_owned());
    }
    cookies.dedup();
    assert_eq!(cookies.len(), 1, "one session: {cookies:?}");
    assert_eq!(stack.provider.calls(Endpoint::Token), 1);
    let (name, value) = cookies[0].split_once('=').unwrap();
    here.jar.insert(name.to_owned(), value.to_owned());
    stack.advance(7_200);
    let token = here
        .get_with(
            "/api/auth/access-token",
            &[("x-csrf", "1"), ("sec-fetch-site", "same-origin")],
        )
        .await;
    assert_eq!(token.status, 200, "the refresh token still works: {token:?}");
    assert_eq!(stack.provider.grants("authorization_code"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waited_for_a_failure_may_try_again_at_once() {
    let stack = Stack::start().await;
    let (here, there, callback) = pending(&stack).await;
    stack
        .provider
        .script(|script| _ = script.answers.insert(Endpoint::Token, Scripted::status(500)));
    let before = stack.sessions.calls();
    let gate = stack.provider.hold(Endpoint::Token);
    let first = visiting(&here, &callback);
    stack.provider.wait_for_calls(Endpoint::Token, 1).await;
    let second = visiting(&there, &callback);
    wait_for_sessions_calls(&stack, before + 2).await;
    gate.release();
    for visit in [first, second] {
        let answer = visit.await.unwrap();
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.body.contains("returnTo"), "{answer:?}");
        assert!(answer.set_cookie("session").is_none(), "{answer:?}");
    }
    assert_eq!(stack.provider.calls(Endpoint::Token), 1);
}

/// A browser that requests the same address twice drops the first request and waits for the second.
#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_hangs_up_and_asks_the_other_edge_is_signed_in() {
    let stack = Stack::start().await;
    let (here, there, callback) = pending(&stack).await;
    let before = stack.sessions.calls();
    let gate = stack.provider.hold(Endpoint::Token);
    let first = visiting(&here, &callback);
    stack.provider.wait_for_calls(Endpoint::Token, 1).await;
    first.abort();
    assert!(first.await.is_err());
    let second = visiting(&there, &callback);
    wait_for_sessions_calls(&stack, before + 2).await;
    gate.release();
    let answer = second.await.unwrap();
    assert_eq!(answer.status, 302, "{answer:?}");
    assert!(answer.set_cookie("session").is_some(), "{answer:?}");
    assert_eq!(stack.provider.calls(Endpoint::Token), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_one_that_never_ends_is_told_so_in_time_and_redeems_nothing() {
    let stack = Stack::with(&[("OIDC_HTTP_TIMEOUT_MS", "500")]).await;
    let (_, mut there, callback) = pending(&stack).await;
    let holder = stack.beside_with_settings(|settings| {
        for provider in &mut settings.providers.all {
            provider.settings.http_timeout = Duration::from_secs(600);
        }
    });
    let mut holder = holder.await;
    holder.jar = there.jar.clone();
    let gate = stack.provider.hold(Endpoint::Token);
    let first = visiting(&holder, &callback);
    stack.provider.wait_for_calls(Endpoint::Token, 1).await;
    let began = Instant::now();
    let answer = there.visit(&callback).await;
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(stack.provider.calls(Endpoint::Token), 1);
    first.abort();
    drop(gate);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_cannot_be_made_uses_nothing_up() {
    let stack = Stack::start().await;
    let (mut here, _, callback) = pending(&stack).await;
    stack.sessions.stop().await;
    let answer = here.visit(&callback).await;
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(stack.provider.calls(Endpoint::Token), 0, "the code is still good");
    stack.sessions.start_again().await;
    let answer = here.visit(&callback).await;
    assert_eq!(answer.status, 302, "{answer:?}");
    assert_eq!(here.get("/api/auth/me").await.status, 200);
}
