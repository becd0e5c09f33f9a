//! Requirements on a sign-in: step-up by class and age, silent sign-in, third-party start.

use std::io::Write as _;

use scripted_provider::Endpoint;
use serde_json::json;
use url::Url;

use crate::support::{Answer, Browser, Stack};

const ROUTES: &str = r#"
[[route]]
path = "/vault/*"
guard = "page"
upstream = "dir:."
[route.sign_in]
acr_values = "gold silver"
max_age = 600
ui_locales = "de"

[[route]]
path = "/news/*"
guard = "page"
upstream = "dir:."
sign_in = { prompt = "none" }
"#;

async fn stack() -> (Stack, tempfile::NamedTempFile) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(ROUTES.as_bytes()).unwrap();
    let stack = Stack::with(&[("EDGE_ROUTES", file.path().to_str().unwrap())]).await;
    (stack, file)
}

fn param(url: &str, name: &str) -> Option<String> {
    let url = Url::parse(url).unwrap();
    let mut all = url.query_pairs();
    all.find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

async fn finish(browser: &mut Browser, login: &str) -> Answer {
    let callback = browser.until_callback(login).await;
    browser.visit(&callback).await
}

fn refused_with_try_again(answer: &Answer, return_to: &str) {
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.set_cookie("session").is_none());
    assert!(
        answer.body.contains(&format!("returnTo={return_to}")),
        "{}",
        answer.body
    );
}

#[tokio::test]
async fn a_class_that_was_asked_for_has_to_be_the_one_that_comes_back() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let login = "/api/auth/login?acr_values=gold%20silver&returnTo=/a";
    for acr in [json!(null), json!("bronze"), json!(7), json!("gold silver")] {
        stack
            .provider
            .script(|script| _ = script.claims.insert("acr".into(), acr.clone()));
        let back = Url::parse(stack.base()).unwrap().join("/a").unwrap();
        let back: String = url::form_urlencoded::byte_serialize(back.as_str().as_bytes()).collect();
        refused_with_try_again(&finish(&mut browser, login).await, &back);
    }
    stack
        .provider
        .script(|script| _ = script.claims.insert("acr".into(), json!("silver")));
    assert_eq!(finish(&mut browser, login).await.status, 302);
    assert_eq!(browser.get("/api/auth/me").await.json()["acr"], "silver");
}

// conformance: B-092
#[tokio::test]
async fn an_authentication_has_to_be_as_young_as_was_asked_for_give_or_take_a_minute() {
    let stack = Stack::start().await;
    let now = stack.clock_secs();
    let mut browser = stack.browser();
    let login = "/api/auth/login?max_age=300";
    for (auth_time, status) in [
        (json!(now - 361), 400),
        (json!(now - 359), 302),
        (json!(now + 120), 400),
        (json!("soon"), 400),
        (json!(null), 400),
    ] {
        stack
            .provider
            .script(|script| _ = script.claims.insert("auth_time".into(), auth_time.clone()));
        assert_eq!(finish(&mut browser, login).await.status, status, "{auth_time}");
    }
}

