//! Paths that programs read differently: rejected, unless a rule accepts them and covers every reading.

use reqwest::Method;

use crate::gateway::Gateway;

const RULES: &str = r#"
[[route]]
path = "/gitlab/*"
guard = "api"
upstream = "{upstream}"
encoded_path = true

[[route]]
path = "/gitlab/admin/*"
guard = "api"
upstream = "{upstream}"
claims = { groups = "admin" }

[[route]]
path = "/npm/*"
guard = "none"
upstream = "{upstream}"
encoded_path = true
strip_prefix = true

[[check]]
path = "/rabbit/*"
guard = "api"
encoded_path = true

[[check]]
path = "/rabbit/api/users/*"
guard = "api"
claims = { groups = "admin" }
"#;

/// Sends a request unchanged; an HTTP client would rewrite it.
async fn ask(gateway: &Gateway, path: &str) -> (u16, Option<String>) {
    let (name, value) = gateway.stack.session_cookie().await;
    let before = gateway.upstream.requests().len();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: a\r\nCookie: {name}={value}\r\nConnection: close\r\n\r\n");
    let answer = gateway.stack.raw(&request).await;
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let seen = gateway.upstream.requests().split_off(before);
    (status, seen.first().map(|seen| seen.target.clone()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_takes_them_passes_their_bytes_on_unchanged() {
    let gateway = Gateway::start(RULES, &[]).await;
    for path in [
        "/gitlab/api/v4/projects/a%2Fb",
        "/gitlab/api/v4/projects/a%2fb/repository/files/src%2Fmain.rs/raw?ref=a%2Fb",
        "/gitlab/a;v=1/b",
        "/gitlab/a//b/",
        "/gitlab/a%5Cb",
        "/gitlab/a\\b",
        "/gitlab/100%2525",
        "/gitlab/a%252Fb",
        "/gitlab/@scope%2fpkg",
        "/gitlab/queues/%2F/name",
        "/gitlab/_matrix/client/v3/rooms/!abc:example.org/state/m.room%2Fx/@ada:example.org",
    ] {
        assert_eq!(ask(&gateway, path).await, (200, Some(path.to_owned())), "{path}");
    }
    assert_eq!(
        ask(&gateway, "/npm/@scope%2fpkg").await,
        (200, Some("/@scope%2fpkg".to_owned()))
    );
    let plain = "/gitlab/a/../b";
    assert_eq!(
        ask(&gateway, plain).await,
        (200, Some("/gitlab/b".to_owned())),
        "as ever"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_another_reading_leads_elsewhere_with_is_refused() {
    let gateway = Gateway::start(RULES, &[]).await;
    for path in [
        // No rule accepts them.
        "/api/projects/a%2Fb",
        "/public/a;b",
        "/public/a//b",
        "/public/a%5Cb",
        "/public/a%252Fb",
        // The stricter rule matches one of the readings.
        "/gitlab/%2Fadmin/x",
        "/gitlab/admin%2Fx",
        "/gitlab//admin/x",
        "/gitlab/admin;a=b/x",
        "/gitlab/;/admin",
        "/gitlab/admin%5Cx",
        "/gitlab/admin%252Fx",
        "/gitlab/Admin%2Fx",
        "/gitlab/admin%253Bx",
        // The rule itself matches only one reading.
        "/gitlab%2Fa",
        "/public%2F..%2Fgitlab",
        "//gitlab/a",
        // Paths that climb, in any spelling.
        "/gitlab/..%2fapi/orders",
        "/gitlab/x%2F..%2F..%2Fapi",
        "/gitlab/..;/api",
        "/gitlab/a//../b",
        "/gitlab/%252e%252e/api%2Fx",
        "/gitlab/a%2F%00",
        // The edge's own paths.
        "/gitlab/../api/auth//me",
    ] {
        let (status, target) = ask(&gateway, path).await;
        assert_eq!((status, target), (400, None), "{path}");
    }
    for path in ["/api/auth%2Fme", "/api//auth/me", "/api%2fauth;/me"] {
        assert_eq!(ask(&gateway, path).await, (404, None), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_takes_them_by_the_same_rule() {
    let gateway = Gateway::start(RULES, &[("EDGE_TRUSTED_PROXIES", "127.0.0.1")]).await;
    let mut browser = gateway.signed_in().await;
    for (path, status) in [
        ("/rabbit/api/queues/%2F/name", 200),
        ("/rabbit/api/queues/a%2Fb;c//d", 200),
        ("/rabbit/api/users/ada", 403),
        ("/rabbit/api%2Fusers/ada", 403),
        ("/rabbit/api/%2Fusers/ada", 403),
        ("/rabbit/..%2Fapi", 403),
        ("/rabbit%2Fapi", 403),
    ] {
        let about = [
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "mq.localhost"),
            ("x-forwarded-uri", path),
        ];
        let answer = browser.send(Method::GET, "/api/auth/check", &about, None).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_of_such_a_page_signs_in_and_comes_back_to_it() {
    let rules = "[[route]]\npath = \"/wiki/*\"\nguard = \"page\"\nupstream = \"{upstream}\"\nencoded_path = true\n\
         sign_in = { login_hint = \"ada\" }\n";
    let gateway = Gateway::start(rules, &[]).await;
    let mut browser = gateway.stack.browser();
    let page = "/wiki/a%2Fb;c?d=e";
    let answer = browser.visit(page).await;
    assert_eq!(answer.status, 307);
    let login = browser.visit(answer.location()).await;
    assert!(
        login.location().contains("login_hint=ada"),
        "the rule is found: {login:?}"
    );
    let callback = browser.authorize(login.location()).await;
    assert_eq!(
        browser.visit(&callback).await.location(),
        format!("{}{page}", gateway.stack.base())
    );
}
