//! An upstream that rejects the access token: one refresh and one retry, only if a retry is safe.

use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use reqwest::Method;

use crate::gateway::Gateway;
use crate::support::{Browser, Upstream};

const INVALID: [(&str, &str); 1] = [("www-authenticate", "Bearer error=\"invalid_token\"")];

/// A gateway whose upstream rejects the first token it saw, with a signed-in browser.
async fn refusing_the_first() -> (Gateway, Browser) {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.stack.browser();
    browser.sign_in().await;
    let first: Arc<Mutex<Option<String>>> = Arc::default();
    gateway.upstream.answer_by(move |seen| {
        let token = seen.all("authorization")[0].clone();
        let revoked = first.lock().unwrap().get_or_insert_with(|| token.clone()).clone();
        (token == revoked).then(|| (StatusCode::UNAUTHORIZED, INVALID).into_response())
    });
    (gateway, browser)
}

fn refuse_all(upstream: &Upstream, challenge: &'static [(&'static str, &'static str); 1]) {
    upstream.answer_by(move |_| Some((StatusCode::UNAUTHORIZED, *challenge).into_response()));
}

fn refreshes(gateway: &Gateway) -> usize {
    gateway.stack.provider.grants("refresh_token")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_is_refreshed_and_the_request_repeated_once() {
    let (gateway, mut browser) = refusing_the_first().await;
    assert_eq!(browser.get("/token/a").await.status, 200);
    let seen = gateway.upstream.requests();
    assert_eq!(seen.len(), 2);
    assert_ne!(seen[0].all("authorization"), seen[1].all("authorization"));
    assert_eq!((seen[0].target.as_str(), seen[1].target.as_str()), ("/a", "/a"));
    assert_eq!(refreshes(&gateway), 1);
    assert_eq!(browser.get("/token/a").await.status, 200);
    assert_eq!(gateway.upstream.requests().len(), 3, "the new token is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_refused_at_once_share_one_refresh() {
    let (gateway, browser) = refusing_the_first().await;
    let answers = futures_util::future::join_all((0..20).map(|_| {
        let mut browser = browser.clone();
        async move { browser.get("/token/a").await.status }
    }))
    .await;
    assert_eq!(answers, [200; 20]);
    assert_eq!(refreshes(&gateway), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_trusts_nothing_is_asked_twice_and_never_in_circles() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.stack.browser();
    browser.sign_in().await;
    refuse_all(&gateway.upstream, &INVALID);
    assert_eq!(browser.get("/token/a").await.status, 401);
    assert_eq!(gateway.upstream.requests().len(), 2);
    for _ in 0..5 {
        assert_eq!(browser.get("/token/a").await.status, 401);
    }
    assert_eq!(
        (gateway.upstream.requests().len(), refreshes(&gateway)),
        (7, 1),
        "the provider is left alone"
    );
    gateway.stack.advance(31);
    assert_eq!(browser.get("/token/a").await.status, 401);
    assert_eq!(refreshes(&gateway), 2, "after a while it is tried again");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_repeated_that_may_have_had_an_effect_or_is_not_about_the_token() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.stack.browser();
    browser.sign_in().await;
    refuse_all(&gateway.upstream, &INVALID);
    assert_eq!(browser.post("/token/a", &[], "a=b").await.status, 401);
    assert_eq!(
        browser.send(Method::DELETE, "/token/a", &[], None).await.status,
        401
    );
    refuse_all(&gateway.upstream, &[("www-authenticate", "Basic")]);
    assert_eq!(browser.get("/token/a").await.status, 401);
    let seen = gateway.upstream.requests();
    let methods: Vec<&Method> = seen.iter().map(|seen| &seen.method).collect();
    assert_eq!(methods, [Method::POST, Method::DELETE, Method::GET]);
    assert_eq!(refreshes(&gateway), 0);
}
