//! Headers with the names an application reads: what it receives, and what clients cannot set.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use session_proto::v1::UpdateSessionRequest;

use crate::gateway::Gateway;
use crate::support::Log;

const RULES: &str = r#"
[[route]]
path = "/app/*"
guard = "api"
upstream = "{upstream}"
[route.headers]
Remote-User = "claim:preferred_username"
X-WEBAUTH-EMAIL = "claim:email"
Remote-Groups = "claim:groups"
Remote-Roles = "claim:realm_access.roles"
X-Forwarded-User = "subject"
Remote-Tenant = 'claim:"https://example.com/tenant"'

[[route]]
path = "/encoded/*"
guard = "api"
upstream = "{upstream}"
header_encoding = "percent"
headers = { Remote-Name = "claim:name", Remote-Groups = "claim:groups" }
"#;

/// Spellings of each name that the application may treat as the same.
const SPELLINGS: [&str; 15] = [
    "Remote-User",
    "remote_user",
    "REMOTE_USER",
    "Remote.User",
    "Remote~User",
    "X-WEBAUTH-EMAIL",
    "x_webauth_email",
    "X-Webauth_Email",
    "Remote-Groups",
    "remote_groups",
    "Remote-Roles",
    "X-Forwarded-User",
    "x_forwarded_user",
    "Remote-Tenant",
    "Remote_Name",
];

