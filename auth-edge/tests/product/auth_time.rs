//! The time of a sign-in: if the provider omits it, routes that need it ask once.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use prost::Message as _;
use scripted_provider::Endpoint;
use serde_json::json;
use session_proto::v1::{GetCurrentSessionRequest, GetCurrentSessionResponse, Session};

use crate::gateway::Gateway;
use crate::grpc_web;
use crate::support::{Answer, Browser, key_file};

const RULES: &str = r#"
[[route]]
path = "/classified/*"
guard = "page"
upstream = "{upstream}"
acr = ["gold"]
[[route]]
path = "/api-of-classes/*"
guard = "api"
upstream = "{upstream}"
acr = ["gold", "urn:platinum"]
[[route]]
path = "/now/*"
guard = "page"
upstream = "{upstream}"
max_age = 1
"#;

const SIGNED: &str = r#"
[[route]]
path = "/signed/*"
guard = "page"
upstream = "{upstream}"
upstream_jwt = true
"#;

/// The provider omits the time of the sign-in.
fn say_nothing(gateway: &Gateway) {
    let silent = |script: &mut scripted_provider::Script| {
        _ = script.claims.insert("auth_time".to_owned(), json!(null));
    };
    gateway.stack.provider.script(silent);
}

/// Visits a page through its sign-ins, like a browser. Returns the last answer and their number.
async fn arrive(gateway: &Gateway, browser: &mut Browser, page: &str) -> (Answer, usize) {
    const MOST: usize = 8;
    let (mut at, mut sign_ins) = (page.to_owned(), 0);
    for _ in 0..MOST {
        let answer = browser.visit(&at).await;
        if !matches!(answer.status, 302 | 303 | 307) {
            return (answer, sign_ins);
        }
        at = answer.location().to_owned();
        if at.starts_with(gateway.stack.provider.issuer()) {
            sign_ins += 1;
            at = browser.authorize(&at).await;
        }
    }
    panic!("{page} goes round in circles: {sign_ins} sign-ins");
}

async fn current(gateway: &Gateway, browser: &Browser) -> Session {
    let cookie = format!("session={}", browser.jar["session"]);
    let request = GetCurrentSessionRequest::default();
    let answer = grpc_web::send(&gateway.stack, &cookie, "GetCurrentSession", &request).await;
    let bytes = answer.bytes().await.unwrap();
    let length = u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize;
    let answer = GetCurrentSessionResponse::decode(&bytes[5..5 + length]).unwrap();
    answer.session.unwrap()
}

