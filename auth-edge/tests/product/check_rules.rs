//! Checks for another proxy, with their own rules: `[[check]]`.

use reqwest::Method;
use serde_json::json;

use crate::gateway::{Gateway, UNAUTHORIZED};
use crate::support::{Browser, NAVIGATION, key_file};

const RULES: &str = r#"
[[check]]
host = "grafana.localhost"
guard = "page"
claims = { groups = "monitoring" }
denied_message = "Ask the operators."
headers = { X-WEBAUTH-USER = "claim:preferred_username", X-WEBAUTH-ROLE = "claim:role" }
upstream_jwt = true

[[check]]
host = "grafana.localhost"
path = "/public/*"
guard = "none"

[[check]]
host = "api.localhost"
methods = ["GET", "HEAD"]
guard = "api"

[[check]]
host = "api.localhost"
guard = "api"
max_age = 900
"#;

async fn gateway(settings: &[(&str, &str)]) -> (Gateway, tempfile::NamedTempFile) {
    let keys = key_file();
    let path = keys.path().to_str().unwrap().to_owned();
    let all = [
        &[
            ("EDGE_TRUSTED_PROXIES", "127.0.0.1"),
            ("EDGE_UPSTREAM_JWT_KEY_FILE", path.as_str()),
            ("EDGE_BASE_URL", "http://app.localhost"),
            ("EDGE_HOSTS", "grafana.localhost"),
        ][..],
        settings,
    ]
    .concat();
    (Gateway::start(RULES, &all).await, keys)
}

fn asked<'a>(host: &'a str, method: &'a str, path: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", host),
        ("x-forwarded-method", method),
        ("x-forwarded-uri", path),
    ]
}

