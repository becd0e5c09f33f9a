//! Profile, status and the unauthorized answer, and invalid cookies.

use chassis::clock::{Clock as _, ManualClock};
use reqwest::Method;
use scripted_provider::{Answer as Script, Endpoint};
use serde_json::json;
use session_proto::v1::UpdateSessionRequest;

use crate::support::Stack;

// conformance: B-050
#[tokio::test]
async fn without_a_session_the_profile_is_204_and_empty() {
    let stack = Stack::start().await;
    let answer = stack.browser().get("/api/auth/me").await;
    assert_eq!(
        (
            answer.status,
            answer.body.as_str(),
            answer.header("cache-control")
        ),
        (204, "", "no-store")
    );
}

#[tokio::test]
async fn head_gives_the_headers_of_get_without_a_body() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let answer = browser.send(Method::HEAD, "/api/auth/me", &[], None).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    assert_eq!(
        (answer.header("content-type"), answer.header("cache-control")),
        ("application/json", "no-store")
    );
}

#[tokio::test]
async fn forged_truncated_oversized_and_doubled_cookies_are_no_session_and_cost_no_call() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let good = browser.jar["session"].clone();
    let calls = stack.sessions.calls();
    let flipped = format!("{}{}", if good.starts_with('0') { "1" } else { "0" }, &good[1..]);
    for bad in [
        flipped,
        good[..good.len() - 1].to_owned(),
        format!("{good}a"),
        "a".repeat(5000),
        String::new(),
    ] {
        let line = format!("session={bad}");
        let answer = stack
            .browser()
            .get_with("/api/auth/me", &[("cookie", &line)])
            .await;
        assert_eq!((answer.status, answer.set_cookies().len()), (204, 0), "{bad}");
    }
    let twice = format!("session={good}; session={good}");
    assert_eq!(
        stack
            .browser()
            .get_with("/api/auth/me", &[("cookie", &twice)])
            .await
            .status,
        204
    );
    assert_eq!(
        stack.sessions.calls(),
        calls,
        "a cookie that does not verify costs no call"
    );
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
}

#[tokio::test]
async fn an_edge_whose_clock_is_off_keeps_everybody_signed_in_for_as_long() {
    const DAYS_MS: u64 = 86_400_000;
    let stack = Stack::start().await;
    let (name, value) = stack.session_cookie().await;
    let now_ms = stack.clock.now_ms();
    for shown_ms in [now_ms + 30 * DAYS_MS, now_ms - 30 * DAYS_MS] {
        stack.advance(3600);
        let mut browser = stack.beside_at_another_time(ManualClock::new(shown_ms)).await;
        browser.jar.insert(name.clone(), value.clone());
        let me = browser.get("/api/auth/me").await;
        assert_eq!(me.json()["name"], "Ada");
        let cookie = me.set_cookie("session").unwrap();
        assert!(cookie.contains("Max-Age=86400"), "{cookie}");
    }
}

#[tokio::test]
async fn using_the_profile_rolls_the_session_and_the_status_does_not() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    stack.advance(3600);
    let status = browser.get("/api/auth/status").await;
    assert_eq!(status.header("cache-control"), "no-store");
    assert_eq!(
        status.json(),
        json!({"state": "active", "expires_in": 82_800, "absolute_expires_in": 601_200})
    );
    assert!(status.set_cookies().is_empty());
    let me = browser.get("/api/auth/me").await;
    assert!(
        me.set_cookie("session").unwrap().contains("Max-Age=86400"),
        "{me:?}"
    );
    assert_eq!(browser.get("/api/auth/status").await.json()["expires_in"], 86_400);
    stack.advance(86_400);
    assert_eq!(
        browser.get("/api/auth/status").await.json(),
        json!({"state": "signed_out"})
    );
    assert_eq!(browser.get("/api/auth/me").await.status, 204);
}

