//! Headers and bodies to an upstream and back.

use axum::response::IntoResponse as _;

use crate::gateway::Gateway;
use crate::support::Warnings;

// conformance: B-023 B-056 B-058
#[tokio::test(flavor = "multi_thread")]
async fn the_upstream_learns_who_it_is_from_us_alone() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.signed_in().await;
    browser.jar.insert("theme".to_owned(), "dark".to_owned());
    let spoofed = [
        ("X-Auth-Subject", "admin"),
        ("x_auth_subject", "admin"),
        ("X_Auth-Session", "admin"),
        ("x-auth-email", "admin"),
        ("X-Forwarded-User", "admin"),
        ("x_forwarded_email", "admin"),
        ("x-forwarded-for", "6.6.6.6"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-proto", "gopher"),
        ("connection", "x-auth-subject, x-auth-session, x-forwarded-for"),
        ("authorization", "Bearer mine"),
    ];
    assert_eq!(browser.get_with("/api/orders", &spoofed).await.status, 200);
    let seen = &gateway.upstream.requests()[0];
    assert_eq!(seen.all("x-auth-subject").len(), 1);
    assert_ne!(seen.all("x-auth-subject")[0], "admin");
    assert_eq!(seen.all("x-auth-session").len(), 1);
    for name in [
        "x_auth_subject",
        "x_auth-session",
        "x-auth-email",
        "x-forwarded-user",
        "x_forwarded_email",
        "connection",
    ] {
        assert_eq!(seen.all(name), Vec::<String>::new(), "{name}");
    }
    assert_eq!(seen.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(seen.all("x-forwarded-proto"), ["http"]);
    assert_eq!(
        seen.all("x-forwarded-host"),
        [gateway.stack.base().strip_prefix("http://").unwrap()]
    );
    assert_eq!(seen.all("cookie"), ["theme=dark"], "our cookie stays here");
    assert_eq!(
        seen.all("authorization"),
        ["Bearer mine"],
        "without access_token it is between client and upstream"
    );
}

// conformance: B-023 B-027
#[tokio::test(flavor = "multi_thread")]
async fn the_access_token_takes_the_place_of_whatever_the_client_sent() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.signed_in().await;
    assert_eq!(
        browser
            .get_with("/token/a/b", &[("authorization", "Bearer mine")])
            .await
            .status,
        200
    );
    let seen = &gateway.upstream.requests()[0];
    assert_eq!(seen.target, "/a/b", "strip_prefix");
    let sent = seen.all("authorization");
    assert!(
        sent.len() == 1 && sent[0].starts_with("Bearer ") && sent[0] != "Bearer mine",
        "{sent:?}"
    );
}

