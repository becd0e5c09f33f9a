//! Security events pushed to the edge (RFC 8935), and their effect on users' next requests.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::grpc_web;
use crate::support::{Answer, Browser, EVENTS_AUDIENCE, NAVIGATION, Stack};

const PATH: &str = "/api/auth/events";
const PUSH: [(&str, &str); 2] = [
    ("content-type", "application/secevent+jwt"),
    ("accept", "application/json"),
];
const CAEP: &str = "https://schemas.openid.net/secevent/caep/event-type/";
const LISTENS: (&str, &str) = ("SESSION_SIGNALS", "email = false");

async fn push(edge: &mut Browser, token: &str) -> Answer {
    edge.send(Method::POST, PATH, &PUSH, Some(token.to_owned())).await
}

/// A token about a user at the provider.
fn event(stack: &Stack, name: &str, subject: &str, said: &Value) -> String {
    let sub_id = json!({ "format": "iss_sub", "iss": stack.provider.issuer(), "sub": subject });
    let events = json!({ (format!("{CAEP}{name}")): said });
    stack.provider.security_event(
        json!({ "aud": EVENTS_AUDIENCE, "sub_id": sub_id, "events": events, "iat": stack.clock_secs() }),
    )
}

/// Advances time, for the provider too.
fn later(stack: &Stack, secs: u64) {
    stack.advance(secs);
    let now = stack.clock_secs();
    stack.provider.script(|script| script.now = Some(now));
}

fn password_changed() -> Value {
    json!({ "credential_type": "password", "change_type": "update" })
}

