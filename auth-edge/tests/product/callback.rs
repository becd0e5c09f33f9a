//! The callback: accepted and rejected parameters, and its cookie.

use scripted_provider::{Answer as Script, Endpoint, IdTokenShape};
use serde_json::json;

use crate::support::{Answer, Browser, Stack};

const JSON: [(&str, &str); 1] = [("accept", "application/json")];

/// Makes the provider do one thing wrong.
type Misbehave = Box<dyn Fn(&mut scripted_provider::Script)>;

fn refused(answer: &Answer) {
    assert_eq!(answer.status, 400, "{answer:?}");
    assert_eq!(answer.header("cache-control"), "no-store");
    assert!(answer.set_cookie("session").is_none(), "{answer:?}");
}

// conformance: A-009 B-050
#[tokio::test]
async fn a_sign_in_ends_with_a_session_cookie_and_the_user_of_the_id_token() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login?returnTo=/account").await;
    let answer = browser.visit(&callback).await;
    assert_eq!(
        (answer.status, answer.location()),
        (302, format!("{}/account", stack.base()).as_str())
    );
    assert_eq!(answer.header("cache-control"), "no-store");
    let cookie = answer.set_cookie("session").unwrap();
    assert!(cookie.len() < 220 && cookie.starts_with("session="), "{cookie}");
    assert!(
        cookie.contains("; Path=/; HttpOnly; SameSite=Lax; Max-Age=86400"),
        "{cookie}"
    );
    assert!(!cookie.contains("Secure"), "plain http: {cookie}");
    let me = browser.get("/api/auth/me").await;
    assert_eq!((me.status, me.header("cache-control")), (200, "no-store"));
    let user = me.json();
    assert_eq!(user["sub"], "alice");
    for claim in [
        "aud",
        "iss",
        "iat",
        "exp",
        "nbf",
        "nonce",
        "azp",
        "auth_time",
        "at_hash",
    ] {
        assert!(user.get(claim).is_none(), "{claim}");
    }
    assert!(!me.body.contains("_token"));
    assert_eq!(stack.counter("logins_total", "success"), 1);
}

// conformance: B-042
#[tokio::test]
async fn on_https_the_cookie_has_the_host_prefix() {
    let stack = Stack::with(&[("EDGE_BASE_URL", "https://app.example")]).await;
    let answer = stack.browser().sign_in().await;
    let cookie = answer.set_cookie("session").unwrap();
    assert!(
        cookie.starts_with("__Host-session=") && cookie.contains("; Secure") && !cookie.contains("Domain")
    );
    assert!(answer.header("strict-transport-security").contains("max-age="));
}

/// The removed parameter, the added ones, and the reason of the refusal.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

/// The callback without one parameter and with others added; `=` repeats the existing value.
fn altered(callback: &str, drop: &str, add: &[(&str, &str)]) -> String {
    let query = callback.split_once('?').unwrap().1;
    let pairs: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    let value = |name: &str| &*pairs.iter().find(|(key, _)| key == name).unwrap().1;
    let kept = pairs.iter().filter(|(name, _)| name != drop);
    let added = add
        .iter()
        .map(|(name, new)| (*name, if *new == "=" { value(name) } else { *new }));
    let query = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(kept)
        .extend_pairs(added)
        .finish();
    format!("/api/auth/callback?{query}")
}

// conformance: A-079 B-007 B-017
#[tokio::test]
async fn a_bad_message_is_refused_without_any_call_to_the_provider() {
    let stack = Stack::start().await;
    let evil = ("iss", "https://evil.example");
    let script = "<script>alert(1)</script>";
    let cases: [Case; 13] = [
        ("state", &[], "state"),
        ("state", &[("state", "another")], "unknown_transaction"),
        ("", &[("state", "=")], "state"),
        ("", &[("state", "another")], "state"),
        ("", &[("code", "another")], "code"),
        ("code", &[], "code"),
        ("code", &[("code", "")], "code"),
        ("iss", &[evil], "issuer"),
        ("", &[evil], "issuer"),
        ("iss", &[evil, ("error", "access_denied")], "issuer"),
        ("code", &[("error", "access_denied")], "denied"),
        ("", &[("error", "access_denied")], "denied"),
        (
            "",
            &[("error", script), ("error_description", script)],
            "provider_error",
        ),
    ];
    let calls = || stack.provider.calls(Endpoint::Discovery) + stack.provider.calls(Endpoint::Jwks);
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login?returnTo=/a").await;
    let before = calls();
    refused(&browser.clone().visit("/api/auth/callback").await);
    refused(&stack.browser().visit(&callback).await);
    for (drop, add, reason) in cases {
        let refusals = stack.counter("sign_in_refusals_total", reason);
        // The first message that finds a sign-in uses it up.
        let mut page = stack.browser();
        let callback = page.until_callback("/api/auth/login?returnTo=/a").await;
        let answer = page.visit(&altered(&callback, drop, add)).await;
        refused(&answer);
        assert!(!answer.body.contains("alert(1)"), "{drop} {add:?}");
        let policy = answer.header("content-security-policy");
        assert!(policy.contains("default-src 'none'"), "{drop} {add:?}");
        let mut program = stack.browser();
        let callback = program.until_callback("/api/auth/login?returnTo=/a").await;
        let answer = program.get_with(&altered(&callback, drop, add), &JSON).await;
        refused(&answer);
        assert_eq!(answer.json()["error"], "ERR_CALLBACK_HANDLER_FAILURE");
        let now = stack.counter("sign_in_refusals_total", reason);
        assert_eq!(now, refusals + 2, "{drop} {add:?} is refused for its {reason}");
    }
    assert_eq!(stack.provider.calls(Endpoint::Token), 0, "no code was redeemed");
    assert_eq!(calls(), before);
}