// conformance: B-056
#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_cannot_set_our_cookies_but_its_own() {
    let warnings = Warnings::listen();
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.signed_in().await;
    let before = browser.jar.clone();
    let answer = browser.get("/public/set-cookies").await;
    let names: Vec<&str> = answer
        .set_cookies()
        .iter()
        .map(|line| line.split('=').next().unwrap())
        .collect();
    assert_eq!(names, ["theme"], "{answer:?}");
    assert_eq!(browser.jar["session"], before["session"]);
    assert!(warnings.have(&["session", "set EDGE_COOKIE_NAME"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_lengths_in_one_request_never_become_two_requests() {
    let gateway = Gateway::start("", &[]).await;
    let smuggled = "GET /public/smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    for head in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
    ] {
        let request = format!("POST /public/a HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n0\r\n\r\n{smuggled}");
        gateway.stack.raw(&request).await;
    }
    for head in [
        "Content-Length: 5\r\nContent-Length: 6",
        "Transfer-Encoding: chunked, identity",
        "Content-Length: +5",
    ] {
        let request = format!("POST /public/b HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n0\r\n\r\n{smuggled}");
        assert!(
            gateway.stack.raw(&request).await.starts_with("HTTP/1.1 400"),
            "{head}"
        );
    }
    let seen = gateway.upstream.requests();
    assert!(
        seen.iter().all(|request| request.target == "/public/a"),
        "{seen:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_is_down_is_502_and_an_unknown_path_404() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.stack.browser();
    assert_eq!(browser.get("/gone/a").await.status, 502);
    assert_eq!(browser.get("/nowhere").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_is_joined_and_no_other_protocol_is() {
    let gateway = Gateway::start("", &[]).await;
    let ask = |protocol: &str| {
        format!(
            "GET /public/socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\nping"
        )
    };
    let talk = gateway.stack.raw(&ask("websocket")).await;
    assert!(
        talk.starts_with("HTTP/1.1 101") && talk.ends_with("ping"),
        "{talk}"
    );
    let refused = gateway
        .stack
        .raw(&format!(
            "{}\r\n",
            ask("h2c")
                .replace("Connection: Upgrade", "Connection: close, Upgrade")
                .trim_end_matches("ping")
        ))
        .await;
    assert!(
        refused.starts_with("HTTP/1.1 200"),
        "an upgrade nobody offers is an ordinary request: {refused}"
    );
    assert!(
        gateway
            .upstream
            .requests()
            .iter()
            .all(|request| request.all("upgrade") != ["h2c"])
    );
    gateway.upstream.answer_by(|_| {
        let switched = [("connection", "upgrade"), ("upgrade", "h2c")];
        Some((axum::http::StatusCode::SWITCHING_PROTOCOLS, switched).into_response())
    });
    let last = ask("websocket").replace("Connection: Upgrade", "Connection: close, Upgrade");
    let other = gateway.stack.raw(last.trim_end_matches("ping")).await;
    assert!(
        other.starts_with("HTTP/1.1 502"),
        "an upstream that switches to what nobody asked for: {other}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stripped_prefix_is_told_and_comes_back_in_addresses() {
    let rules = "[[route]]\npath = \"/own/*\"\nguard = \"none\"\nupstream = \"{upstream}\"\nstrip_prefix = true\nmap_addresses = false\n";
    for (settings, sent, before) in [
        (&[][..], "/outer", ""),
        (&[("EDGE_TRUSTED_PROXIES", "127.0.0.1")], "/outer/", "/outer"),
        (&[("EDGE_TRUSTED_PROXIES", "127.0.0.1")], "//evil.example", ""),
        (
            &[("EDGE_TRUSTED_PROXIES", "127.0.0.1")],
            "https://evil.example",
            "",
        ),
    ] {
        let gateway = Gateway::start(rules, settings).await;
        let (base, upstream) = (gateway.stack.base(), gateway.upstream.url());
        let address = upstream.clone();
        gateway.upstream.answer_by(move |_| {
            let answered = [
                ("location", "/login".to_owned()),
                ("content-location", format!("{address}/a")),
                ("set-cookie", "theme=dark; Path=/".to_owned()),
            ];
            Some((answered, "a").into_response())
        });
        let mut browser = gateway.signed_in().await;
        let prefix = [("x-forwarded-prefix", sent)];
        let answer = browser.get_with("/token/a", &prefix).await;
        let seen = gateway.upstream.requests().pop().unwrap();
        assert_eq!(
            seen.all("x-forwarded-prefix"),
            [format!("{before}/token")],
            "{sent}"
        );
        assert_eq!(answer.header("location"), format!("{before}/token/login"));
        assert_eq!(
            answer.header("content-location"),
            format!("{base}{before}/token/a"),
            "{sent}"
        );
        assert_eq!(answer.set_cookies(), [format!("theme=dark; Path={before}/token")]);
        let kept = browser.get_with("/own/a", &prefix).await;
        let seen = gateway.upstream.requests().pop().unwrap();
        assert_eq!(seen.all("x-forwarded-prefix"), [format!("{before}/own")]);
        assert_eq!(kept.header("location"), "/login", "the rule says so");
        assert_eq!(kept.header("content-location"), format!("{upstream}/a"));
        assert_eq!(kept.set_cookies(), ["theme=dark; Path=/"]);
        let whole = browser.get_with("/public/a", &prefix).await;
        let seen = gateway.upstream.requests().pop().unwrap();
        let expected: Vec<&str> = [before].into_iter().filter(|prefix| !prefix.is_empty()).collect();
        assert_eq!(seen.all("x-forwarded-prefix"), expected);
        assert_eq!(whole.header("content-location"), format!("{base}{before}/a"));
    }
}
