//! Guards, paths and folders, with a small real server behind the edge.

use std::io::Write as _;

use reqwest::Method;
use tempfile::NamedTempFile;

use crate::support::{Browser, Stack, Upstream};

pub(crate) const UNAUTHORIZED: &str = "{\"error\":\"not_authenticated\",\"description\":\"The user does not have an active session or is not authenticated\"}";
const SCRIPT: [(&str, &str); 2] = [("sec-fetch-mode", "cors"), ("sec-fetch-site", "same-origin")];

/// A stack with a route table and one recording upstream.
pub(crate) struct Gateway {
    pub(crate) stack: Stack,
    pub(crate) upstream: Upstream,
    _table: NamedTempFile,
}

impl Gateway {
    /// `{upstream}` in further rules is the upstream's address.
    pub(crate) async fn start(more: &str, settings: &[(&str, &str)]) -> Self {
        let upstream = Upstream::start().await;
        let mut table = NamedTempFile::new().unwrap();
        let url = upstream.url();
        let rules = format!(
            "[[route]]\npath = \"/api/*\"\nguard = \"api\"\nupstream = \"{url}\"\n\
             [[route]]\npath = \"/account/*\"\nguard = \"page\"\nupstream = \"{url}\"\n\
             [[route]]\npath = \"/public/*\"\nguard = \"none\"\nupstream = \"{url}\"\n\
             [[route]]\npath = \"/token/*\"\nguard = \"api\"\nupstream = \"{url}\"\naccess_token = true\nstrip_prefix = true\n\
             [[route]]\npath = \"/scope/*\"\nguard = \"api\"\nupstream = \"{url}\"\nscopes = [\"launch:missiles\"]\n\
             [[route]]\npath = \"/fresh/*\"\nguard = \"page\"\nupstream = \"{url}\"\nmax_age = 900\n\
             [[route]]\npath = \"/gone/*\"\nguard = \"none\"\nupstream = \"http://127.0.0.1:1\"\n{}",
            more.replace("{upstream}", &url)
        );
        table.write_all(rules.as_bytes()).unwrap();
        let path = table.path().to_str().unwrap().to_owned();
        let mut pairs = vec![("EDGE_ROUTES", path.as_str())];
        pairs.extend_from_slice(settings);
        let stack = Stack::with(&pairs).await;
        Self {
            stack,
            upstream,
            _table: table,
        }
    }

    /// A browser with a session of this person, created at the session service.
    pub(crate) async fn signed_in_as(&self, user: serde_json::Value, scope: &str) -> Browser {
        let mut browser = self.stack.browser();
        let (name, value) = self.stack.session_of(user, scope).await;
        browser.jar.insert(name, value);
        browser
    }

    /// A browser with a session created at the session service: guards ignore its origin.
    pub(crate) async fn signed_in(&self) -> Browser {
        let mut browser = self.stack.browser();
        let (name, value) = self.stack.session_cookie().await;
        browser.jar.insert(name, value);
        browser
    }
}