#[tokio::test]
async fn a_route_says_what_a_sign_in_that_leads_to_it_has_to_bring_also_when_tried_again() {
    let (stack, _file) = stack().await;
    let mut browser = stack.browser();
    let to_login = browser.visit("/vault/door?x=1").await;
    assert_eq!(to_login.status, 307, "{to_login:?}");
    let at_provider = browser.visit(to_login.location()).await;
    let url = at_provider.location();
    assert_eq!(param(url, "acr_values").as_deref(), Some("gold silver"));
    assert_eq!(param(url, "max_age").as_deref(), Some("600"));
    assert_eq!(param(url, "ui_locales").as_deref(), Some("de"));

    // Parameters cannot remove the requirement.
    let lesser = "/api/auth/login?returnTo=/vault/door&acr_values=bronze&max_age=99999";
    let url = browser.visit(lesser).await.location().to_owned();
    assert_eq!(param(&url, "acr_values").as_deref(), Some("gold silver"));
    assert_eq!(param(&url, "max_age").as_deref(), Some("600"));

    stack
        .provider
        .script(|script| _ = script.claims.insert("acr".into(), json!("bronze")));
    let refused = finish(&mut browser, "/api/auth/login?returnTo=/vault/door").await;
    assert_eq!(refused.status, 400);
    let again = refused
        .body
        .split("href=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let again = again.replace("&amp;", "&");
    let url = browser.visit(&again).await.location().to_owned();
    assert_eq!(param(&url, "acr_values").as_deref(), Some("gold silver"));
    assert_eq!(
        param(
            browser.visit("/api/auth/login?returnTo=/other").await.location(),
            "acr_values"
        ),
        None
    );
}

#[tokio::test]
async fn a_silent_sign_in_that_finds_nobody_is_anonymous_and_not_repeated_at_once() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let login = "/api/auth/login?prompt=none&returnTo=/a";
    for error in [
        "login_required",
        "interaction_required",
        "consent_required",
        "account_selection_required",
    ] {
        stack
            .provider
            .script(|script| script.authorize_error = Some(error.to_owned()));
        let answer = finish(&mut browser, login).await;
        assert_eq!(
            (answer.status, answer.location()),
            (302, format!("{}/a", stack.base()).as_str()),
            "{error}"
        );
        assert!(answer.set_cookie("session").is_none());
        assert_eq!(browser.get("/api/auth/me").await.status, 204);
        let authorize_calls = stack.provider.calls(Endpoint::Authorize);
        let again = browser.visit(login).await;
        assert_eq!(
            (again.status, again.location()),
            (302, format!("{}/a", stack.base()).as_str()),
            "no loop"
        );
        assert_eq!(stack.provider.calls(Endpoint::Authorize), authorize_calls);
        browser.jar.clear();
    }
    stack.provider.reset();
    assert_eq!(finish(&mut browser, login).await.status, 302);
    assert_eq!(
        browser.get("/api/auth/me").await.status,
        200,
        "somebody is signed in at the provider"
    );
}

#[tokio::test]
async fn a_silent_sign_in_that_fails_otherwise_is_an_error_and_keeps_the_session() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    for (error, silent) in [
        ("access_denied", true),
        ("server_error", true),
        ("login_required", false),
    ] {
        stack
            .provider
            .script(|script| script.authorize_error = Some(error.to_owned()));
        let login = if silent {
            "/api/auth/login?prompt=none"
        } else {
            "/api/auth/login"
        };
        assert_eq!(finish(&mut browser, login).await.status, 400, "{error}");
        assert_eq!(browser.get("/api/auth/me").await.status, 200);
    }
    // A missing session at the provider does not end the session here.
    stack
        .provider
        .script(|script| script.authorize_error = Some("login_required".to_owned()));
    assert_eq!(
        finish(&mut browser, "/api/auth/login?prompt=none").await.status,
        302
    );
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
    stack.provider.script(|script| script.no_callback_iss = true);
    browser.jar.retain(|name, _| name == "session");
    let unsigned = finish(&mut browser, "/api/auth/login?prompt=none").await;
    assert_eq!(unsigned.status, 400, "iss was promised");
}

#[tokio::test]
async fn a_route_that_signs_in_silently_asks_once_it_has_to() {
    let (stack, _file) = stack().await;
    let mut browser = stack.browser();
    stack
        .provider
        .script(|script| script.authorize_error = Some("login_required".to_owned()));
    let silent = browser.visit("/news/today").await.location().to_owned();
    let at_provider = browser.visit(&silent).await.location().to_owned();
    assert_eq!(param(&at_provider, "prompt").as_deref(), Some("none"));
    let callback = browser.authorize(&at_provider).await;
    let back = browser.visit(&callback).await.location().to_owned();
    assert!(back.ends_with("/news/today"));
    // The page has a guard: it requests a sign-in again, and now the provider may prompt.
    let login = browser.visit("/news/today").await.location().to_owned();
    let authorize_url = browser.visit(&login).await.location().to_owned();
    assert_eq!(param(&authorize_url, "prompt"), None, "{authorize_url}");
}