async fn person(gateway: &Gateway, groups: &[&str]) -> Browser {
    let user = json!({"sub": "ada-1", "preferred_username": "ada", "groups": groups});
    gateway.signed_in_as(user, "openid").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_is_judged_by_the_rule_of_what_was_asked_for() {
    let (gateway, _keys) = gateway(&[]).await;
    let mut stranger = gateway.stack.browser();
    let mut member = person(&gateway, &["monitoring"]).await;
    let mut other = person(&gateway, &["staff"]).await;
    for (host, method, path, statuses) in [
        ("grafana.localhost", "GET", "/", [401, 200, 403]),
        ("GRAFANA.localhost.", "GET", "/d/1", [401, 200, 403]),
        (
            "grafana.localhost:443",
            "POST",
            "/api?x=/public/a",
            [401, 200, 403],
        ),
        (
            "grafana.localhost",
            "GET",
            "/public/build/app.js",
            [200, 200, 200],
        ),
        ("grafana.localhost", "GET", "/public/../d/1", [401, 200, 403]),
        ("grafana.localhost", "GET", "/public/%2e%2e/d/1", [401, 200, 403]),
        ("grafana.localhost", "GET", "/public/..%2fd/1", [403, 403, 403]),
        ("grafana.localhost", "GET", "/public;/../d/1", [403, 403, 403]),
        ("api.localhost", "GET", "/a", [401, 200, 200]),
        ("api.localhost", "DELETE", "/a", [401, 200, 200]),
        ("elsewhere.localhost", "GET", "/a", [403, 403, 403]),
    ] {
        let about = asked(host, method, path);
        for (browser, expected) in [&mut stranger, &mut member, &mut other].into_iter().zip(statuses) {
            let answer = browser.get_with("/api/auth/check", &about).await;
            assert_eq!(answer.status, expected, "{method} {host}{path}: {answer:?}");
            assert_eq!(answer.header("cache-control"), "no-store");
        }
    }
    let refused = other
        .get_with("/api/auth/check", &asked("grafana.localhost", "GET", "/"))
        .await
        .json();
    assert_eq!(
        (&refused["error"], &refused["message"]),
        (&json!("insufficient_claims"), &json!("Ask the operators."))
    );
    gateway.stack.advance(1_000);
    for (method, status) in [("GET", 200), ("DELETE", 401), ("HEAD", 200), ("POST", 401)] {
        let answer = member
            .get_with("/api/auth/check", &asked("api.localhost", method, "/a"))
            .await;
        assert_eq!(answer.status, status, "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_there_are_rules_a_check_of_nothing_known_does_not_pass() {
    for (proxies, about) in [
        ("127.0.0.1", vec![]),
        ("127.0.0.1", asked("api.localhost", "GET", "/a")[..1].to_vec()),
        // The proxy sends no method, and rules differ by method.
        (
            "127.0.0.1",
            vec![
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "api.localhost"),
                ("x-forwarded-uri", "/a"),
            ],
        ),
        ("10.0.0.1", asked("api.localhost", "GET", "/a")),
        (
            "127.0.0.1",
            [
                asked("api.localhost", "GET", "/a"),
                vec![("x-forwarded-method", "POST")],
            ]
            .concat(),
        ),
    ] {
        let (gateway, _keys) = gateway(&[("EDGE_TRUSTED_PROXIES", proxies)]).await;
        let mut member = person(&gateway, &["monitoring"]).await;
        let answer = member.get_with("/api/auth/check", &about).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]),
            (403, &json!("no_check")),
            "{proxies} {about:?}"
        );
        assert_eq!(answer.header("x-auth-subject"), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_can_be_read_in_two_ways_is_that_of_no_rule() {
    let (gateway, _keys) = gateway(&[]).await;
    let mut member = person(&gateway, &["monitoring"]).await;
    for (address, status) in [
        ("https://grafana.localhost/public/a", 200),
        ("https://grafana.localhost", 200),
        ("https://grafana.localhost?/admin/secret", 403),
        ("https://grafana.localhost?a=b", 403),
        ("https://grafana.localhost#/public/a", 403),
        ("https://x@grafana.localhost/public/a", 403),
        ("https://evil.example\\@grafana.localhost/public/a", 403),
        ("grafana.localhost/public/a", 403),
    ] {
        let about = [
            &[("x-original-url", address), ("x-original-method", "GET")],
            &asked("grafana.localhost", "GET", "/public/b")[..],
        ]
        .concat();
        let answer = member.get_with("/api/auth/check", &about).await;
        assert_eq!(answer.status, status, "{address}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_header_names_another_method_where_rules_tell_methods_apart() {
    let (gateway, _keys) = gateway(&[]).await;
    let mut member = person(&gateway, &["monitoring"]).await;
    for header in [
        "x-http-method-override",
        "X_HTTP_Method_Override",
        "x-http.method",
        "x-method-override",
    ] {
        let about = [asked("api.localhost", "GET", "/a"), vec![(header, "DELETE")]].concat();
        let answer = member.get_with("/api/auth/check", &about).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]),
            (403, &json!("method_override")),
            "{header}"
        );
    }
    let rules = "[[check]]\nguard = \"api\"\n";
    let alike = Gateway::start(rules, &[("EDGE_TRUSTED_PROXIES", "127.0.0.1")]).await;
    let about = [
        asked("api.localhost", "GET", "/a"),
        vec![("x-http-method-override", "DELETE")],
    ]
    .concat();
    let answer = alike.signed_in().await.get_with("/api/auth/check", &about).await;
    assert_eq!(answer.status, 200, "one rule for every method");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_tells_what_the_application_reads_and_nothing_of_what_is_not_there() {
    let (gateway, _keys) = gateway(&[]).await;
    let mut member = person(&gateway, &["monitoring"]).await;
    let about = [
        asked("grafana.localhost", "GET", "/"),
        vec![("x-webauth-role", "Admin")],
    ]
    .concat();
    for method in [Method::GET, Method::HEAD, Method::POST, Method::OPTIONS] {
        let answer = member.send(method, "/api/auth/check", &about, None).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-webauth-user"), "ada");
        assert_eq!(answer.header("x-webauth-role"), "", "nobody has this claim");
        assert_eq!(answer.header("x-auth-subject"), "ada-1");
        let claims = answer
            .header("x-auth-assertion")
            .split('.')
            .nth(1)
            .unwrap()
            .to_owned();
        let claims =
            base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, claims).unwrap();
        let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!(
            (&claims["aud"], &claims["sub"]),
            (&json!("https://grafana.localhost"), &json!("ada-1"))
        );
    }
    let about = asked("api.localhost", "GET", "/a");
    let answer = member.get_with("/api/auth/check", &about).await;
    assert_eq!(
        (
            answer.status,
            answer.header("x-webauth-user"),
            answer.header("x-auth-assertion")
        ),
        (200, "", "")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_sent_to_sign_in_where_that_brings_what_is_missing() {
    let (gateway, _keys) = gateway(&[]).await;
    let own = |more: &[(&'static str, &'static str)]| {
        [
            &asked("grafana.localhost", "GET", "/d/1?a=b"),
            &NAVIGATION[..],
            more,
        ]
        .concat()
    };
    let mut browser = Browser::new(gateway.stack.address(), "http://grafana.localhost");
    let sent = browser.get_with("/api/auth/check?redirect=1", &own(&[])).await;
    assert_eq!(
        (sent.status, sent.location()),
        (
            302,
            "http://grafana.localhost/api/auth/login?returnTo=https%3A%2F%2Fgrafana.localhost%2Fd%2F1%3Fa%3Db"
        )
    );
    let mut other = person(&gateway, &["staff"]).await;
    let refused = other.get_with("/api/auth/check?redirect=1", &own(&[])).await;
    assert_eq!(
        refused.status, 403,
        "another sign-in of the same person brings nothing"
    );
    assert!(refused.body.contains("prompt=login") && refused.body.contains("Ask the operators."));
    let api = [&asked("api.localhost", "GET", "/a"), &NAVIGATION[..]].concat();
    let answer = gateway
        .stack
        .browser()
        .get_with("/api/auth/check?redirect=1", &api)
        .await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (401, UNAUTHORIZED),
        "guard = \"api\" sends nobody anywhere"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_rule_for_other_proxies_leads_to_an_upstream_or_stands_in_for_one() {
    let (gateway, _keys) = gateway(&[]).await;
    let mut member = person(&gateway, &["monitoring"]).await;
    for path in ["/", "/d/1", "/public/app.js"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: grafana.localhost\r\nConnection: close\r\n\r\n");
        let answer = gateway.stack.raw(&request).await;
        let expected = if path.starts_with("/public") {
            " 200 "
        } else {
            " 404 "
        };
        assert!(answer.contains(expected), "{path}: {answer}");
    }
    assert_eq!(member.get("/api/a").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_sends_visitors_to_sign_in_without_a_word_of_the_proxy() {
    let rules = "[[check]]\nhost = \"app.localhost\"\nguard = \"page\"\nredirect = true\n\
         [[check]]\nhost = \"app.localhost\"\npath = \"/asks/*\"\nguard = \"page\"\n";
    let settings = [
        ("EDGE_TRUSTED_PROXIES", "127.0.0.1"),
        ("EDGE_BASE_URL", "http://app.localhost"),
    ];
    let gateway = Gateway::start(rules, &settings).await;
    let accepts = |kind| ("accept", kind);
    let html = accepts("text/html,*/*;q=0.8");
    let mode = |mode| ("sec-fetch-mode", mode);
    let mut stranger = gateway.stack.browser();
    for (headers, expected) in [
        (&NAVIGATION[..], 302),
        (&[html], 302),
        (&[mode("navigate"), accepts("*/*")], 302),
        // Requests by programs.
        (&[], 401),
        (&[accepts("*/*")], 401),
        (&[accepts("application/json")], 401),
        (&[accepts("application/json"), mode("cors")], 401),
        (&[html, mode("cors")], 401),
        (&[html, mode("no-cors"), ("sec-fetch-dest", "image")], 401),
        (&[html, ("sec-purpose", "prefetch")], 401),
        (&[html, ("x-requested-with", "XMLHttpRequest")], 401),
    ] {
        for (path, query) in [("/a", ""), ("/asks/a", "?redirect=1")] {
            let about = [&asked("app.localhost", "GET", path), headers].concat();
            let answer = stranger
                .get_with(&format!("/api/auth/check{query}"), &about)
                .await;
            assert_eq!(answer.status, expected, "{path} {headers:?}: {answer:?}");
        }
        let about = [&asked("app.localhost", "GET", "/asks/a"), headers].concat();
        assert_eq!(stranger.get_with("/api/auth/check", &about).await.status, 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fact_of_a_check_has_one_source() {
    let rules = "[[check]]\nhost = \"a.localhost\"\nmethods = [\"GET\"]\nguard = \"none\"\n\
         [[check]]\nhost = \"a.localhost\"\nguard = \"api\"\n";
    let gateway = Gateway::start(rules, &[("EDGE_TRUSTED_PROXIES", "127.0.0.1")]).await;
    let mut stranger = gateway.stack.browser();
    let own = ("x-original-url", "https://a.localhost/x");
    for (about, expected) in [
        (vec![own, ("x-original-method", "GET")], 200),
        (vec![own, ("x-original-method", "DELETE")], 401),
        // The client's header, forwarded by a proxy that sets the other family.
        (
            vec![
                own,
                ("x-original-method", "DELETE"),
                ("x-forwarded-method", "GET"),
            ],
            401,
        ),
        (vec![own, ("x-forwarded-method", "GET")], 403),
        (
            [
                asked("a.localhost", "DELETE", "/x"),
                vec![("x-original-method", "GET")],
            ]
            .concat(),
            401,
        ),
    ] {
        let answer = stranger.get_with("/api/auth/check", &about).await;
        assert_eq!(answer.status, expected, "{about:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_of_a_trusted_proxy_is_judged_like_its_page() {
    let (gateway, _keys) = gateway(&[]).await;
    let mut member = person(&gateway, &["monitoring"]).await;
    for (proto, host, status) in [
        ("wss", "grafana.localhost", 200),
        ("ws", "grafana.localhost", 200),
        ("HTTPS", "Grafana.localhost", 200),
        ("https, https", "grafana.localhost, grafana.localhost", 200),
        ("https, http", "grafana.localhost", 403),
        ("https", "elsewhere.localhost, grafana.localhost", 403),
        ("ftp", "grafana.localhost", 403),
    ] {
        let about = [
            ("x-forwarded-proto", proto),
            ("x-forwarded-host", host),
            ("x-forwarded-host", host),
            ("x-forwarded-method", "GET"),
            ("x-forwarded-uri", "/api/live/ws"),
            ("x-forwarded-port", "443"),
        ];
        let answer = member.get_with("/api/auth/check", &about).await;
        assert_eq!(answer.status, status, "{proto} {host}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preflight_passes_a_check_without_an_identity() {
    let rules = "[[check]]\nhost = \"app.localhost\"\nguard = \"page\"\nredirect = true\n\
         claims = { groups = \"admin\" }\n";
    for rules in [rules, ""] {
        let gateway = Gateway::start(rules, &[("EDGE_TRUSTED_PROXIES", "127.0.0.1")]).await;
        let mut member = gateway.signed_in().await;
        let preflight = [
            ("origin", "https://other.example"),
            ("access-control-request-method", "PUT"),
        ];
        let with = |method, path, more: &[(&'static str, &'static str)]| {
            [&asked("app.localhost", method, path), more].concat()
        };
        for path in ["/a", "/a?b=c"] {
            let about = with("OPTIONS", path, &preflight);
            let answer = member.get_with("/api/auth/check?redirect=1", &about).await;
            assert_eq!(
                (answer.status, answer.header("x-auth-subject")),
                (200, ""),
                "{answer:?}"
            );
        }
        let mut stranger = gateway.stack.browser();
        for about in [
            with("GET", "/a", &preflight),
            with("OPTIONS", "/a", &preflight[..1]),
            with("OPTIONS", "/a", &preflight[1..]),
            with("OPTIONS", "/a?_method=DELETE", &preflight),
            with(
                "OPTIONS",
                "/a",
                &[&preflight[..], &[("x-http-method-override", "PUT")]].concat(),
            ),
            with(
                "OPTIONS",
                "/a",
                &[&preflight[..], &[("sec-websocket-version", "13")]].concat(),
            ),
            [
                asked("app.localhost", "GET", "/a")[..2].to_vec(),
                preflight.to_vec(),
            ]
            .concat(),
        ] {
            let answer = stranger.get_with("/api/auth/check", &about).await;
            assert_ne!(answer.status, 200, "{about:?}: {answer:?}");
        }
        let about = with("OPTIONS", "/a", &preflight);
        let body = Some("a=b".to_owned());
        let answer = stranger.send(Method::POST, "/api/auth/check", &about, body).await;
        assert_eq!(answer.status, 401, "a body is more than a question: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_follow_a_redirect_gets_401_without_fetch_metadata_too() {
    let rules = "[[check]]\nhost = \"app.localhost\"\nguard = \"page\"\nredirect = true\n";
    let settings = [
        ("EDGE_TRUSTED_PROXIES", "127.0.0.1"),
        ("EDGE_BASE_URL", "http://app.localhost"),
    ];
    let gateway = Gateway::start(rules, &settings).await;
    let html = ("accept", "text/html,*/*;q=0.8");
    let mut stranger = gateway.stack.browser();
    for (method, headers) in [
        ("POST", &[html][..]),
        ("PUT", &[html]),
        ("POST", &NAVIGATION),
        ("GET", &[html, ("sec-websocket-version", "13")]),
        ("GET", &[("accept", "text/event-stream")]),
        (
            "GET",
            &[("accept", "text/event-stream"), ("sec-fetch-mode", "navigate")],
        ),
    ] {
        let about = [&asked("app.localhost", method, "/a"), headers].concat();
        let answer = stranger.get_with("/api/auth/check", &about).await;
        assert_eq!(answer.status, 401, "{method} {headers:?}: {answer:?}");
    }
    let about = [asked("app.localhost", "GET", "/a"), vec![html]].concat();
    assert_eq!(stranger.get_with("/api/auth/check", &about).await.status, 302);
}