// conformance: B-051
#[tokio::test(flavor = "multi_thread")]
async fn an_api_guard_tells_a_stranger_so_word_for_word_and_asks_nobody() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.stack.browser();
    for method in [Method::GET, Method::POST, Method::DELETE, Method::OPTIONS] {
        let answer = browser.send(method, "/api/orders", &[], None).await;
        assert_eq!((answer.status, answer.body.as_str()), (401, UNAUTHORIZED));
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    browser.jar.insert(
        "session".to_owned(),
        format!("{}.{}", "a".repeat(32), "b".repeat(43)),
    );
    assert_eq!(
        browser.get("/api/orders").await.status,
        401,
        "a forged cookie is no session"
    );
    assert_eq!(gateway.upstream.requests().len(), 0);
    assert_eq!(
        gateway.stack.sessions.calls(),
        0,
        "a cookie that does not verify costs no call"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_guard_sends_a_visitor_to_sign_in_and_back() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.stack.browser();
    let answer = browser.visit("/account/orders?q=a%26b&x=%C3%A9").await;
    assert!(matches!(answer.status, 302 | 307), "{answer:?}");
    assert_eq!(answer.header("cache-control"), "no-store");
    let login = answer.location().to_owned();
    let callback = browser.until_callback(&login).await;
    let landed = browser.visit(&callback).await;
    assert_eq!(
        landed.location(),
        format!("{}/account/orders?q=a%26b&x=%C3%A9", gateway.stack.base())
    );
    let page = browser.visit("/account/orders?q=a%26b&x=%C3%A9").await;
    assert_eq!(page.status, 200);
    assert_eq!(
        gateway.upstream.requests()[0].target,
        "/account/orders?q=a%26b&x=%C3%A9"
    );
    assert_eq!(
        page.header("cache-control"),
        "no-store",
        "what a session has opened is for no cache"
    );
    assert!(page.header("vary").contains("cookie"), "{page:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_navigation_of_a_guarded_page_is_sent_to_sign_in() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.stack.browser();
    let image = [("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")];
    for headers in [
        &SCRIPT[..],
        &[("accept", "application/json")],
        &[("x-requested-with", "XMLHttpRequest")],
        &image,
    ] {
        let answer = browser.get_with("/account/x", headers).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (401, UNAUTHORIZED),
            "{headers:?}"
        );
    }
    let posted = browser.post("/account/x", &[], "a=b").await;
    assert_eq!(
        (posted.status, posted.body.as_str()),
        (401, UNAUTHORIZED),
        "nothing is lost silently"
    );
    for headers in [
        ("purpose", "prefetch"),
        ("sec-purpose", "prefetch;prerender"),
        ("x-moz", "prefetch"),
    ] {
        let answer = browser.get_with("/account/x", &[headers]).await;
        assert_eq!((answer.status, answer.body.as_str()), (204, ""), "{headers:?}");
    }
    assert_eq!(gateway.upstream.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preflight_passes_without_anybodys_identity() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.signed_in().await;
    let headers = [
        ("origin", "https://other.example"),
        ("access-control-request-method", "PUT"),
        ("x-auth-subject", "admin"),
    ];
    assert_eq!(
        browser
            .send(Method::OPTIONS, "/api/orders", &headers, None)
            .await
            .status,
        200
    );
    let seen = &gateway.upstream.requests()[0];
    assert_eq!(seen.all("x-auth-subject"), Vec::<String>::new());
    let mut stranger = gateway.stack.browser();
    for part in [[headers[0], ("accept", "*/*")], [headers[1], ("accept", "*/*")]] {
        let answer = stranger.send(Method::OPTIONS, "/api/orders", &part, None).await;
        assert_eq!(answer.status, 401, "half a preflight is none: {part:?}");
    }
    let get = stranger.get_with("/api/orders", &headers[..2]).await;
    assert_eq!(get.status, 401, "nor is another method");
    let with_token = [
        headers[0],
        headers[1],
        ("authorization", "Bearer mine"),
        ("dpop", "mine"),
    ];
    let preflight = stranger
        .send(Method::OPTIONS, "/token/a", &with_token, None)
        .await;
    assert_eq!(preflight.status, 200);
    let seen = gateway.upstream.requests().pop().unwrap();
    assert_eq!(
        (seen.target.as_str(), seen.all("authorization"), seen.all("dpop")),
        ("/a", Vec::new(), Vec::new()),
        "an upstream that trusts our token gets no other"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_nobody_granted_is_403() {
    let gateway = Gateway::start("", &[]).await;
    let answer = gateway.signed_in().await.get("/scope/a").await;
    assert_eq!(answer.status, 403);
    assert_eq!(answer.json()["error"], "ERR_INSUFFICIENT_SCOPE");
    assert_eq!(gateway.upstream.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_sign_in_is_asked_for_again_where_a_young_one_is_needed() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.signed_in().await;
    assert_eq!(browser.visit("/fresh/a").await.status, 200);
    gateway.stack.advance(901);
    let answer = browser.visit("/fresh/a").await;
    assert!(matches!(answer.status, 302 | 307), "{answer:?}");
    assert!(answer.location().contains("max_age=900"), "{answer:?}");
    assert_eq!(
        browser.visit("/account/a").await.status,
        200,
        "elsewhere the session is as good as before"
    );
}

// conformance: B-049
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_cannot_act_with_the_session() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.signed_in().await;
    for headers in [
        &[("origin", "https://evil.example")][..],
        &[("origin", "null")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "cross-site")],
    ] {
        assert_eq!(
            browser.post("/api/orders", headers, "a=b").await.status,
            403,
            "{headers:?}"
        );
    }
    let socket = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("origin", "https://evil.example"),
    ];
    assert_eq!(browser.get_with("/api/orders", &socket).await.status, 403);
    assert_eq!(gateway.upstream.requests().len(), 0);
    let base = gateway.stack.base().to_owned();
    assert_eq!(
        browser
            .post("/api/orders", &[("origin", &base)], "a=b")
            .await
            .status,
        200
    );
    assert_eq!(
        browser.post("/api/orders", &[], "a=b").await.status,
        200,
        "a program says nothing of origins"
    );
}

// conformance: B-038
#[tokio::test(flavor = "multi_thread")]
async fn ambiguous_paths_are_400_and_reach_nobody() {
    let gateway = Gateway::start("", &[]).await;
    for target in [
        "/public/..%2fapi/orders",
        "/public/%252e%252e/api/orders",
        "/public/..;/api/orders",
        "/public;a=b/../api/orders",
        "/public//../api/orders",
        "//api/orders",
        "/public/..%5capi/orders",
        "/public/%00",
        "/public/%c0%ae%c0%ae/api",
        "/API/orders",
        "/api./orders",
    ] {
        let status = gateway
            .stack
            .raw(&format!(
                "GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            ))
            .await;
        let expected = if matches!(target, "/API/orders" | "/api./orders") {
            ["400", "404"]
        } else {
            ["400", "400"]
        };
        assert!(
            expected
                .iter()
                .any(|code| status.starts_with(&format!("HTTP/1.1 {code}"))),
            "{target}: {status}"
        );
    }
    for target in [
        "/public/../api/orders",
        "/public/%2e%2e/api/orders",
        "/./api/orders",
        "/%61pi/orders",
    ] {
        let status = gateway
            .stack
            .raw(&format!(
                "GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            ))
            .await;
        assert!(status.starts_with("HTTP/1.1 401"), "{target}: {status}");
    }
    for target in ["/x/../api/auth/login", "/%61pi/auth/login", "/API/AUTH/login"] {
        let status = gateway
            .stack
            .raw(&format!(
                "GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            ))
            .await;
        assert!(status.starts_with("HTTP/1.1 404"), "{target}: {status}");
    }
    assert_eq!(gateway.upstream.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_session_service_down_guards_say_503_and_leave_the_cookie_alone() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.signed_in().await;
    gateway.stack.sessions.stop().await;
    for path in ["/api/orders", "/account/a", "/api/auth/check"] {
        let answer = browser.get(path).await;
        assert_eq!(answer.status, 503, "{path}");
        assert!(!answer.header("retry-after").is_empty(), "{path}");
        assert!(answer.set_cookies().is_empty(), "{path}");
    }
    assert_eq!(gateway.upstream.requests().len(), 0);
    assert_eq!(
        browser.get("/public/a").await.status,
        200,
        "what needs no session goes on"
    );
    gateway.stack.sessions.start_again().await;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while browser.get("/api/orders").await.status != 200 {
        assert!(
            std::time::Instant::now() < deadline,
            "recovery needs no new sign-in"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_serves_its_app_and_nothing_hidden() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("assets")).unwrap();
    for (name, text) in [
        ("index.html", "<!doctype html>app"),
        ("assets/index-DiwrgTd4.js", "1"),
        ("assets/plain.js", "2"),
        (".env", "x"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let dir = folder.path().to_str().unwrap();
    let rules = format!(
        "[[route]]\npath = \"/*\"\nguard = \"none\"\nupstream = \"dir:{dir}\"\n\
         [[route]]\npath = \"/private/*\"\nguard = \"page\"\nupstream = \"dir:{dir}\"\n"
    );
    let gateway = Gateway::start(&rules, &[]).await;
    let mut browser = gateway.signed_in().await;
    for (path, status, cache) in [
        ("/", 200, "no-cache"),
        ("/some/page", 200, "no-cache"),
        ("/private/page", 200, "no-store"),
        (
            "/assets/index-DiwrgTd4.js",
            200,
            "public, max-age=31536000, immutable",
        ),
        ("/assets/plain.js", 200, "no-cache"),
        ("/assets/missing-DiwrgTd4.js", 404, "no-store"),
        ("/.env", 404, "no-store"),
        ("/.git/config", 404, "no-store"),
    ] {
        let answer = browser.visit(path).await;
        assert_eq!(
            (answer.status, answer.header("cache-control")),
            (status, cache),
            "{path}"
        );
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
    }
    let page = browser.visit("/some/page").await;
    assert_eq!(page.body, "<!doctype html>app");
    let policy = page.header("content-security-policy");
    assert!(
        policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    let script = browser.visit("/assets/plain.js").await;
    assert_eq!(
        script.header("content-security-policy"),
        "",
        "it would hold for a worker"
    );
    assert_eq!(
        gateway.stack.browser().visit("/private/page").await.status,
        307,
        "the folder is behind its guard"
    );
    assert_eq!(browser.post("/some/page", &[], "").await.status, 405);
}
