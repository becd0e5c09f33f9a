//! The authorization response: errors found before any call to the provider.

use scripted_provider::Endpoint;

use super::posted;
use crate::support::{Answer, Browser, Log, Stack};

fn refused(answer: &Answer, stack: &Stack) {
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.set_cookie("session").is_none());
    assert_eq!(stack.provider.calls(Endpoint::Token), 0, "no code was redeemed");
}

async fn callback(browser: &mut Browser) -> Answer {
    let callback = browser.until_callback("/api/auth/login").await;
    browser.visit(&callback).await
}

// conformance: B-060
#[tokio::test]
async fn without_the_promised_issuer_a_code_and_an_error_are_rejected() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    stack.provider.script(|script| script.no_callback_iss = true);
    refused(&callback(&mut browser).await, &stack);
    stack
        .provider
        .script(|script| script.authorize_error = Some("access_denied".to_owned()));
    refused(&callback(&mut browser).await, &stack);
}

// conformance: B-061
#[tokio::test]
async fn the_issuer_of_an_answer_is_compared_byte_by_byte() {
    let stack = Stack::start().await;
    let issuer = stack.provider.issuer().to_owned();
    let port = issuer.rsplit(':').next().unwrap().to_owned();
    for other in [
        format!("{issuer}/"),
        issuer.to_uppercase(),
        format!("HTTP://127.0.0.1:{port}"),
        format!("http://127.0.0.1:0{port}"),
        issuer.replace("127", "%3127"),
        format!(" {issuer}"),
        format!("{issuer}\0"),
        String::new(),
        "https://evil.example".to_owned(),
    ] {
        stack
            .provider
            .script(|script| script.callback_iss = Some(other.clone()));
        refused(&callback(&mut stack.browser()).await, &stack);
    }
}

// conformance: A-079
#[tokio::test]
async fn without_state_or_with_another_ones_an_answer_is_rejected() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let url = browser.until_callback("/api/auth/login").await;
    let (path, query) = url.split_once('?').unwrap();
    let with = |state: Option<&str>| {
        let kept = url::form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name != "state");
        let mut pairs = url::form_urlencoded::Serializer::new(String::new());
        pairs.extend_pairs(kept);
        if let Some(state) = state {
            pairs.append_pair("state", state);
        }
        format!("{path}?{}", pairs.finish())
    };
    for state in [None, Some(""), Some("another"), Some("AAAAAAAAAAAAAAAAAAAAAA")] {
        refused(&browser.visit(&with(state)).await, &stack);
    }
    assert_eq!(browser.visit(&url).await.status, 302, "and uses nothing up");
}

// conformance: A-047
#[tokio::test]
async fn tokens_in_an_answer_make_no_session() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let url = browser.until_callback("/api/auth/login").await;
    let without_code: String = url
        .split('&')
        .map(|pair| {
            if pair.contains("code=") {
                pair.replace("code=", "other=")
            } else {
                pair.to_owned()
            }
        })
        .collect::<Vec<_>>()
        .join("&");
    let id_token = stack
        .provider
        .sign(serde_json::json!({ "iss": stack.provider.issuer(), "sub": "eve" }));
    let smuggled = format!("{without_code}&id_token={id_token}&access_token=x&token_type=Bearer");
    refused(&browser.visit(&smuggled).await, &stack);
    // Next to a code, the edge ignores them.
    let url = browser.until_callback("/api/auth/login").await;
    let answer = browser
        .visit(&format!("{url}&id_token={id_token}&access_token=x"))
        .await;
    assert_eq!(answer.status, 302);
    assert_eq!(browser.get("/api/auth/me").await.json()["sub"], "alice");
}

// conformance: A-025
#[tokio::test]
async fn a_form_is_405_where_the_query_was_asked_for_and_uses_nothing_up() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let url = browser.until_callback("/api/auth/login").await;
    let form = url.split_once('?').unwrap().1;
    let answer = browser.post("/api/auth/callback", &[], form).await;
    assert_eq!((answer.status, answer.header("allow")), (405, "GET"));
    assert_eq!(browser.visit(&url).await.status, 302);
}

// conformance: A-028
#[tokio::test]
async fn bad_forms_are_rejected_before_the_provider_is_called() {
    let stack = Stack::with(&[
        ("OIDC_RESPONSE_MODE", "form_post"),
        ("EDGE_BASE_URL", "https://app.example"),
    ])
    .await;
    type Alter = fn(&str) -> String;
    let cases: [(&str, Alter); 6] = [
        ("application/x-www-form-urlencoded", |form| {
            format!("{form}&padding={}", "a".repeat(70_000))
        }),
        ("application/x-www-form-urlencoded", |form| {
            format!("{form}&code=another")
        }),
        ("application/x-www-form-urlencoded", |form| {
            format!("{form}&state=another")
        }),
        ("application/json", |_| "{}".to_owned()),
        ("text/plain", str::to_owned),
        ("multipart/form-data; boundary=x", str::to_owned),
    ];
    for (kind, alter) in cases {
        // The first message that finds a sign-in uses it up.
        let mut browser = stack.browser();
        let login = browser.visit("/api/auth/login").await;
        let form = posted(login.location()).await;
        let answer = browser
            .post("/api/auth/callback", &[("content-type", kind)], &alter(&form))
            .await;
        assert!(matches!(answer.status, 400 | 413 | 415), "{kind}: {answer:?}");
        assert_eq!(stack.provider.calls(Endpoint::Token), 0, "{kind}");
    }
}

// conformance: B-036
#[tokio::test]
async fn an_error_ends_the_sign_in_once_and_is_told_apart() {
    let stack = Stack::start().await;
    for (error, label) in [
        ("access_denied", "denied"),
        ("login_required", "interaction_needed"),
        ("server_error", "provider_error"),
    ] {
        stack
            .provider
            .script(|script| script.authorize_error = Some(error.to_owned()));
        let mut browser = stack.browser();
        let answer = callback(&mut browser).await;
        refused(&answer, &stack);
        assert_eq!(answer.location(), "", "no new attempt by itself");
        assert!(browser.jar.is_empty(), "the transaction is used up");
        assert_eq!(stack.counter("sign_in_refusals_total", label), 1, "{error}");
    }
}

// conformance: B-017
#[tokio::test]
async fn a_callback_leaves_no_trace_of_code_and_state() {
    let log = Log::begin();
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let url = browser.until_callback("/api/auth/login?returnTo=/a").await;
    let answer = browser.visit(&url).await;
    assert_eq!(answer.header("referrer-policy"), "no-referrer");
    assert_eq!(answer.location(), format!("{}/a", stack.base()));
    assert!(answer.body.is_empty());
    let again = stack.browser().visit(&url).await;
    assert_eq!(again.status, 400);
    assert!(
        !again.body.contains("code=") && !again.body.contains("state="),
        "{}",
        again.body
    );
    assert!(
        again
            .header("content-security-policy")
            .contains("default-src 'none'")
    );
    let written = log.text();
    assert!(
        written.contains("event=\"sign_in\" outcome=\"failure\""),
        "{written}"
    );
    for (name, value) in url::Url::parse(&url).unwrap().query_pairs() {
        let is_logged = name != "iss" && written.contains(&*value);
        assert!(!is_logged, "{name} is in the log:\n{written}");
    }
}
