//! Rules by host and by method.

use reqwest::Method;
use serde_json::json;

use crate::gateway::Gateway;

const RULES: &str = r#"
[[route]]
path = "/*"
host = "wiki.localhost"
guard = "page"
upstream = "{upstream}"
[[route]]
path = "/open/*"
host = ["wiki.localhost", "app.localhost"]
guard = "none"
upstream = "{upstream}"
[[route]]
path = "/shop/*"
methods = ["GET", "HEAD"]
guard = "none"
upstream = "{upstream}"
csrf = "none"
[[route]]
path = "/shop/*"
methods = ["POST", "DELETE"]
guard = "api"
upstream = "{upstream}"
[[route]]
path = "/any/*"
guard = "none"
upstream = "{upstream}"
"#;

const SETTINGS: [(&str, &str); 2] = [
    ("EDGE_BASE_URL", "http://app.localhost"),
    ("EDGE_HOSTS", "wiki.localhost"),
];

async fn status(gateway: &Gateway, method: &str, host: &str, path: &str) -> String {
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    let answer = gateway.stack.raw(&request).await;
    answer.split(' ').nth(1).unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_spelling_of_a_host_meets_the_same_rule() {
    let gateway = Gateway::start(RULES, &SETTINGS).await;
    for host in [
        "wiki.localhost",
        "WIKI.localhost",
        "wiki.LOCALHOST.",
        "wiki.localhost:80",
        "Wiki.Localhost.:80",
    ] {
        // The host's own rule is more specific than the open one for every host.
        assert_eq!(status(&gateway, "GET", host, "/any/a").await, "307", "{host}");
        assert_eq!(status(&gateway, "GET", host, "/open/a").await, "200", "{host}");
    }
    for host in [
        "app.localhost",
        "other.localhost",
        "wiki.localhost.evil.example",
        "xwiki.localhost",
    ] {
        assert_eq!(status(&gateway, "GET", host, "/any/a").await, "200", "{host}");
    }
    let absolute =
        "GET http://wiki.localhost/any/a HTTP/1.1\r\nHost: app.localhost\r\nConnection: close\r\n\r\n";
    assert!(
        gateway.stack.raw(absolute).await.contains(" 307 "),
        "the target counts before Host"
    );
    let told = "GET /any/a HTTP/1.1\r\nHost: wiki.localhost\r\nX-Forwarded-Host: app.localhost\r\nConnection: close\r\n\r\n";
    assert!(
        gateway.stack.raw(told).await.contains(" 307 "),
        "nobody is believed by default"
    );
}

const TWO_HOSTS: &str = r#"
[[route]]
path = "/*"
guard = "page"
upstream = "{upstream}"
preserve_host = true
[[route]]
path = "/*"
host = "wiki.localhost"
guard = "none"
upstream = "{upstream}"
preserve_host = true
[[route]]
path = "/admin/*"
host = "app.localhost"
guard = "page"
upstream = "{upstream}"
claims = { groups = "admin" }
[[route]]
path = "/none/*"
host = "wiki.localhost"
guard = "api"
upstream = "{upstream}"
[route.bearer]
audience = "wiki"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_is_chosen_by_the_host_whose_session_counts_and_that_is_told() {
    let gateway = Gateway::start(TWO_HOSTS, &SETTINGS).await;
    assert_eq!(status(&gateway, "GET", "wiki.localhost:80", "/a").await, "200");
    let seen = gateway.upstream.requests().pop().unwrap();
    assert_eq!(seen.all("host"), ["wiki.localhost"]);
    // An unknown authority counts as the base URL's, for rules too.
    for host in [
        "wiki.localhost:1",
        "wiki.localhost:",
        "wiki.localhost..",
        "other.localhost",
        "app.localhost:1",
    ] {
        assert_eq!(status(&gateway, "GET", host, "/a").await, "307", "{host}");
    }
    let user = json!({"sub": "ada-1", "groups": ["staff"]});
    let browser = gateway.signed_in_as(user, "openid").await;
    let (name, value) = browser.jar.iter().next().unwrap();
    for host in ["app.localhost", "app.localhost:1", "other.localhost"] {
        let request = format!(
            "GET /admin/a HTTP/1.1\r\nHost: {host}\r\nCookie: {name}={value}\r\nConnection: close\r\n\r\n"
        );
        let answer = gateway.stack.raw(&request).await;
        assert!(answer.contains(" 403 "), "{host}: {answer}");
    }
    let metadata = "/.well-known/oauth-protected-resource/none";
    for (host, expected) in [("wiki.localhost", "200"), ("wiki.localhost:1", "307")] {
        assert_eq!(status(&gateway, "GET", host, metadata).await, expected, "{host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_proxy_says_which_host_was_asked_for() {
    let settings = [SETTINGS[0], SETTINGS[1], ("EDGE_TRUSTED_PROXIES", "127.0.0.1")];
    let gateway = Gateway::start(RULES, &settings).await;
    for (forwarded, status) in [("wiki.localhost", 307), ("app.localhost", 200)] {
        let answer = gateway
            .stack
            .browser()
            .get_with(
                "/any/a",
                &[
                    ("x-forwarded-host", forwarded),
                    ("accept", "text/html"),
                    ("sec-fetch-mode", "navigate"),
                    ("sec-fetch-dest", "document"),
                ],
            )
            .await;
        assert_eq!(answer.status, status, "{forwarded}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_is_for_its_methods_alone() {
    let gateway = Gateway::start(RULES, &SETTINGS).await;
    for (method, expected) in [
        ("GET", "200"),
        ("HEAD", "200"),
        ("POST", "401"),
        ("DELETE", "401"),
        ("PUT", "405"),
        ("OPTIONS", "405"),
        ("PROPFIND", "405"),
        ("get", "405"),
    ] {
        assert_eq!(
            status(&gateway, method, "app.localhost", "/shop/a").await,
            expected,
            "{method}"
        );
    }
    let mut browser = gateway.stack.browser();
    let answer = browser.send(Method::PUT, "/shop/a", &[], None).await;
    assert_eq!(answer.header("allow"), "GET, HEAD, POST, DELETE");
    let before = gateway.upstream.requests().len();
    let overridden = [
        ("x-http-method-override", "DELETE"),
        ("x_method_override", "DELETE"),
    ];
    assert_eq!(browser.get_with("/shop/a", &overridden).await.status, 200);
    let seen = gateway.upstream.requests();
    assert_eq!(seen.len(), before + 1);
    assert!(
        seen.last()
            .unwrap()
            .headers
            .iter()
            .all(|(_, value)| value != "DELETE"),
        "another method than the one that was judged: {seen:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_meets_the_rule_of_get() {
    let gateway = Gateway::start(RULES, &SETTINGS).await;
    let socket = "GET /shop/socket HTTP/1.1\r\nHost: app.localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nping";
    assert!(gateway.stack.raw(socket).await.contains(" 101 "));
}