/// The sign-in time in a token.
fn auth_time(token: &str) -> Option<serde_json::Value> {
    let body = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    body.get("auth_time").cloned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undated_authentication_has_no_date_in_the_api_and_at_upstreams() {
    let key = key_file();
    let settings = [("EDGE_UPSTREAM_JWT_KEY_FILE", key.path().to_str().unwrap())];
    let gateway = Gateway::start(SIGNED, &settings).await;
    let mut browser = gateway.stack.browser();
    for dated in [true, false] {
        if !dated {
            say_nothing(&gateway);
        }
        browser.sign_in().await;
        let session = current(&gateway, &browser).await;
        assert_eq!(session.authenticated_at.is_some(), dated);
        assert!(session.created_at.is_some());
        assert_eq!(browser.visit("/signed/a").await.status, 200);
        let seen = gateway.upstream.requests().pop().unwrap();
        let token = seen.all("x-auth-assertion").pop().expect("an assertion");
        assert_eq!(auth_time(&token).is_some(), dated);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_needs_a_fresh_sign_in_requests_one_once_and_refuses_an_undated_one() {
    let gateway = Gateway::start(RULES, &[]).await;
    say_nothing(&gateway);
    let mut browser = gateway.stack.browser();
    browser.sign_in().await;
    let (refused, sign_ins) = arrive(&gateway, &mut browser, "/fresh/a").await;
    assert_eq!((refused.status, sign_ins), (400, 1), "{refused:?}");
    assert!(
        refused.body.contains("needs to know when you signed in"),
        "{}",
        refused.body
    );
    let requested = gateway.stack.provider.last_request(Endpoint::Authorize);
    assert_eq!(requested.param("max_age"), Some("900"));
    assert_eq!(browser.get("/api/auth/me").await.status, 200, "the session stays");
    assert_eq!(gateway.upstream.requests().len(), 0);

    // The edge has already requested a sign-in: the answers to a user and to a program say so.
    let (page, sign_ins) = arrive(&gateway, &mut browser, "/fresh/a").await;
    assert_eq!((page.status, sign_ins), (403, 0), "{page:?}");
    assert!(
        page.body.contains("needs to know when you signed in"),
        "{}",
        page.body
    );
    let program = browser
        .get_with("/fresh/a", &[("accept", "application/json")])
        .await;
    assert_eq!(program.status, 403);
    assert_eq!(program.json()["error"], "insufficient_user_authentication");
    assert_eq!(gateway.upstream.requests().len(), 0);

    // The provider now supports it, so another sign-in helps.
    gateway.stack.provider.reset();
    browser.sign_in().await;
    assert_eq!(browser.visit("/fresh/a").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authentication_in_the_future_is_refused_whether_or_not_its_age_was_asked_for() {
    let gateway = Gateway::start(RULES, &[]).await;
    let mut browser = gateway.stack.browser();
    let now = gateway.stack.clock_secs();
    for (auth_time, status) in [
        (json!(now + 59), 302),
        (json!(now + 62), 400),
        (json!(now + 10_000), 400),
        (json!(now - 1), 302),
    ] {
        let auth_time_sent = auth_time.clone();
        gateway
            .stack
            .provider
            .script(|script| _ = script.claims.insert("auth_time".to_owned(), auth_time_sent));
        let callback = browser.until_callback("/api/auth/login").await;
        assert_eq!(browser.visit(&callback).await.status, status, "{auth_time}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_ordinary_sign_in_a_page_that_requires_more_requests_it() {
    let gateway = Gateway::start(RULES, &[]).await;
    let mut browser = gateway.stack.browser();
    let acr = |class: &'static str| {
        gateway
            .stack
            .provider
            .script(|script| _ = script.claims.insert("acr".to_owned(), json!(class)));
    };
    acr("bronze");
    browser.sign_in().await;
    let requested = browser.visit("/classified/a").await;
    assert_eq!(requested.status, 307, "{requested:?}");
    acr("gold");
    let (page, sign_ins) = arrive(&gateway, &mut browser, "/classified/a").await;
    assert_eq!((page.status, sign_ins), (200, 1), "{page:?}");

    let an_hour_ago = gateway.stack.clock_secs() - 3_600;
    gateway
        .stack
        .provider
        .script(|script| _ = script.claims.insert("auth_time".to_owned(), json!(an_hour_ago)));
    browser.sign_in().await;
    assert_eq!(browser.visit("/fresh/a").await.status, 307);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_that_the_provider_does_not_confirm_is_named_and_requested_once() {
    for answered in [json!(null), json!("bronze")] {
        let gateway = Gateway::start(RULES, &[]).await;
        let answer_with = |class: serde_json::Value| {
            let script = |script: &mut scripted_provider::Script| {
                _ = script.claims.insert("acr".to_owned(), class.clone());
            };
            gateway.stack.provider.script(script);
        };
        answer_with(answered.clone());
        let mut browser = gateway.stack.browser();
        browser.sign_in().await;
        let (refused, sign_ins) = arrive(&gateway, &mut browser, "/classified/a").await;
        assert_eq!((refused.status, sign_ins), (400, 1), "{answered} {refused:?}");
        assert!(
            refused.body.contains("did not confirm") && refused.body.contains(": gold"),
            "{}",
            refused.body
        );
        assert!(refused.body.contains("Try again"), "{}", refused.body);
        assert_eq!(browser.get("/api/auth/me").await.status, 200, "the session stays");

        // The edge has already requested the class: the answers to a user and to a program say so.
        let (page, sign_ins) = arrive(&gateway, &mut browser, "/classified/b").await;
        assert_eq!((page.status, sign_ins), (403, 0), "{page:?}");
        assert!(
            page.body.contains("did not confirm") && page.body.contains(": gold"),
            "{}",
            page.body
        );
        let accept = [("accept", "application/json")];
        let program = browser.get_with("/classified/b", &accept).await;
        assert_eq!(program.status, 403);
        let said = program.json();
        assert_eq!(said["error"], "insufficient_user_authentication");
        assert_eq!(said["acr_values"], "gold");

        // Another requirement is separate: a program gets all the classes, and may start a step-up.
        let step_up = browser.get_with("/api-of-classes/a", &accept).await;
        assert_eq!(step_up.status, 401);
        assert!(
            step_up
                .header("www-authenticate")
                .contains("acr_values=\"gold urn:platinum\""),
            "{step_up:?}"
        );
        let login = "/api/auth/login?returnTo=/api-of-classes/a";
        let callback = browser.until_callback(login).await;
        let refused = browser.visit(&callback).await;
        assert!(refused.body.contains("gold, urn:platinum"), "{}", refused.body);
        let step_up = browser.get_with("/api-of-classes/a", &accept).await;
        assert_eq!(
            (step_up.status, step_up.json()["acr_values"].as_str()),
            (403, Some("gold urn:platinum"))
        );

        // The provider now supports one of them, so another sign-in helps.
        answer_with(json!("urn:platinum"));
        let callback = browser.until_callback(login).await;
        assert_eq!(browser.visit(&callback).await.status, 302);
        assert_eq!(browser.get_with("/api-of-classes/a", &accept).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sign_in_requested_in_vain_is_403_on_that_page_alone_and_no_circle() {
    let gateway = Gateway::start(RULES, &[("EDGE_LOGIN_PARAMETERS", "login_hint")]).await;
    let mut browser = gateway.stack.browser();
    browser.sign_in().await;
    gateway.stack.advance(5);
    // No sign-in is recent enough for this page.
    gateway.stack.provider.script(|script| {
        let ago = script.now.unwrap() - 2;
        _ = script.claims.insert("auth_time".to_owned(), json!(ago));
    });
    let (page, sign_ins) = arrive(&gateway, &mut browser, "/now/a").await;
    assert_eq!((page.status, sign_ins), (403, 1), "{page:?}");
    assert_eq!(browser.visit("/now/b").await.status, 403, "the same demand");
    assert_eq!(browser.visit("/account/a").await.status, 200);
    assert_eq!(
        browser.visit("/classified/a").await.status,
        307,
        "another demand was not asked for"
    );
    // The edge remembers this per session: for a new session it requests the sign-in again.
    browser.sign_in().await;
    assert_eq!(browser.visit("/now/a").await.status, 307);
    // The note about the request grants no access.
    let mut forged = gateway.stack.browser();
    forged.jar.extend(
        browser
            .jar
            .clone()
            .into_iter()
            .filter(|(name, _)| name != "session"),
    );
    assert_eq!(forged.visit("/now/a").await.status, 307);
}