#[tokio::test]
async fn the_unauthorized_answer_is_word_for_word_for_every_method() {
    let stack = Stack::start().await;
    for method in [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::PATCH,
        Method::OPTIONS,
    ] {
        let answer = stack
            .browser()
            .send(method, "/api/auth/401", &[("accept", "text/html")], None)
            .await;
        assert_eq!(answer.status, 401);
        assert_eq!(
            answer.body,
            r#"{"error":"not_authenticated","description":"The user does not have an active session or is not authenticated"}"#
        );
    }
}

#[tokio::test]
async fn a_refetch_merges_userinfo_and_saves_it() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    stack
        .provider
        .script(|script| _ = script.userinfo.insert("nickname".into(), json!("al")));
    assert!(browser.get("/api/auth/me").await.json().get("nickname").is_none());
    assert_eq!(
        browser.get("/api/auth/me?refetch=true").await.json()["nickname"],
        "al"
    );
    assert_eq!(
        browser.get("/api/auth/me").await.json()["nickname"],
        "al",
        "it was saved"
    );
}

#[tokio::test]
async fn a_refetch_without_the_right_to_keep_it_shows_what_it_has_read() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    stack.sessions.lets_nobody_update();
    stack
        .provider
        .script(|script| _ = script.userinfo.insert("nickname".into(), json!("al")));
    let read = browser.get("/api/auth/me?refetch=true").await;
    assert_eq!((read.status, read.json()["nickname"].as_str()), (200, Some("al")));
    let kept = browser.get("/api/auth/me").await;
    assert!(kept.status == 200 && kept.json().get("nickname").is_none());
}

#[tokio::test]
async fn a_refetch_keeps_what_changed_meanwhile() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let gate = stack.provider.hold(Endpoint::Userinfo);
    let mut tab = browser.clone();
    let refetch = tokio::spawn(async move { tab.get("/api/auth/me?refetch=true").await });
    stack.provider.wait_for_calls(Endpoint::Userinfo, 1).await;
    let user = json!({"sub": "alice", "role": "admin"});
    let update = UpdateSessionRequest {
        session_id: browser.jar["session"].split('.').next().unwrap().to_owned(),
        user: user.to_string(),
        ..UpdateSessionRequest::default()
    };
    let client = stack.sessions.client();
    client.update_session(update).await.unwrap();
    gate.release();
    assert_eq!(refetch.await.unwrap().json()["role"], "admin");
}

/// Concurrent userinfo calls that one session may cause.
const AT_ONCE: usize = 3;

#[tokio::test]
async fn a_session_that_requests_its_profile_often_has_it_read_anew_now_and_then() {
    for always in [false, true] {
        let mode = if always { "always" } else { "on-request" };
        let path = if always {
            "/api/auth/me"
        } else {
            "/api/auth/me?refetch=true"
        };
        let stack = Stack::with(&[("EDGE_PROFILE_REFETCH", mode)]).await;
        let (mut browser, mut other) = (stack.browser(), stack.browser());
        browser.sign_in().await;
        other.sign_in().await;
        let before = stack.provider.calls(Endpoint::Userinfo);
        for _ in 0..200 {
            let answer = browser.get(path).await;
            assert_eq!(
                (answer.status, answer.json()["sub"].as_str()),
                (200, Some("alice"))
            );
        }
        assert_eq!(stack.provider.calls(Endpoint::Userinfo) - before, AT_ONCE);
        other.get(path).await;
        assert_eq!(
            stack.provider.calls(Endpoint::Userinfo) - before,
            AT_ONCE + 1,
            "each has a bucket of its own"
        );
        stack
            .provider
            .script(|script| _ = script.userinfo.insert("nickname".into(), json!("al")));
        assert!(browser.get(path).await.json().get("nickname").is_none());
        stack.advance(5);
        assert_eq!(browser.get(path).await.json()["nickname"], "al");
    }
}