// conformance: B-036
#[tokio::test]
async fn an_error_of_the_provider_offers_to_try_again_with_the_same_return_to() {
    let stack = Stack::start().await;
    stack
        .provider
        .script(|script| script.authorize_error = Some("access_denied".to_owned()));
    let mut browser = stack.browser();
    let other = browser.until_callback("/api/auth/login?returnTo=/other").await;
    let callback = browser.until_callback("/api/auth/login?returnTo=%2Fa%3Fb").await;
    let answer = browser.visit(&callback).await;
    refused(&answer);
    assert!(answer.body.contains("cancelled"), "{}", answer.body);
    let again = answer
        .body
        .split("href=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    stack.provider.reset();
    let again = again.replace("&amp;", "&").replace("&#39;", "'");
    let callback = browser.until_callback(&again).await;
    assert_eq!(
        browser.visit(&callback).await.location(),
        format!("{}/a?b", stack.base())
    );
    let other = browser.visit(&other).await;
    refused(&other);
    assert!(
        other.body.contains("returnTo="),
        "the other transaction was left alone: {}",
        other.body
    );
}

// conformance: A-002 B-012
#[tokio::test]
async fn a_replay_is_refused_and_the_session_stays() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login").await;
    let mut thief = browser.clone();
    browser.visit(&callback).await;
    let again = browser.visit(&callback).await;
    assert_eq!(again.status, 302, "who is signed in goes on");
    assert!(again.set_cookies().is_empty(), "{again:?}");
    refused(&thief.visit(&callback).await);
    assert_eq!(stack.provider.calls(Endpoint::Token), 1);
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
}

// conformance: A-002
#[tokio::test]
async fn the_same_callback_many_times_at_once_redeems_the_code_once() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login").await;
    let before = stack.sessions.calls();
    let gate = stack.provider.hold(Endpoint::Token);
    let tabs: Vec<_> = (0..8)
        .map(|_| {
            let (mut tab, callback) = (browser.clone(), callback.clone());
            tokio::spawn(async move { tab.visit(&callback).await.status })
        })
        .collect();
    while stack.sessions.calls() < before + 8 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    gate.release();
    for tab in tabs {
        assert_eq!(tab.await.unwrap(), 302, "all get the one session");
    }
    assert_eq!(stack.provider.calls(Endpoint::Token), 1);
}

// conformance: B-007
#[tokio::test]
async fn another_browser_cannot_finish_a_sign_in() {
    let stack = Stack::start().await;
    let callback = stack.browser().until_callback("/api/auth/login").await;
    let mut victim = stack.browser();
    victim.visit("/api/auth/login").await;
    refused(&victim.visit(&callback).await);
    assert_eq!(stack.provider.calls(Endpoint::Token), 0);
    assert_eq!(
        victim.jar.len(),
        1,
        "the victim's own pending sign-in is untouched"
    );
}

// conformance: B-016
#[tokio::test]
async fn a_transaction_expires_on_our_side_too() {
    let stack = Stack::with(&[("EDGE_TRANSACTION_DURATION", "60")]).await;
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login?returnTo=/a").await;
    stack.advance(60);
    let answer = browser.visit(&callback).await;
    refused(&answer);
    assert!(
        answer.body.contains("expired") && answer.body.contains("returnTo="),
        "{}",
        answer.body
    );
    assert!(browser.jar.is_empty());
}

