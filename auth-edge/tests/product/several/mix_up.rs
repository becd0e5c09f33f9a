//! Mix-up (RFC 9700, section 4.4): one provider's answer to a sign-in begun at another.

use super::{Two, parameter};
use crate::support::Browser;

/// Begins a sign-in at `b`, which forwards the browser to `a` with the same state. Returns the address of
/// `a`'s answer, at the callback that `a` knows.
async fn answer_of_a_for_b(two: &Two, browser: &mut Browser) -> url::Url {
    let (_, at_b) = two.sent_to(browser, "/api/auth/login?connection=b").await;
    let (_, at_a) = two
        .sent_to(&mut two.stack.browser(), "/api/auth/login?connection=a")
        .await;
    let state = parameter(&at_b, "state").unwrap();
    let pairs: Vec<(String, String)> = at_a
        .query_pairs()
        .map(|(name, value)| match &*name {
            "state" => (name.into_owned(), state.clone()),
            _ => (name.into_owned(), value.into_owned()),
        })
        .collect();
    let mut mixed = at_a.clone();
    mixed.query_pairs_mut().clear().extend_pairs(pairs);
    url::Url::parse(&browser.authorize(mixed.as_str()).await).unwrap()
}

/// The edge rejects it, calls neither provider, and creates no session.
async fn refused(two: &Two, browser: &mut Browser, callback: &url::Url) {
    let answer = browser.visit(callback.as_str()).await;
    assert_eq!(answer.status, 400, "{callback}: {answer:?}");
    assert!(answer.set_cookie("session").is_none(), "{answer:?}");
    assert_eq!(two.token_calls(), (0, 0), "the code goes nowhere: {callback}");
    assert_eq!(browser.get("/api/auth/me").await.status, 204);
}

/// Neither provider names itself in answers, or promises to.
fn say_nothing(two: &Two) {
    for provider in [two.a(), &two.b] {
        provider.script(|script| {
            script.no_callback_iss = true;
            let promise = "authorization_response_iss_parameter_supported".to_owned();
            script.metadata.insert(promise, serde_json::Value::Null);
        });
    }
}

// conformance: B-014 B-061
#[tokio::test]
async fn the_answer_of_another_provider_is_refused_and_its_code_goes_nowhere() {
    let two = Two::start().await;
    let mut browser = two.stack.browser();
    let at_callback_of_a = answer_of_a_for_b(&two, &mut browser).await;
    assert!(parameter(&at_callback_of_a, "iss").is_some());
    refused(&two, &mut browser, &at_callback_of_a).await;
    assert_eq!(two.stack.counter("sign_in_refusals_total", "other_provider"), 1);
    let mut at_callback_of_b = answer_of_a_for_b(&two, &mut browser).await;
    at_callback_of_b.set_path("/api/auth/callback/b");
    refused(&two, &mut browser, &at_callback_of_b).await;
    assert_eq!(two.stack.counter("sign_in_refusals_total", "issuer"), 1);
}

// conformance: B-014
#[tokio::test]
async fn without_iss_the_callback_tells_whose_answer_it_is() {
    let two = Two::start().await;
    say_nothing(&two);
    let mut browser = two.stack.browser();
    let callback = answer_of_a_for_b(&two, &mut browser).await;
    assert_eq!(parameter(&callback, "iss"), None);
    refused(&two, &mut browser, &callback).await;
    assert_eq!(two.stack.counter("sign_in_refusals_total", "other_provider"), 1);
    for id in ["a", "b"] {
        two.signed_in(id).await;
    }
    assert_eq!(two.token_calls(), (1, 1), "honest answers are taken");
}

// conformance: B-060
#[tokio::test]
async fn an_answer_without_the_iss_its_provider_promises_is_refused_at_that_callback() {
    let two = Two::start().await;
    two.b.script(|script| script.no_callback_iss = true);
    let mut browser = two.stack.browser();
    let callback = browser.until_callback("/api/auth/login?connection=b").await;
    refused(&two, &mut browser, &url::Url::parse(&callback).unwrap()).await;
}

#[tokio::test]
async fn an_error_of_another_provider_is_refused_too_and_another_sign_in_goes_on() {
    let two = Two::start().await;
    let mut browser = two.stack.browser();
    let pending = browser.until_callback("/api/auth/login?connection=b").await;
    two.a()
        .script(|script| script.authorize_error = Some("access_denied".to_owned()));
    let callback = answer_of_a_for_b(&two, &mut browser).await;
    refused(&two, &mut browser, &callback).await;
    assert_eq!(browser.visit(&pending).await.status, 302);
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
}

#[tokio::test]
async fn providers_may_answer_in_different_ways_and_each_callback_takes_its_own() {
    let form = "response_mode = \"form_post\"";
    let two = Two::with("", form, &[("EDGE_BASE_URL", "https://app.example")]).await;
    let mut browser = two.stack.browser();
    for (id, same_site) in [("a", "SameSite=Lax"), ("b", "SameSite=None")] {
        let answer = browser.visit(&format!("/api/auth/login?connection={id}")).await;
        let cookies = answer.set_cookies();
        assert!(
            cookies.iter().any(|line| line.contains(same_site)),
            "{id}: {answer:?}"
        );
    }
    assert_eq!(browser.get("/api/auth/callback/b").await.status, 405);
    assert_eq!(browser.post("/api/auth/callback/a", &[], "").await.status, 405);
}
