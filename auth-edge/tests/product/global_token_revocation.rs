//! Global Token Revocation requests to the edge, and their effect on users' next requests.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::support::{Answer, Browser, EVENTS_AUDIENCE, Stack};

const PATH: &str = "/api/auth/global-token-revocation";
const ON: (&str, &str) = ("SESSION_SIGNALS", "global_token_revocation = true");

async fn revoke(sender: &mut Browser, sub_id: &Value, authorization: &str) -> Answer {
    send(
        sender,
        "application/json",
        json!({ "sub_id": sub_id }).to_string(),
        authorization,
    )
    .await
}

async fn send(sender: &mut Browser, media_type: &str, body: String, authorization: &str) -> Answer {
    let headers = [
        ("content-type", media_type),
        ("accept", "application/json"),
        ("authorization", authorization),
    ];
    sender.send(Method::POST, PATH, &headers, Some(body)).await
}

/// The header of the provider, as Okta sends it.
fn signed(stack: &Stack, jti: &str) -> String {
    let now = stack.clock_secs();
    let claims = json!({
        "iss": stack.provider.issuer(), "aud": EVENTS_AUDIENCE, "sub": "client", "jti": jti,
        "iat": now, "nbf": now - 300, "exp": now + 300,
    });
    let typ = json!({ "typ": "global-token-revocation+jwt" });
    format!("Bearer {}", stack.provider.sign_with_header(typ, claims))
}

fn alice(stack: &Stack) -> Value {
    json!({ "format": "iss_sub", "iss": stack.provider.issuer(), "sub": "alice" })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_signs_a_user_out_of_every_browser() {
    let gateway = Gateway::start("", &[ON]).await;
    let stack = &gateway.stack;
    let mut browsers = [stack.browser(), stack.browser()];
    for browser in &mut browsers {
        assert_eq!(browser.sign_in().await.status, 302);
        assert_eq!(browser.visit("/account/a").await.status, 200);
    }
    let mut provider = stack.browser();
    let header = signed(stack, "one");
    for _ in 0..2 {
        let answer = revoke(&mut provider, &alice(stack), &header).await;
        assert_eq!((answer.status, answer.body.as_str()), (204, ""));
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    for browser in &mut browsers {
        let mut status = 200;
        for _ in 0..2_000 {
            status = browser.visit("/account/a").await.status;
            if status == 307 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(status, 307);
    }
    stack.advance(2);
    let now = stack.clock_secs();
    stack.provider.script(|script| script.now = Some(now));
    assert_eq!(browsers[0].sign_in().await.status, 302, "a new sign-in");
    assert_eq!(browsers[0].visit("/account/a").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_rejection_has_the_status_of_the_draft() {
    let gateway = Gateway::start("", &[ON]).await;
    let (stack, mut provider) = (&gateway.stack, gateway.stack.browser());
    let header = signed(stack, "one");
    let unauthenticated = revoke(&mut provider, &alice(stack), "Bearer unknown").await;
    assert_eq!(unauthenticated.status, 401);
    assert_eq!(unauthenticated.header("www-authenticate"), "Bearer");
    assert_eq!(unauthenticated.header("cache-control"), "no-store");
    assert_eq!(unauthenticated.json()["err"], "authentication_failed");
    let elsewhere = json!({ "format": "iss_sub", "iss": "https://other.example", "sub": "alice" });
    let phone = json!({ "format": "phone_number", "phone_number": "+12065550100" });
    for (subject, status, code) in [
        (&elsewhere, 403, "access_denied"),
        (&phone, 400, "invalid_request"),
        (&Value::Null, 400, "invalid_request"),
    ] {
        let answer = revoke(&mut provider, subject, &header).await;
        assert_eq!(
            (answer.status, answer.json()["err"].as_str()),
            (status, Some(code)),
            "{subject}"
        );
        assert!(answer.json()["description"].is_string());
    }
    let empty = send(&mut provider, "application/json", String::new(), &header).await;
    assert_eq!(empty.status, 400);
    let form = send(
        &mut provider,
        "application/x-www-form-urlencoded",
        "a=b".into(),
        &header,
    )
    .await;
    assert_eq!((form.status, form.header("accept")), (415, "application/json"));
    let large = send(&mut provider, "application/json", "x".repeat(70_000), &header).await;
    assert_eq!(large.status, 413);
    let got = provider.get(PATH).await;
    assert_eq!((got.status, got.header("allow")), (405, "POST"));
    stack.sessions.stop().await;
    let away = revoke(&mut provider, &alice(stack), &header).await;
    assert_eq!(away.status, 503);
    assert_ne!(away.header("retry-after"), "");
    stack.sessions.start_again().await;
    assert_eq!(revoke(&mut provider, &alice(stack), &header).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_key_in_a_table_there_is_no_such_address_and_events_still_arrive() {
    let gateway = Gateway::start("", &[("SESSION_SIGNALS", "email = true")]).await;
    let (stack, mut provider) = (&gateway.stack, gateway.stack.browser());
    assert_eq!(revoke(&mut provider, &alice(stack), "Bearer a").await.status, 404);
    let before = stack.sessions.calls();
    assert_eq!(revoke(&mut provider, &alice(stack), "Bearer a").await.status, 404);
    assert_eq!(stack.sessions.calls(), before, "no call for a stranger");
    let event = [("content-type", "application/secevent+jwt")];
    let event = provider
        .send(Method::POST, "/api/auth/events", &event, Some("token".into()))
        .await;
    assert_eq!(event.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_only_rejected_requests_is_asked_to_wait() {
    let gateway = Gateway::start("", &[ON]).await;
    let mut stranger = gateway.stack.browser();
    let mut statuses = std::collections::BTreeMap::new();
    for _ in 0..605 {
        let answer = revoke(&mut stranger, &Value::Null, "Bearer guess").await;
        *statuses.entry(answer.status).or_insert(0) += 1;
    }
    assert_eq!(statuses, [(401, 600), (429, 5)].into());
}