/// Requests a page until it answers this status; changes reach the edge within a second.
async fn answers(browser: &mut Browser, path: &str, status: u16) -> Answer {
    for _ in 0..2_000 {
        let answer = browser.visit(path).await;
        if answer.status == status {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{path} is never answered by {status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_taken_is_answered_by_nothing_and_its_sessions_are_over() {
    let gateway = Gateway::start("", &[LISTENS]).await;
    let mut alice = gateway.stack.browser();
    assert_eq!(alice.sign_in().await.status, 302);
    assert_eq!(alice.visit("/account/a").await.status, 200);
    let mut provider = gateway.stack.browser();
    let token = event(&gateway.stack, "session-revoked", "alice", &json!({}));
    for _ in 0..2 {
        let answer = push(&mut provider, &token).await;
        assert_eq!((answer.status, answer.body.as_str()), (202, ""));
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    answers(&mut alice, "/account/a", 307).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_told_in_the_words_of_the_rfc() {
    let gateway = Gateway::start("", &[LISTENS]).await;
    let (stack, mut provider) = (&gateway.stack, gateway.stack.browser());
    let good = event(stack, "session-revoked", "alice", &json!({}));
    let (signed, _) = good.rsplit_once('.').unwrap();
    let elsewhere = stack
        .provider
        .security_event(json!({ "aud": "https://other.example" }));
    for (token, code) in [
        ("nothing".to_owned(), "invalid_request"),
        (format!("{signed}.AAAA"), "invalid_key"),
        (elsewhere, "invalid_audience"),
    ] {
        let answer = push(&mut provider, &token).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(answer.header("content-language"), "en");
        let error = answer.json();
        assert_eq!(error["err"], code);
        assert!(error["description"].is_string(), "{error}");
        assert_eq!(error.as_object().unwrap().len(), 2, "{error}");
    }
    let form = provider.post(PATH, &[], "token=a").await;
    assert_eq!((form.status, form.header("accept")), (415, PUSH[0].1));
    let description = form.json()["error_description"].as_str().unwrap().to_owned();
    assert!(description.contains(PUSH[0].1), "{description}");
    let large = push(&mut provider, &"x".repeat(70_000)).await;
    assert_eq!(large.status, 413);
    let got = provider.get(PATH).await;
    assert_eq!((got.status, got.header("allow")), (405, "POST"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_now_is_503_and_good_later() {
    let gateway = Gateway::start("", &[LISTENS]).await;
    let (stack, mut provider) = (&gateway.stack, gateway.stack.browser());
    let token = event(stack, "session-revoked", "alice", &json!({}));
    stack.sessions.stop().await;
    let away = push(&mut provider, &token).await;
    assert_eq!(away.status, 503);
    assert_ne!(away.header("retry-after"), "");
    stack.sessions.start_again().await;
    assert_eq!(push(&mut provider, &token).await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_header_of_a_stream_is_passed_on() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "Bearer of-the-stream").unwrap();
    let lines = format!("authorization_file = \"{}\"", file.path().display());
    let gateway = Gateway::start("", &[("SESSION_SIGNALS", &lines)]).await;
    let (stack, mut provider) = (&gateway.stack, gateway.stack.browser());
    let token = event(stack, "session-revoked", "alice", &json!({}));
    let without = push(&mut provider, &token).await;
    assert_eq!(
        (without.status, without.json()["err"].clone()),
        (400, json!("authentication_failed"))
    );
    let with = [PUSH[0], ("authorization", "Bearer of-the-stream")];
    let with = provider.send(Method::POST, PATH, &with, Some(token)).await;
    assert_eq!(with.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_is_listened_to_there_is_no_such_address() {
    let gateway = Gateway::start("", &[]).await;
    let mut provider = gateway.stack.browser();
    assert_eq!(push(&mut provider, "token").await.status, 404);
    let before = gateway.stack.sessions.calls();
    for token in ["token", "another", ""] {
        assert_eq!(push(&mut provider, token).await.status, 404);
    }
    let form = provider.post(PATH, &[], "token=a").await;
    assert_eq!(form.status, 404);
    assert_eq!(
        gateway.stack.sessions.calls(),
        before,
        "no call is made for a stranger"
    );
    for _ in 0..600 {
        push(&mut provider, "token").await;
    }
    assert_eq!(push(&mut provider, "token").await.status, 429);
    // The operator may have enabled the receiver meanwhile, so the edge calls the session service again.
    later(&gateway.stack, 60);
    let before = gateway.stack.sessions.calls();
    assert_eq!(push(&mut provider, "token").await.status, 404);
    assert_eq!(gateway.stack.sessions.calls(), before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_nothing_but_what_is_refused_is_asked_to_wait() {
    let gateway = Gateway::start("", &[LISTENS]).await;
    let mut stranger = gateway.stack.browser();
    let mut statuses = std::collections::BTreeMap::new();
    for _ in 0..605 {
        *statuses
            .entry(push(&mut stranger, "nothing").await.status)
            .or_insert(0) += 1;
    }
    assert_eq!(statuses, [(400, 600), (429, 5)].into());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_credential_sends_people_to_prove_anew_who_they_are_and_then_back() {
    let gateway = Gateway::start("", &[LISTENS]).await;
    let stack = &gateway.stack;
    let mut alice = stack.browser();
    assert_eq!(alice.sign_in().await.status, 302);
    assert_eq!(alice.visit("/account/a").await.status, 200);
    later(stack, 60);
    let token = event(stack, "credential-change", "alice", &password_changed());
    assert_eq!(push(&mut stack.browser(), &token).await.status, 202);

    let sent = answers(&mut alice, "/account/a", 307).await;
    let api = alice.get("/api/orders").await;
    assert_eq!(api.status, 401);
    let challenge = api.header("www-authenticate");
    assert!(
        challenge.contains("insufficient_user_authentication") && challenge.contains("max_age=\"0\""),
        "{challenge}"
    );
    // The login of a user who must sign in again, on every path to it.
    for login in [sent.location(), "/api/auth/login?returnTo=/account/a&prompt=none"] {
        let to_provider = alice.visit(login).await;
        let asked = to_provider.location();
        assert!(
            asked.contains("max_age=0") && !asked.contains("prompt=none"),
            "{asked}"
        );
    }
    later(stack, 2);
    let callback = alice.until_callback(sent.location()).await;
    assert_eq!(alice.visit(&callback).await.status, 302);
    assert_eq!(alice.visit("/account/a").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_in_which_the_provider_asked_nobody_is_not_enough_however_it_came_about() {
    let gateway = Gateway::start("", &[LISTENS]).await;
    let stack = &gateway.stack;
    let long_ago = stack.now_secs() - 600;
    let signed_in_then = |secs: u64| {
        stack
            .provider
            .script(|script| _ = script.claims.insert("auth_time".into(), json!(secs)));
    };
    signed_in_then(long_ago);
    let mut alice = stack.browser();
    assert_eq!(alice.sign_in().await.status, 302);
    let token = event(stack, "credential-change", "alice", &password_changed());
    assert_eq!(push(&mut stack.browser(), &token).await.status, 202);
    // A second browser, which does not know that a sign-in is required.
    let mut elsewhere = stack.browser();
    assert_eq!(elsewhere.sign_in().await.status, 302);
    let sent = answers(&mut elsewhere, "/account/a", 307).await;
    // The provider states that it did not authenticate: the sign-in is rejected, without a loop.
    let callback = elsewhere.until_callback(sent.location()).await;
    assert_eq!(elsewhere.visit(&callback).await.status, 400);
    later(stack, 2);
    signed_in_then(stack.clock_secs());
    let callback = elsewhere.until_callback(sent.location()).await;
    assert_eq!(elsewhere.visit(&callback).await.status, 302);
    assert_eq!(elsewhere.visit("/account/a").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_that_is_demanded_and_never_comes_is_said_once_and_does_not_go_round_in_circles() {
    let lines = "[policy]\ncredential-change = \"acr:gold\"";
    let gateway = Gateway::start("", &[("SESSION_SIGNALS", lines)]).await;
    let stack = &gateway.stack;
    let class = |acr: Value| {
        stack
            .provider
            .script(|script| _ = script.claims.insert("acr".into(), acr));
    };
    let mut alice = stack.browser();
    assert_eq!(alice.sign_in().await.status, 302);
    later(stack, 60);
    let token = event(stack, "credential-change", "alice", &password_changed());
    assert_eq!(push(&mut stack.browser(), &token).await.status, 202);
    let sent = answers(&mut alice, "/account/a", 307).await.location().to_owned();
    let asked = alice.visit(&sent).await.location().to_owned();
    assert!(asked.contains("acr_values=gold"), "{asked}");
    later(stack, 2);
    class(json!("bronze"));
    let callback = alice.until_callback(&sent).await;
    assert_eq!(
        alice.visit(&callback).await.status,
        400,
        "the class that was requested did not come"
    );
    class(json!("gold"));
    let callback = alice.until_callback(&sent).await;
    assert_eq!(alice.visit(&callback).await.status, 302);
    assert_eq!(alice.visit("/account/a").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_owes_a_sign_in_passes_no_check_without_a_rule_either_and_looks_after_no_other_session() {
    let gateway = Gateway::start("", &[LISTENS, ("EDGE_TRUSTED_PROXIES", "127.0.0.1/32")]).await;
    let stack = &gateway.stack;
    let mut alice = stack.browser();
    assert_eq!(alice.sign_in().await.status, 302);
    let host = alice.host().to_owned();
    let about = [
        ("x-forwarded-uri", "/elsewhere"),
        ("x-forwarded-host", host.as_str()),
        ("x-forwarded-proto", "http"),
    ];
    assert_eq!(alice.get_with("/api/auth/check", &about).await.status, 200);
    later(stack, 60);
    let token = event(stack, "credential-change", "alice", &password_changed());
    assert_eq!(push(&mut stack.browser(), &token).await.status, 202);
    answers(&mut alice, "/account/a", 307).await;
    let refused = alice.get_with("/api/auth/check", &about).await;
    assert_eq!(refused.status, 401, "{refused:?}");
    assert!(
        refused.header("www-authenticate").contains("max_age=\"0\""),
        "{refused:?}"
    );
    let mut redirected = about.to_vec();
    redirected.extend(NAVIGATION);
    let redirected = alice.get_with("/api/auth/check?redirect=1", &redirected).await;
    assert_eq!(redirected.status, 302, "{redirected:?}");
    let cookie = format!("session={}", alice.jar["session"]);
    for method in ["ListMySessions", "EndMySession", "EndMyOtherSessions"] {
        let answer = grpc_web::send(stack, &cookie, method, &()).await;
        let status = answer.headers().get("grpc-status").cloned();
        assert_eq!(status.unwrap(), "9", "{method}");
    }
    let current = grpc_web::send(stack, &cookie, "GetCurrentSession", &()).await;
    assert!(
        current
            .headers()
            .get("grpc-status")
            .is_none_or(|status| status == "0")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_whose_time_the_provider_tells_only_when_asked_is_not_taken_for_a_new_one() {
    let gateway = Gateway::start("", &[LISTENS]).await;
    let stack = &gateway.stack;
    let send_auth_time = |is_sent: bool| {
        stack.provider.script(|script| {
            if is_sent {
                script.claims.remove("auth_time");
            } else {
                script.claims.insert("auth_time".into(), Value::Null);
            }
        });
    };
    send_auth_time(false);
    let mut alice = stack.browser();
    assert_eq!(alice.sign_in().await.status, 302);
    later(stack, 60);
    let token = event(stack, "credential-change", "alice", &password_changed());
    assert_eq!(push(&mut stack.browser(), &token).await.status, 202);
    later(stack, 120);
    // This browser does not know that a sign-in is required, and the provider does not prompt.
    let mut elsewhere = stack.browser();
    assert_eq!(elsewhere.sign_in().await.status, 302);
    let sent = answers(&mut elsewhere, "/account/a", 307).await;
    send_auth_time(true);
    let callback = elsewhere.until_callback(sent.location()).await;
    assert_eq!(elsewhere.visit(&callback).await.status, 302);
    assert_eq!(elsewhere.visit("/account/a").await.status, 200);
}
