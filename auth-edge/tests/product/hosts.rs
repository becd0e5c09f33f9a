//! Several hosts at one edge with one provider: each is a separate site.

use crate::gateway::Gateway;
use crate::support::{Browser, Stack};

const SETTINGS: [(&str, &str); 2] = [
    ("EDGE_BASE_URL", "http://app.localhost"),
    ("EDGE_HOSTS", "wiki.localhost, other.test:8080"),
];

fn at(stack: &Stack, host: &str) -> Browser {
    Browser::new(stack.address(), &format!("http://{host}"))
}

fn parameter(url: &str, name: &str) -> String {
    let url = url::Url::parse(url).unwrap();
    let mut pairs = url.query_pairs();
    let found = pairs.find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

#[tokio::test]
async fn people_sign_in_and_out_at_the_host_they_came_to() {
    let stack = Stack::with(&SETTINGS).await;
    for host in ["app.localhost", "wiki.localhost", "other.test:8080"] {
        let mut browser = at(&stack, host);
        for (wanted, expected) in [
            ("/orders", format!("http://{host}/orders")),
            ("http://elsewhere.localhost/orders", format!("http://{host}/")),
        ] {
            let login = browser.visit(&format!("/api/auth/login?returnTo={wanted}")).await;
            assert_eq!(
                parameter(login.location(), "redirect_uri"),
                format!("http://{host}/api/auth/callback")
            );
            let callback = browser.authorize(login.location()).await;
            let landed = browser.visit(&callback).await;
            assert_eq!(
                (landed.status, landed.location()),
                (302, expected.as_str()),
                "{host}"
            );
        }
        assert_eq!(browser.get("/api/auth/me").await.status, 200);
        let out = browser.visit("/api/auth/logout").await;
        let back = parameter(out.location(), "post_logout_redirect_uri");
        assert!(back.starts_with(&format!("http://{host}/")), "{host}: {back}");
        assert_eq!(browser.get("/api/auth/me").await.status, 204);
    }
    let mut unknown = at(&stack, "unknown.localhost");
    let login = unknown.visit("/api/auth/login").await;
    assert_eq!(
        parameter(login.location(), "redirect_uri"),
        "http://app.localhost/api/auth/callback"
    );
}

#[tokio::test]
async fn a_return_address_of_another_host_is_dropped() {
    let stack = Stack::with(&SETTINGS).await;
    let mut browser = at(&stack, "wiki.localhost");
    let callback = browser
        .until_callback("/api/auth/login?returnTo=http://app.localhost/orders")
        .await;
    assert_eq!(
        browser.visit(&callback).await.location(),
        "http://wiki.localhost/"
    );
}

#[tokio::test]
async fn a_sign_in_that_began_at_one_host_does_not_end_at_another() {
    let stack = Stack::with(&SETTINGS).await;
    let mut browser = at(&stack, "app.localhost");
    let callback = browser.until_callback("/api/auth/login").await;
    let mut elsewhere = at(&stack, "wiki.localhost");
    elsewhere.jar = browser.jar.clone();
    let path = callback.strip_prefix("http://app.localhost").unwrap();
    assert_eq!(elsewhere.visit(path).await.status, 400);
}

#[tokio::test]
async fn a_page_of_one_host_writes_nothing_at_another() {
    let gateway = Gateway::start("", &SETTINGS).await;
    let (name, value) = gateway.stack.session_cookie().await;
    let mut browser = at(&gateway.stack, "wiki.localhost");
    browser.jar.insert(name, value);
    for (origin, status) in [("http://wiki.localhost", 200), ("http://app.localhost", 403)] {
        let answer = browser.post("/api/orders", &[("origin", origin)], "a=b").await;
        assert_eq!(answer.status, status, "{origin}");
    }
    let seen = gateway.upstream.requests().pop().unwrap();
    assert_eq!(seen.all("x-forwarded-host"), ["wiki.localhost"]);
}