fn ada() -> serde_json::Value {
    json!({
        "sub": "ada-1", "preferred_username": "ada", "email": "ada@example.com", "groups": ["staff", "admin"],
        "realm_access": {"roles": ["owner"]}, "https://example.com/tenant": "blue", "name": "Ada Lövelace, Countess",
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_gets_the_names_it_reads() {
    let gateway = Gateway::start(RULES, &[]).await;
    let mut browser = gateway.signed_in_as(ada(), "openid").await;
    assert_eq!(browser.get("/app/a").await.status, 200);
    let seen = gateway.upstream.requests().pop().unwrap();
    for (name, value) in [
        ("remote-user", "ada"),
        ("x-webauth-email", "ada@example.com"),
        ("remote-groups", "staff,admin"),
        ("remote-roles", "owner"),
        ("x-forwarded-user", "ada-1"),
        ("remote-tenant", "blue"),
        ("x-auth-subject", "ada-1"),
    ] {
        assert_eq!(seen.all(name), [value], "{name}");
    }
    assert_eq!(browser.get("/encoded/a").await.status, 200);
    let seen = gateway.upstream.requests().pop().unwrap();
    assert_eq!(seen.all("remote-name"), ["Ada%20L%C3%B6velace%2C%20Countess"]);
    assert_eq!(seen.all("remote-user"), Vec::<String>::new(), "not of this rule");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_client_brings_them_by_any_spelling_method_or_rule() {
    let gateway = Gateway::start(RULES, &[]).await;
    let mut ada = gateway.signed_in_as(ada(), "openid").await;
    // A person without any of the claims.
    let mut nobody = gateway.signed_in_as(json!({"sub": "nobody-1"}), "openid").await;
    let named = SPELLINGS.join(", ");
    let mut spoofed: Vec<(&str, &str)> = SPELLINGS.iter().map(|name| (*name, "spoofed")).collect();
    spoofed.push(("connection", &named));
    for method in [
        Method::GET,
        Method::HEAD,
        Method::OPTIONS,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ] {
        for path in ["/app/a", "/encoded/a", "/public/a", "/api/a"] {
            for browser in [&mut ada, &mut nobody] {
                let answer = browser.send(method.clone(), path, &spoofed, None).await;
                assert_eq!(answer.status, 200, "{method} {path}");
                let seen = gateway.upstream.requests().pop().unwrap();
                let lies: Vec<_> = seen
                    .headers
                    .iter()
                    .filter(|(_, value)| *value == "spoofed")
                    .collect();
                assert!(lies.is_empty(), "{method} {path}: {lies:?}");
            }
            let told = gateway.upstream.requests().pop().unwrap();
            assert_eq!(
                told.all("remote-user"),
                Vec::<String>::new(),
                "nobody has no name"
            );
            assert_eq!(told.all("x-forwarded-user").len(), usize::from(path == "/app/a"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_and_a_preflight_bring_no_identity_of_a_clients() {
    let gateway = Gateway::start(RULES, &[]).await;
    let spoofed: String = SPELLINGS
        .iter()
        .map(|name| format!("{name}: spoofed\r\n"))
        .collect();
    let (name, value) = gateway
        .stack
        .session_of(json!({"sub": "nobody-1"}), "openid")
        .await;
    let cookie = format!("Cookie: {name}={value}\r\n");
    let upgrade = "Connection: Upgrade, Remote-User\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\nping";
    let preflight =
        "Connection: close\r\nOrigin: http://elsewhere.example\r\nAccess-Control-Request-Method: PUT\r\n\r\n";
    for (head, rest) in [
        ("GET /app/socket HTTP/1.1", format!("{cookie}{upgrade}")),
        ("GET /public/socket HTTP/1.1", upgrade.to_owned()),
        ("OPTIONS /app/preflight HTTP/1.1", preflight.to_owned()),
    ] {
        let request = format!("{head}\r\nHost: a\r\n{spoofed}{rest}");
        gateway.stack.raw(&request).await;
        let seen = gateway.upstream.requests().pop().unwrap();
        assert_eq!(seen.target, head.split(' ').nth(1).unwrap());
        assert!(
            seen.headers.iter().all(|(_, value)| value != "spoofed"),
            "{seen:?}"
        );
        assert_eq!(seen.all("remote-user"), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_request_on_a_connection_carries_nothing_of_the_one_before() {
    let gateway = Gateway::start(RULES, &[]).await;
    let mut ada = gateway.signed_in_as(ada(), "openid").await;
    let mut nobody = gateway.signed_in_as(json!({"sub": "nobody-1"}), "openid").await;
    ada.get("/app/a").await;
    nobody.get_with("/app/a", &[("remote-user", "ada")]).await;
    gateway
        .stack
        .browser()
        .get_with("/public/a", &[("remote-user", "ada")])
        .await;
    ada.get("/app/b").await;
    let seen = gateway.upstream.requests();
    assert!(
        seen[0].connection.is_some() && seen.iter().all(|one| one.connection == seen[0].connection),
        "all on one connection: {seen:?}"
    );
    let names: Vec<Vec<String>> = seen.iter().map(|one| one.all("remote-user")).collect();
    assert_eq!(
        names,
        [vec!["ada".to_owned()], vec![], vec![], vec!["ada".to_owned()]]
    );
}

#[tokio::test]
async fn what_cannot_be_written_is_left_out_and_told_in_the_log() {
    let log = Log::begin();
    let gateway = Gateway::start(RULES, &[]).await;
    let hostile = json!({
        "sub": "mallory-1", "preferred_username": "mallory\r\nRemote-Groups: admin", "email": " ada@example.com",
        "groups": ["staff,admin"], "realm_access": {"roles": ["x".repeat(5_000)]},
    });
    let mut browser = gateway.signed_in_as(hostile, "openid").await;
    let lies = [("remote-user", "ada"), ("remote-groups", "admin")];
    assert_eq!(browser.get_with("/app/a", &lies).await.status, 200);
    let seen = gateway.upstream.requests().pop().unwrap();
    for name in ["remote-user", "x-webauth-email", "remote-groups", "remote-roles"] {
        assert_eq!(seen.all(name), Vec::<String>::new(), "{name}");
    }
    assert_eq!(seen.all("x-forwarded-user"), ["mallory-1"], "the others go on");
    log.wait_for(&["remote-user", "control character"]).await;
    log.wait_for(&["remote-groups", "header_encoding"]).await;
    log.wait_for(&["header_left_out", "\"remote-user\"", "control"])
        .await;
    for _ in 0..3 {
        assert_eq!(browser.get("/app/a").await.status, 200);
    }
    let text = log.text();
    let told: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("for the application is left out"))
        .collect();
    assert_eq!(told.len(), 4, "each header once: {told:?}");
    let by_handle = |line: &&str| line.contains("session=") && !line.contains("mallory");
    assert!(told.iter().all(by_handle), "{told:?}");
    browser.get("/encoded/a").await;
    let seen = gateway.upstream.requests().pop().unwrap();
    assert_eq!(
        seen.all("remote-groups"),
        ["staff%2Cadmin"],
        "one group, as its name is"
    );
}

#[tokio::test]
async fn claims_that_change_are_told_by_the_next_request() {
    let gateway = Gateway::start(RULES, &[("EDGE_SESSION_CACHE_SECS", "60")]).await;
    let (name, value) = gateway.stack.session_of(ada(), "openid").await;
    let mut browser = gateway.stack.browser();
    browser.jar.insert(name, value.clone());
    let deadline = Instant::now() + Duration::from_secs(10);
    while gateway.stack.counter("session_cache_lookups_total", "hit") == 0 {
        assert!(Instant::now() < deadline, "nothing is ever remembered");
        browser.get("/app/a").await;
    }
    let mut changed = ada();
    changed["groups"] = json!(["guest"]);
    let update = UpdateSessionRequest {
        session_id: value.split('.').next().unwrap().to_owned(),
        user: changed.to_string(),
        update_mask: Some(prost_types::FieldMask {
            paths: vec!["user".to_owned()],
        }),
        ..UpdateSessionRequest::default()
    };
    gateway
        .stack
        .sessions
        .client()
        .update_session(update)
        .await
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        browser.get("/app/a").await;
        let groups = gateway.upstream.requests().pop().unwrap().all("remote-groups");
        if groups == ["guest"] {
            return;
        }
        assert!(Instant::now() < deadline, "still {groups:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_is_told_the_host_that_browsers_know_where_its_rule_says_so() {
    let rules =
        "[[route]]\npath = \"/kept/*\"\nguard = \"none\"\nupstream = \"{upstream}\"\npreserve_host = true\n";
    let settings = [
        ("EDGE_BASE_URL", "http://app.localhost"),
        ("EDGE_HOSTS", "wiki.localhost:8080"),
    ];
    let gateway = Gateway::start(rules, &settings).await;
    let upstream = gateway.upstream.address().to_string();
    for (host, path, expected) in [
        ("app.localhost", "/kept/a", "app.localhost"),
        ("wiki.localhost:8080", "/kept/a", "wiki.localhost:8080"),
        ("evil.example", "/kept/a", "app.localhost"),
        ("app.localhost", "/public/a", upstream.as_str()),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        gateway.stack.raw(&request).await;
        let seen = gateway.upstream.requests().pop().unwrap();
        assert_eq!(seen.all("host"), [expected], "{host} {path}");
    }
    let socket = "GET /kept/socket HTTP/1.1\r\nHost: app.localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nping";
    gateway.stack.raw(socket).await;
    assert_eq!(
        gateway.upstream.requests().pop().unwrap().all("host"),
        ["app.localhost"]
    );
}
