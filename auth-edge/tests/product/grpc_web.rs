//! `BrowserSessionService` as the web app calls it.

use reqwest::Method;

use crate::support::{Answer, Browser, Stack};

/// An empty message in its frame.
const EMPTY: &str = "\0\0\0\0\0";

async fn call(browser: &mut Browser, method: &str, headers: &[(&str, &str)]) -> Answer {
    let headers: Vec<_> = [("content-type", "application/grpc-web+proto")]
        .into_iter()
        .chain(headers.iter().copied())
        .collect();
    let path = format!("/session.v1.BrowserSessionService/{method}");
    browser
        .send(Method::POST, &path, &headers, Some(EMPTY.to_owned()))
        .await
}

async fn signed_in(stack: &Stack) -> Browser {
    let mut browser = stack.browser();
    let (name, value) = stack.session_cookie().await;
    browser.jar.insert(name, value);
    browser
}

// conformance: B-041
#[tokio::test(flavor = "multi_thread")]
async fn the_current_session_is_told_without_rolling_and_without_a_token() {
    let stack = Stack::start().await;
    let mut browser = signed_in(&stack).await;
    stack.clock.advance_ms(120_000);
    let ours = [("x-csrf", "1"), ("sec-fetch-site", "same-origin")];
    for method in ["GetCurrentSession", "ListMySessions", "EndMyOtherSessions"] {
        let answer = call(&mut browser, method, &ours).await;
        assert_eq!(answer.status, 200, "{method}");
        assert!(answer.body.contains("grpc-status:0"), "{method}: {answer:?}");
        assert_eq!(answer.header("cache-control"), "no-store", "{method}");
        assert!(answer.set_cookies().is_empty(), "{method} does not roll");
        assert!(!answer.body.contains("token-of-person-1"), "{method}");
    }
    let rolled = call(&mut browser, "RollCurrentSession", &ours).await;
    assert!(
        rolled.body.contains("person-1") && rolled.set_cookie("session").is_some(),
        "{rolled:?}"
    );
}

// conformance: B-046 B-049
#[tokio::test(flavor = "multi_thread")]
async fn a_call_from_elsewhere_is_403_and_touches_nothing() {
    let stack = Stack::start().await;
    let mut browser = signed_in(&stack).await;
    let before = stack.sessions.calls();
    for headers in [
        &[("x-csrf", "1")][..],
        &[("sec-fetch-site", "same-origin")],
        &[("x-csrf", "1"), ("sec-fetch-site", "same-site")],
        &[("x-csrf", "1"), ("origin", "null")],
        &[
            ("x-csrf", "1"),
            ("origin", "https://evil.example"),
            ("sec-fetch-site", "same-origin"),
        ],
    ] {
        let answer = call(&mut browser, "EndMyOtherSessions", headers).await;
        assert_eq!(
            (answer.status, answer.header("grpc-status")),
            (403, "7"),
            "{headers:?}"
        );
    }
    assert_eq!(stack.sessions.calls(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_session_every_call_says_so() {
    let stack = Stack::start().await;
    let answer = call(
        &mut stack.browser(),
        "GetCurrentSession",
        &[("x-csrf", "1"), ("sec-fetch-site", "same-origin")],
    )
    .await;
    assert_eq!(
        (answer.status, answer.header("grpc-status")),
        (200, "5"),
        "{answer:?}"
    );
}