#[tokio::test]
async fn those_who_ask_at_the_same_moment_cost_no_more_calls_also_when_they_hang_up() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let before = stack.provider.calls(Endpoint::Userinfo);
    let gate = stack.provider.hold(Endpoint::Userinfo);
    let ask = || {
        let mut tab = browser.clone();
        tokio::spawn(async move { tab.get("/api/auth/me?refetch=true").await })
    };
    let hung_up: Vec<_> = (0..20).map(|_| ask()).collect();
    stack
        .provider
        .wait_for_calls(Endpoint::Userinfo, before + 1)
        .await;
    for tab in hung_up {
        tab.abort();
    }
    let waiting: Vec<_> = (0..20).map(|_| ask()).collect();
    gate.release();
    for tab in waiting {
        assert_eq!(tab.await.unwrap().status, 200);
    }
    let calls = stack.provider.calls(Endpoint::Userinfo) - before;
    assert!(calls <= AT_ONCE, "{calls}");
}

// conformance: B-104
#[tokio::test]
async fn a_refetch_that_fails_says_so_and_changes_nothing() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let before = browser.get("/api/auth/me").await.json();
    for (answer, status) in [(Script::status(500), 502), (Script::Hang, 504)] {
        stack
            .provider
            .script(|script| _ = script.answers.insert(Endpoint::Userinfo, answer.clone()));
        let failed = browser.get("/api/auth/me?refetch=true").await;
        assert_eq!(
            (failed.status, failed.json()["error"].as_str()),
            (status, Some("ERR_PROFILE_HANDLER_FAILURE"))
        );
        assert!(failed.set_cookies().is_empty());
    }
    stack.provider.reset();
    stack
        .provider
        .script(|script| _ = script.userinfo.insert("sub".into(), json!("mallory")));
    let failed = browser.get("/api/auth/me?refetch=true").await;
    assert_eq!(
        (failed.status, failed.json()["error"].as_str()),
        (502, Some("ERR_PROFILE_HANDLER_FAILURE"))
    );
    assert_eq!(browser.get("/api/auth/me").await.json(), before);
}

// conformance: B-041 B-046
#[tokio::test]
async fn the_access_token_route_is_off_unless_asked_for_and_then_needs_the_proof() {
    let off = Stack::start().await;
    assert_eq!(off.browser().get("/api/auth/access-token").await.status, 404);
    let stack = Stack::with(&[("EDGE_ACCESS_TOKEN_ENDPOINT", "true")]).await;
    let mut browser = stack.browser();
    let origin = stack.base().to_owned();
    let proof = [("x-csrf", "1"), ("origin", origin.as_str())];
    let nobody = browser.get_with("/api/auth/access-token", &proof).await;
    assert_eq!(
        (nobody.status, nobody.json()["error"].as_str()),
        (401, Some("ERR_MISSING_SESSION"))
    );
    browser.sign_in().await;
    assert_eq!(browser.get("/api/auth/access-token").await.status, 403);
    let token = browser.get_with("/api/auth/access-token", &proof).await;
    assert_eq!((token.status, token.header("cache-control")), (200, "no-store"));
    let body = token.json();
    assert!(body["access_token"].is_string() && body["expires_at"].is_u64() && body["scope"].is_string());
    assert_eq!(body["token_type"], "Bearer");
    let scope = browser
        .get_with("/api/auth/access-token?scope=orders:read", &proof)
        .await;
    assert_eq!(
        (scope.status, scope.json()["error"].as_str()),
        (403, Some("ERR_INSUFFICIENT_SCOPE"))
    );
}

#[tokio::test]
async fn claims_of_the_protocol_are_no_part_of_the_profile() {
    let stack = Stack::start().await;
    let protocol =
        json!({ "jti": "ID.1", "sid": "s-1", "typ": "ID", "scope": "openid", "client_id": "vestibule" });
    stack
        .provider
        .script(|script| script.claims.extend(protocol.as_object().cloned().unwrap()));
    let mut browser = stack.browser();
    browser.sign_in().await;
    let user = browser.get("/api/auth/me").await.json();
    assert_eq!(user["sub"], "alice");
    for name in protocol.as_object().unwrap().keys() {
        assert_eq!(user.get(name), None, "{name}");
    }
}