// conformance: A-054
#[tokio::test]
async fn a_third_party_may_start_a_sign_in_for_our_provider_and_a_place_of_ours() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let issuer: String = url::form_urlencoded::byte_serialize(stack.provider.issuer().as_bytes()).collect();
    let authorize_calls = stack.provider.calls(Endpoint::Authorize);
    for wrong in ["https%3A%2F%2Fevil.example", "", &format!("{issuer}%2F")] {
        let answer = browser.visit(&format!("/api/auth/login?iss={wrong}")).await;
        assert_eq!((answer.status, answer.location()), (400, ""), "{wrong}");
    }
    assert_eq!(stack.provider.calls(Endpoint::Authorize), authorize_calls);
    let login = format!("/api/auth/login?iss={issuer}&login_hint=ada&target_link_uri=%2Fdeep%3Fa%3Db");
    let started = browser.visit(&login).await;
    assert_eq!(param(started.location(), "login_hint").as_deref(), Some("ada"));
    let framed = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
    assert_eq!(browser.get_with(&login, &framed).await.status, 403);
    assert_eq!(
        browser.get("/api/auth/me").await.status,
        200,
        "the session stays until the new one is there"
    );
    let callback = browser.authorize(started.location()).await;
    let landed = browser.visit(&callback).await;
    assert_eq!(landed.location(), format!("{}/deep?a=b", stack.base()));
    let elsewhere = format!("/api/auth/login?iss={issuer}&target_link_uri=https%3A%2F%2Fevil.example%2F");
    let landed = finish(&mut browser, &elsewhere).await;
    assert_eq!(landed.location(), format!("{}/", stack.base()));
    let hint = "a".repeat(2_300);
    let long = format!("/api/auth/login?iss={issuer}&login_hint={hint}&target_link_uri=%2Fdeep");
    let landed = finish(&mut browser, &long).await;
    assert_eq!(landed.location(), format!("{}/deep", stack.base()));
}

// conformance: A-054
#[tokio::test]
async fn a_third_party_may_post_its_wish_and_nothing_else_is_read_of_the_form() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let issuer = stack.provider.issuer().to_owned();
    let visit = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    let form = |pairs: &[(&str, &str)]| {
        url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(pairs)
            .finish()
    };
    let third_party_form = form(&[
        ("iss", &issuer),
        ("login_hint", "ada"),
        ("target_link_uri", "/deep?a=b"),
        ("prompt", "none"),
        ("state", "evil"),
        ("returnTo", "/other"),
    ]);
    for headers in [&visit[..], &[]] {
        let posted = browser
            .post("/api/auth/login?max_age=1", headers, &third_party_form)
            .await;
        assert_eq!(posted.status, 303, "{posted:?}");
        assert_eq!(posted.header("cache-control"), "no-store");
        let started = browser.visit(posted.location()).await;
        assert_eq!(started.status, 302, "{started:?}");
        assert_eq!(param(started.location(), "login_hint").as_deref(), Some("ada"));
        assert_eq!(param(started.location(), "prompt"), None);
        assert_eq!(param(started.location(), "max_age"), None);
        let callback = browser.authorize(started.location()).await;
        let landed = browser.visit(&callback).await;
        assert_eq!(landed.location(), format!("{}/deep?a=b", stack.base()));
    }
    let elsewhere = form(&[("iss", &issuer), ("target_link_uri", "https://evil.example/")]);
    let posted = browser.post("/api/auth/login", &visit, &elsewhere).await;
    let landed = finish(&mut browser, posted.location()).await;
    assert_eq!(landed.location(), format!("{}/", stack.base()));
    let foreign = form(&[("iss", "https://evil.example")]);
    let posted = browser.post("/api/auth/login", &visit, &foreign).await;
    assert_eq!(browser.visit(posted.location()).await.status, 400);

    let before = stack.provider.calls(Endpoint::Authorize);
    let json = [("content-type", "application/json")];
    let large = form(&[("iss", &issuer), ("login_hint", &"a".repeat(9_000))]);
    let embedded = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
    let script = [("sec-fetch-mode", "cors"), ("sec-fetch-dest", "empty")];
    for (headers, body, status) in [
        (&visit[..], "login_hint=ada", 405),
        (&visit, "", 405),
        (&json, third_party_form.as_str(), 405),
        (&visit, large.as_str(), 413),
        (&embedded, &third_party_form, 403),
        (&script, &third_party_form, 403),
        (&[("sec-purpose", "prefetch")], &third_party_form, 204),
    ] {
        let answer = browser.post("/api/auth/login", headers, body).await;
        assert_eq!(answer.status, status, "{headers:?} {answer:?}");
        assert!(answer.location().is_empty() && answer.set_cookies().is_empty());
        assert!(status != 405 || answer.header("allow") == "GET, HEAD");
    }
    assert_eq!(stack.provider.calls(Endpoint::Authorize), before);
}
