//! The existing routes, and their methods.

use reqwest::Method;

use crate::support::{SECRET, Stack};

#[tokio::test]
async fn what_is_no_route_is_404_in_json_and_in_html() {
    let stack = Stack::start().await;
    for path in [
        "/api/auth",
        "/api/auth/",
        "/api/auth/unknown",
        "/api/auth/login/",
        "/api/auth/login/x",
        "/api/auth/LOGIN",
        "/api/auth/Me",
        "/api/auth/me.css",
        "/api/auth/__proto__",
        "/api/auth/me/",
        "/api/auth/access-token",
        "/api/auth/frontchannel-logout",
        "/API/AUTH/me",
    ] {
        let answer = stack.browser().get(path).await;
        assert_eq!(
            (answer.status, answer.header("cache-control")),
            (404, "no-store"),
            "{path}"
        );
        assert!(answer.json()["error_description"].is_string());
        let page = stack.browser().visit(path).await;
        assert_eq!(
            (page.status, page.header("content-type")),
            (404, "text/html; charset=utf-8")
        );
        assert!(page.body.contains(page.header("x-request-id")));
    }
}

#[tokio::test]
async fn a_wrong_method_is_405_with_allow_and_touches_nothing() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    for (path, method, allow) in [
        ("/api/auth/login", Method::POST, "GET, HEAD"),
        ("/api/auth/callback", Method::POST, "GET"),
        ("/api/auth/callback", Method::HEAD, "GET"),
        ("/api/auth/logout", Method::PUT, "GET, HEAD, POST"),
        ("/api/auth/logout", Method::OPTIONS, "GET, HEAD, POST"),
        ("/api/auth/me", Method::DELETE, "GET, HEAD"),
        ("/api/auth/status", Method::POST, "GET"),
        ("/api/auth/backchannel-logout", Method::GET, "POST"),
    ] {
        let answer = browser.send(method.clone(), path, &[], None).await;
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, allow),
            "{method} {path}"
        );
        assert!(answer.set_cookies().is_empty());
    }
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
}

#[tokio::test]
async fn an_answer_of_the_edge_without_a_page_has_a_policy_that_allows_nothing() {
    let stack = Stack::with(&[("EDGE_TRUSTED_PROXIES", "127.0.0.1")]).await;
    let mut browser = stack.browser();
    let to_the_provider = browser.visit("/api/auth/login").await;
    browser.sign_in().await;
    let asked = [
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "app.example"),
        ("x-forwarded-uri", "/"),
    ];
    let mut stranger = stack.browser();
    for (answer, status) in [
        (to_the_provider, 302),
        (browser.get("/api/auth/me").await, 200),
        (browser.get("/api/auth/status").await, 200),
        (browser.get_with("/api/auth/check", &asked).await, 200),
        (stranger.get("/api/auth/me").await, 204),
        (stranger.get("/api/auth/401").await, 401),
        (stranger.get("/nowhere").await, 404),
        (stranger.post("/api/auth/me", &[], "").await, 405),
        (browser.visit("/api/auth/logout").await, 302),
    ] {
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(
            answer.header("content-security-policy"),
            "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn the_login_route_can_be_moved() {
    let stack = Stack::with(&[("EDGE_LOGIN_PATH", "/sign-in")]).await;
    let mut browser = stack.browser();
    let callback = browser.until_callback("/sign-in").await;
    assert_eq!(browser.visit(&callback).await.status, 302);
    assert_eq!(browser.visit("/api/auth/login").await.status, 404);
}

#[tokio::test]
async fn a_request_id_of_the_client_is_not_taken_over() {
    const OF_THE_CLIENT: &str = "0123456789abcdef0123456789abcdef";
    let stack = Stack::start().await;
    let answer = stack
        .browser()
        .get_with("/api/auth/me", &[("x-request-id", OF_THE_CLIENT)])
        .await;
    let id = answer.header("x-request-id");
    assert!(id.len() == OF_THE_CLIENT.len() && id != OF_THE_CLIENT, "{id}");
}

#[tokio::test]
async fn a_session_made_under_an_older_secret_still_counts() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let keys = auth_edge::sessions::keys::DerivedKeys::new(
        &["a newer secret that is long enough".to_owned(), SECRET.to_owned()]
            .map(chassis::secret::Secret::new),
    );
    let settings = auth_edge::sessions::cookies::CookieSettings {
        name: "session".to_owned(),
        domain: None,
        same_site: auth_edge::sessions::cookies::SameSite::Lax,
        partitioned: false,
        secure: false,
    };
    let cookies = auth_edge::sessions::cookies::SessionCookies::new(settings, keys);
    let mut headers = reqwest::header::HeaderMap::new();
    headers.insert(
        "cookie",
        format!("session={}", browser.jar["session"]).parse().unwrap(),
    );
    assert!(cookies.read(&headers).is_some());
}