// conformance: A-008 B-101
#[tokio::test]
async fn whatever_the_provider_does_wrong_is_400_and_changes_no_existing_session() {
    let stack = Stack::with(&[("EDGE_USERINFO_AT_LOGIN", "always")]).await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let cases: Vec<(&str, Misbehave)> = vec![
        (
            "iss",
            Box::new(|s| _ = s.claims.insert("iss".into(), json!("https://evil.example"))),
        ),
        (
            "no sub",
            Box::new(|s| _ = s.claims.insert("sub".into(), json!(null))),
        ),
        (
            "aud",
            Box::new(|s| _ = s.claims.insert("aud".into(), json!("another"))),
        ),
        (
            "nonce",
            Box::new(|s| _ = s.claims.insert("nonce".into(), json!("another"))),
        ),
        (
            "no iat",
            Box::new(|s| _ = s.claims.insert("iat".into(), json!(null))),
        ),
        ("signature", Box::new(|s| s.id_token = IdTokenShape::BadSignature)),
        ("none", Box::new(|s| s.id_token = IdTokenShape::AlgNone)),
        (
            "no id token",
            Box::new(|s| _ = s.token.insert("id_token".into(), json!(null))),
        ),
        (
            "token 500",
            Box::new(|s| _ = s.answers.insert(Endpoint::Token, Script::status(500))),
        ),
        (
            "token hangs",
            Box::new(|s| _ = s.answers.insert(Endpoint::Token, Script::Hang)),
        ),
        (
            "token nonsense",
            Box::new(|s| {
                _ = s
                    .answers
                    .insert(Endpoint::Token, Script::text(200, "text/html", "<p>"))
            }),
        ),
        (
            "userinfo sub",
            Box::new(|s| _ = s.userinfo.insert("sub".into(), json!("mallory"))),
        ),
        (
            "userinfo 500",
            Box::new(|s| _ = s.answers.insert(Endpoint::Userinfo, Script::status(500))),
        ),
    ];
    for (name, misbehave) in cases {
        let callback = browser.until_callback("/api/auth/login").await;
        stack.provider.script(|script| misbehave(script));
        let answer = browser.visit(&callback).await;
        assert_eq!(answer.status, 400, "{name}: {answer:?}");
        assert!(answer.set_cookie("session").is_none(), "{name}");
        stack.provider.reset();
        assert_eq!(browser.get("/api/auth/me").await.json()["sub"], "alice", "{name}");
    }
}

// conformance: B-145
#[tokio::test]
async fn a_fresh_sign_in_gets_a_new_session_and_ends_the_one_brought_along() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let mut old: Browser = browser.clone();
    browser.sign_in().await;
    assert_ne!(old.jar["session"], browser.jar["session"]);
    assert_eq!(
        old.get("/api/auth/me").await.status,
        204,
        "the old session is gone"
    );
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
}

// conformance: B-145
#[tokio::test]
async fn a_forged_cookie_brought_along_is_ignored() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.jar.insert(
        "session".to_owned(),
        format!("{}.{}", "0".repeat(32), "A".repeat(43)),
    );
    browser.sign_in().await;
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
}

// conformance: B-096
#[tokio::test]
async fn an_organization_that_does_not_match_is_refused() {
    let stack = Stack::with(&[("OIDC_ORGANIZATION", "org_a")]).await;
    let mut browser = stack.browser();
    stack
        .provider
        .script(|script| _ = script.claims.insert("org_id".into(), json!("org_b")));
    let callback = browser.until_callback("/api/auth/login").await;
    refused(&browser.visit(&callback).await);
    stack
        .provider
        .script(|script| _ = script.claims.insert("org_id".into(), json!("org_a")));
    browser.sign_in().await;

    let stack = Stack::start().await;
    let mut browser = stack.browser();
    stack
        .provider
        .script(|script| _ = script.claims.insert("org_id".into(), json!("org_b")));
    let callback_url = browser.until_callback("/api/auth/login?organization=org_a").await;
    refused(&browser.visit(&callback_url).await);
}

// conformance: B-101
#[tokio::test]
async fn legal_but_odd_token_responses_are_accepted() {
    let stack = Stack::start().await;
    for missing in ["refresh_token", "scope", "expires_in"] {
        stack
            .provider
            .script(|script| _ = script.token.insert(missing.into(), json!(null)));
        let mut browser = stack.browser();
        browser.sign_in().await;
        assert_eq!(browser.get("/api/auth/me").await.status, 200, "without {missing}");
        stack.provider.reset();
    }
}

#[tokio::test]
async fn a_session_ends_no_later_than_the_provider_says() {
    let stack = Stack::start().await;
    stack.provider.script(|script| {
        let ends = stack.now_secs() + 600;
        script.claims.insert("session_expiry".to_owned(), json!(ends));
    });
    let mut browser = stack.browser();
    let answer = browser.sign_in().await;
    let line = answer.set_cookie("session").unwrap();
    let max_age = line.split("Max-Age=").nth(1).unwrap();
    let max_age: u64 = max_age.split(';').next().unwrap().parse().unwrap();
    assert!(max_age <= 600, "the cookie goes with it: {line}");
    let status = browser.get("/api/auth/status").await.json();
    let left = status["absolute_expires_in"].as_u64().unwrap();
    assert!((590..=600).contains(&left), "{status}");

    stack.advance(599);
    assert_eq!(
        browser.visit("/api/auth/me").await.status,
        200,
        "and use does not prolong it"
    );
    stack.advance(1);
    assert_eq!(browser.visit("/api/auth/me").await.status, 204);
}
