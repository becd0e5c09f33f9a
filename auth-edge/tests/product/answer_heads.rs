//! The heads of the edge's own answers stay short, because proxies read a head into a buffer of 4 KiB. The
//! tests' browser measures each answer.

use scripted_provider::Endpoint;
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::support::{Answer, Browser, Log, NAVIGATION, Stack, key_file};

/// The number of tabs that wait for their sign-in.
const TABS: usize = 10;

fn parameter(answer: &Answer, name: &str) -> Option<String> {
    let url = url::Url::parse(answer.location()).unwrap();
    let mut pairs = url.query_pairs();
    pairs
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

/// A browser signed in with an ID token of about this many bytes.
async fn signed_in_by(stack: &Stack, bytes: usize) -> Browser {
    let claims = json!({"groups": "g".repeat(bytes * 3 / 4), "sid": "sid-1"});
    stack.provider.script(|script| {
        script.sid = Some("sid-1".to_owned());
        script.claims = claims.as_object().unwrap().clone();
    });
    let mut browser = stack.browser();
    browser.sign_in().await;
    browser
}

// conformance: B-133
#[tokio::test(flavor = "multi_thread")]
async fn an_id_token_too_long_for_a_proxys_buffer_is_left_out_and_the_cookie_is_cleared() {
    for (bytes, is_sent) in [
        (100, true),
        (1_000, true),
        (3_000, false),
        (6_000, false),
        (12_000, false),
    ] {
        let stack = Stack::start().await;
        let mut browser = signed_in_by(&stack, bytes).await;
        let answer = browser.visit("/api/auth/logout").await;
        assert_eq!(answer.status, 302);
        let end = stack.provider.url(Endpoint::EndSession);
        assert!(answer.location().starts_with(&end), "{answer:?}");
        assert_eq!(parameter(&answer, "id_token_hint").is_some(), is_sent, "{bytes}");
        let logout_hint = parameter(&answer, "logout_hint");
        assert_eq!(logout_hint.as_deref(), (!is_sent).then_some("sid-1"));
        assert!(parameter(&answer, "client_id").is_some());
        assert!(!browser.jar.contains_key("session"));
        assert_eq!(browser.get("/api/auth/me").await.status, 204);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_out_with_tabs_that_wait_and_a_long_way_back_fits() {
    let stack = Stack::start().await;
    let back = format!("/{}", "&=".repeat(480));
    let back: String = url::form_urlencoded::byte_serialize(back.as_bytes()).collect();
    for bytes in [100, 1_300, 3_000] {
        let mut browser = signed_in_by(&stack, bytes).await;
        for _ in 0..TABS {
            browser.visit("/api/auth/login?returnTo=/a").await;
        }
        let answer = browser.visit(&format!("/api/auth/logout?returnTo={back}")).await;
        assert_eq!(answer.status, 302, "{answer:?}");
        assert_eq!(
            browser.jar.len(),
            0,
            "nothing of the person stays: {:?}",
            browser.jar
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_with_long_parameters_fits_and_goes_to_the_provider() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let [word, euros] = ["w".repeat(500), "%E2%82%AC".repeat(160)];
    let query = format!(
        "returnTo=/{}&login_hint={euros}&screen_hint={word}&invitation={word}&ui_locales={word}&prompt=login",
        "a".repeat(900)
    );
    for _ in 0..TABS {
        let answer = browser.visit(&format!("/api/auth/login?{query}")).await;
        assert_eq!(answer.status, 302);
        let authorize = stack.provider.url(Endpoint::Authorize);
        assert!(answer.location().starts_with(&authorize), "{answer:?}");
        assert_eq!(parameter(&answer, "prompt").as_deref(), Some("login"));
        assert!(answer.set_cookies().last().is_some());
    }
    let form = format!(
        "iss={}&login_hint={word}&target_link_uri=/{euros}{euros}{euros}",
        stack.provider.issuer()
    );
    let answer = browser.post("/api/auth/login", &NAVIGATION, &form).await;
    assert_eq!(answer.status, 303);
    assert!(answer.location().contains("login_hint="), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_from_a_long_address_is_sent_to_sign_in() {
    let gateway = Gateway::start("", &[("EDGE_TRUSTED_PROXIES", "127.0.0.1")]).await;
    let host = gateway.stack.base().strip_prefix("http://").unwrap().to_owned();
    for length in [400, 1_000, 2_000, 3_900] {
        let address = format!("/account/a?{}", "&".repeat(length));
        let answer = gateway.stack.browser().visit(&address).await;
        assert_eq!(answer.status, 307);
        assert!(answer.location().starts_with("/api/auth/login"), "{answer:?}");
        let forwarded = [
            ("x-forwarded-proto", "http"),
            ("x-forwarded-host", host.as_str()),
            ("x-forwarded-uri", address.as_str()),
        ];
        let about = [&forwarded[..], &NAVIGATION].concat();
        let mut browser = gateway.stack.browser();
        let answer = browser.get_with("/api/auth/check?redirect=1", &about).await;
        assert_eq!(answer.status, 302, "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_that_binds_its_session_and_comes_from_a_long_address_ends() {
    for mode in ["offer", "require"] {
        let settings = [
            ("EDGE_BASE_URL", "https://app.example"),
            ("EDGE_DEVICE_BOUND", mode),
        ];
        let stack = Stack::with(&settings).await;
        for length in [10, 900] {
            let back = format!("/{}", "&".repeat(length));
            let back: String = url::form_urlencoded::byte_serialize(back.as_bytes()).collect();
            let mut browser = stack.browser();
            let login = format!("/api/auth/login?returnTo={back}");
            let callback = browser.until_callback(&login).await;
            let answer = browser.visit(&callback).await;
            assert_eq!(answer.status, 302, "{mode}: {answer:?}");
            assert!(
                answer.location().starts_with("https://app.example/"),
                "{answer:?}"
            );
        }
    }
}

const CHECK: &str = r#"
[[check]]
host = "app.localhost"
guard = "page"
headers = { Remote-User = "claim:preferred_username", Remote-Groups = "claim:groups", Remote-Roles = "claim:roles" }
upstream_jwt = true
"#;

fn asked() -> [(&'static str, &'static str); 3] {
    [
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "app.localhost"),
        ("x-forwarded-uri", "/a"),
    ]
}

/// A person in a hundred groups.
fn member(name: &str) -> Value {
    let groups: Vec<String> = (0..100)
        .map(|number| format!("/organisation/department-{number:03}/{}", "x".repeat(8)))
        .collect();
    let roles = vec!["role"; 100];
    json!({"sub": name, "preferred_username": name, "groups": groups, "roles": roles, "name": "n".repeat(900)})
}

async fn checks(settings: &[(&str, &str)]) -> (Gateway, tempfile::NamedTempFile) {
    let keys = key_file();
    let path = keys.path().to_str().unwrap().to_owned();
    let own = [
        ("EDGE_TRUSTED_PROXIES", "127.0.0.1"),
        ("EDGE_CHECK_AUTHORIZATION", "true"),
        ("EDGE_UPSTREAM_JWT_KEY_FILE", path.as_str()),
    ];
    (Gateway::start(CHECK, &[&own[..], settings].concat()).await, keys)
}

#[tokio::test]
async fn a_check_of_somebody_in_a_hundred_groups_passes_and_the_log_names_what_is_left_out() {
    let log = Log::begin();
    let (gateway, _keys) = checks(&[]).await;
    let mut browser = gateway.signed_in_as(member("ada"), "openid").await;
    gateway.stack.advance(120);
    for _ in 0..2 {
        let answer = browser.get_with("/api/auth/check", &asked()).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("remote-user"), "ada");
        assert_eq!(answer.header("remote-groups"), "", "whole or not at all");
        assert!(answer.header("remote-roles").starts_with("role,"));
        assert!(answer.header("authorization").starts_with("Bearer "));
        assert!(!answer.header("x-auth-assertion").is_empty());
        assert_eq!(answer.header("x-auth-subject"), "ada");
    }
    let text = log.text();
    assert!(
        text.contains("EDGE_CHECK_HEAD_BYTES"),
        "it says what to do: {text}"
    );
    for told in [
        "cannot be written header=\"remote-groups\"",
        "claim=\"groups\"",
        "header=\"x-auth-assertion.groups\"",
        "reason=\"no_room\"",
    ] {
        let records = text.lines().filter(|line| line.contains(told)).count();
        assert_eq!(records, 1, "{told}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_access_token_that_has_no_room_is_left_out_of_a_check() {
    let (gateway, _keys) = checks(&[("EDGE_USERINFO_AT_LOGIN", "never")]).await;
    let mut browser = gateway.stack.browser();
    browser.sign_in().await;
    let answer = browser.get_with("/api/auth/check", &asked()).await;
    assert!(answer.header("authorization").starts_with("Bearer "));
    gateway.stack.provider.script(|script| {
        script.claims.insert("at_hash".to_owned(), Value::Null);
        script
            .token
            .insert("access_token".to_owned(), json!("x".repeat(3_900)));
    });
    let mut browser = gateway.stack.browser();
    browser.sign_in().await;
    let answer = browser.get_with("/api/auth/check", &asked()).await;
    assert_eq!((answer.status, answer.header("authorization")), (200, ""));
    assert!(!answer.header("x-auth-subject").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_with_a_larger_buffer_is_told_more() {
    let (gateway, _keys) = checks(&[("EDGE_CHECK_HEAD_BYTES", "16384")]).await;
    let mut browser = gateway.signed_in_as(member("ada"), "openid").await;
    browser.longest_head = 16_384;
    let answer = browser.get_with("/api/auth/check", &asked()).await;
    assert_eq!(answer.header("remote-groups").split(',').count(), 100);
}
