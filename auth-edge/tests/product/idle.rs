//! Which requests keep an idle session alive.

use crate::gateway::Gateway;
use crate::support::Browser;

const RULES: &str = r#"
[[route]]
path = "/poll/*"
guard = "api"
upstream = "{upstream}"
rolls = false

[[check]]
path = "/poll/*"
guard = "api"
rolls = false

[[check]]
guard = "api"
"#;

/// How long a session lasts without use, in seconds.
const ROLLING: u64 = 86_400;

/// Asks once an hour until the session would have expired without use. Returns the session's end.
async fn ask_for_a_day(
    gateway: &Gateway,
    browser: &mut Browser,
    path: &str,
    headers: &[(&str, &str)],
) -> u16 {
    for _ in 0..ROLLING / 3_600 {
        let answer = browser.get_with(path, headers).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.set_cookies(), Vec::<&str>::new(), "{path} {headers:?}");
        gateway.stack.advance(3_600);
    }
    browser.get_with(path, headers).await.status
}

fn about(path: &'static str) -> [(&'static str, &'static str); 3] {
    [
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "app.localhost"),
        ("x-forwarded-uri", path),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_keeps_no_idle_session_alive() {
    let settings = [("EDGE_TRUSTED_PROXIES", "127.0.0.1")];
    let no_roll = ("x-no-roll", "1");
    let check = "/api/auth/check";
    for (path, headers) in [
        ("/poll/news", vec![]),
        ("/api/news", vec![no_roll]),
        ("/account/news", vec![no_roll]),
        (check, about("/poll/news").to_vec()),
        (check, [&about("/a")[..], &[no_roll]].concat()),
    ] {
        let gateway = Gateway::start(RULES, &settings).await;
        let mut browser = gateway.signed_in().await;
        let status = ask_for_a_day(&gateway, &mut browser, path, &headers).await;
        assert_ne!(status, 200, "{path} {headers:?}");
    }
    let gateway = Gateway::start(RULES, &settings).await;
    let mut browser = gateway.signed_in().await;
    assert_eq!(
        ask_for_a_day(&gateway, &mut browser, "/api/auth/me", &[no_roll]).await,
        204,
        "the edge's own routes too"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn any_other_use_rolls_and_the_header_goes_no_further() {
    let gateway = Gateway::start(RULES, &[]).await;
    let mut browser = gateway.signed_in().await;
    for _ in 0..3 {
        gateway.stack.advance(ROLLING - 3_600);
        let answer = browser.get("/api/news").await;
        assert_eq!(answer.status, 200);
        assert!(answer.set_cookie("session").is_some());
    }
    browser
        .get_with("/api/news", &[("x-no-roll", "1"), ("x_no_roll", "1")])
        .await;
    let seen = gateway.upstream.requests().pop().unwrap();
    for name in ["x-no-roll", "x_no_roll"] {
        assert_eq!(seen.all(name), Vec::<String>::new());
    }
}
