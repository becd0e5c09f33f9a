//! Requests that other sites' pages can send through a guard, and headers that change a request.

use reqwest::Method;

use crate::gateway::Gateway;

const RULES: &str = "[[route]]\npath = \"/strict/*\"\nguard = \"api\"\nupstream = \"{upstream}\"\ncsrf = \"header\"\n\
     [[route]]\npath = \"/hook/*\"\nguard = \"api\"\nupstream = \"{upstream}\"\ncsrf = \"none\"\n\
     [[route]]\npath = \"/open-hook/*\"\nguard = \"none\"\nupstream = \"{upstream}\"\ncsrf = \"none\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_referer_is_refused_where_nothing_else_is_said() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.signed_in().await;
    let base = gateway.stack.base().to_owned();
    let own = format!("{base}/form?a=b");
    for (referer, expected) in [
        ("https://evil.example/", 403),
        ("https://evil.example/?http://127.0.0.1", 403),
        ("null", 403),
        ("", 200),
        (own.as_str(), 200),
    ] {
        let answer = browser.post("/api/orders", &[("referer", referer)], "a=b").await;
        assert_eq!(answer.status, expected, "{referer}");
    }
    let both = [("referer", "https://evil.example/"), ("origin", base.as_str())];
    assert_eq!(
        browser.post("/api/orders", &both, "a=b").await.status,
        200,
        "a fallback alone"
    );
    assert_eq!(
        browser.get_with("/api/orders", &both[..1]).await.status,
        200,
        "links come from anywhere"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_says_how_foreign_requests_are_told_apart() {
    let gateway = Gateway::start(RULES, &[]).await;
    let mut browser = gateway.signed_in().await;
    let base = gateway.stack.base().to_owned();
    let evil = ("origin", "https://evil.example");
    let own = ("origin", base.as_str());
    let proof = ("x-csrf", "1");
    let socket = [("connection", "upgrade"), ("upgrade", "websocket")];
    for (path, headers, expected) in [
        ("/strict/a", &[own][..], 403),
        ("/strict/a", &[own, proof], 200),
        ("/strict/a", &[evil, proof], 403),
        ("/strict/a", &[("referer", "https://evil.example/"), proof], 403),
        ("/strict/a", &[proof], 200),
        ("/hook/a", &[evil], 200),
        ("/hook/a", &[("referer", "https://evil.example/")], 200),
    ] {
        assert_eq!(
            browser.post(path, headers, "a=b").await.status,
            expected,
            "{path} {headers:?}"
        );
    }
    assert_eq!(
        browser.get("/strict/a").await.status,
        200,
        "what changes nothing needs no proof"
    );
    let foreign = [socket[0], socket[1], evil];
    assert_eq!(browser.get_with("/strict/a", &foreign).await.status, 403);
    let ours = [socket[0], socket[1], own];
    assert_eq!(
        browser.get_with("/strict/a", &ours).await.status,
        101,
        "no script adds a header to a socket"
    );
    let mut stranger = gateway.stack.browser();
    assert_eq!(
        stranger.post("/hook/a", &[], "").await.status,
        401,
        "the guard stays"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_header_makes_another_method_of_a_request() {
    let gateway = Gateway::start(RULES, &[]).await;
    let mut browser = gateway.signed_in().await;
    let base = gateway.stack.base().to_owned();
    let names = [
        "X-HTTP-Method-Override",
        "x_http_method_override",
        "X-HTTP-Method",
        "X.Method-Override",
    ];
    let mut headers: Vec<(&str, &str)> = names.iter().map(|name| (*name, "DELETE")).collect();
    headers.push(("origin", base.as_str()));
    headers.push(("access-control-request-method", "PUT"));
    for (method, path, kept) in [
        (Method::GET, "/api/orders", false),
        (Method::POST, "/api/orders", false),
        (Method::OPTIONS, "/api/orders", false),
        (Method::OPTIONS, "/hook/a", false),
        (Method::GET, "/public/a", false),
        (Method::POST, "/hook/a", true),
        (Method::POST, "/open-hook/a", true),
    ] {
        let answer = browser.send(method.clone(), path, &headers, None).await;
        assert_eq!(answer.status, 200, "{method} {path}");
        let seen = gateway.upstream.requests().pop().unwrap();
        for name in names {
            assert_eq!(!seen.all(name).is_empty(), kept, "{method} {path} {name}");
        }
    }
}

const OVERRIDES: &str = "[[route]]\npath = \"/rails/*\"\nguard = \"api\"\nupstream = \"{upstream}\"\nguard_method_override = true\n\
     [[route]]\npath = \"/strict/*\"\nguard = \"api\"\nupstream = \"{upstream}\"\ncsrf = \"header\"\nguard_method_override = true\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_route_holds_a_request_that_names_another_method_to_what_it_asks_of_a_change() {
    let gateway = Gateway::start(OVERRIDES, &[]).await;
    let mut browser = gateway.signed_in().await;
    let base = gateway.stack.base().to_owned();
    let link = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    let own = [("sec-fetch-site", "same-origin")];
    let proven = [("origin", base.as_str()), ("x-csrf", "1")];
    for (path, headers, expected) in [
        ("/rails/posts/1?_method=DELETE", &link[..], 403),
        ("/rails/posts/1?a=b&_method=delete", &link, 403),
        ("/rails/posts/1?%5Fmethod=PUT", &link, 403),
        ("/rails/posts/1?_Method=PATCH", &link, 403),
        ("/rails/posts/1?.method=DELETE", &link, 403),
        ("/rails/posts/1?+_method=DELETE", &link, 403),
        (
            &format!("/rails/posts/1?{}_method=DELETE", "+".repeat(80))[..],
            &link,
            403,
        ),
        ("/rails/posts/1?_method=GET&_method=DELETE", &link, 403),
        ("/rails/posts/1?_method=", &link, 403),
        ("/rails/posts/1?_method=GET", &link, 200),
        ("/rails/posts/1?method=DELETE", &link, 200),
        ("/rails/posts/1?_method=DELETE", &own, 200),
        ("/rails/posts/1", &link, 200),
        ("/strict/1?_method=DELETE", &own, 403),
        ("/strict/1?_method=DELETE", &proven, 200),
        // Without the key, the application decides.
        ("/api/posts/1?_method=DELETE", &link, 200),
    ] {
        assert_eq!(
            browser.get_with(path, headers).await.status,
            expected,
            "{path} {headers:?}"
        );
    }
    for name in ["X-HTTP-Method-Override", "x_http_method", "X-Method.Override"] {
        let sent = [link[0], link[1], (name, "DELETE")];
        assert_eq!(
            browser.get_with("/rails/posts/1", &sent).await.status,
            403,
            "{name}"
        );
        let sent = [own[0], (name, "DELETE")];
        assert_eq!(
            browser.get_with("/rails/posts/1", &sent).await.status,
            200,
            "{name}"
        );
    }
    let mut stranger = gateway.stack.browser();
    let preflight = [
        ("origin", "https://evil.example"),
        ("access-control-request-method", "PUT"),
    ];
    for (path, expected) in [("/rails/posts/1", 200), ("/rails/posts/1?_method=DELETE", 403)] {
        let answer = stranger.send(Method::OPTIONS, path, &preflight, None).await;
        assert_eq!(answer.status, expected, "{path}");
    }
}
