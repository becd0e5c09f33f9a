//! Forward auth: the answers to another proxy.

use session_proto::v1::TokenSet;

use crate::gateway::{Gateway, UNAUTHORIZED};

#[tokio::test(flavor = "multi_thread")]
async fn forward_auth_says_who_it_is_or_that_it_is_nobody() {
    let gateway = Gateway::start("", &[]).await;
    let mut stranger = gateway.stack.browser();
    let answer = stranger.get("/api/auth/check").await;
    assert_eq!((answer.status, answer.body.as_str()), (401, UNAUTHORIZED));
    let forwarded = [
        ("accept", "text/html"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-uri", "/a"),
    ];
    let answer = stranger.get_with("/api/auth/check?redirect=1", &forwarded).await;
    assert_eq!(answer.status, 302);
    assert!(
        !answer.location().contains("evil"),
        "nobody is believed by default: {answer:?}"
    );
    let mut browser = gateway.signed_in().await;
    let answer = browser.get("/api/auth/check").await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, "no-store"));
    assert!(!answer.header("x-auth-subject").is_empty() && !answer.header("x-auth-session").is_empty());
    assert_eq!(answer.header("x-auth-issuer"), gateway.stack.provider.issuer());
    assert_eq!(answer.header("authorization"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn forward_auth_takes_the_way_back_from_a_trusted_proxy() {
    let gateway = Gateway::start(
        "",
        &[
            ("EDGE_TRUSTED_PROXIES", "127.0.0.1"),
            ("EDGE_CHECK_AUTHORIZATION", "true"),
        ],
    )
    .await;
    let host = gateway.stack.base().strip_prefix("http://").unwrap().to_owned();
    let forwarded = [
        ("accept", "text/html"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", host.as_str()),
        ("x-forwarded-uri", "/a?b=c"),
    ];
    let answer = gateway
        .stack
        .browser()
        .get_with("/api/auth/check?redirect=1", &forwarded)
        .await;
    assert_eq!(answer.status, 302);
    let mut browser = gateway.stack.browser();
    let callback = browser.until_callback(answer.location()).await;
    assert_eq!(
        browser.visit(&callback).await.location(),
        format!("{}/a?b=c", gateway.stack.base())
    );
    assert!(
        browser
            .get_with("/api/auth/check", &forwarded)
            .await
            .header("authorization")
            .starts_with("Bearer ")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_access_token_is_for_proxies_that_ask_about_a_request_and_for_no_page() {
    for (trusted, about, given) in [
        ("127.0.0.1", &[("x-forwarded-uri", "/a")][..], true),
        ("127.0.0.1", &[("x-original-url", "https://app.example/a")], true),
        ("127.0.0.1", &[("x-forwarded-uri", "/a?b=/api/auth/check")], true),
        ("127.0.0.1", &[("x-forwarded-uri", "/caf\u{e9}")], true),
        // A page's own request, forwarded by a proxy.
        ("127.0.0.1", &[], false),
        (
            "127.0.0.1",
            &[("x-forwarded-uri", "/api/auth/check?redirect=1")],
            false,
        ),
        (
            "127.0.0.1",
            &[("x-original-url", "https://app.example/api/auth/check")],
            false,
        ),
        // Two of them would be ambiguous.
        (
            "127.0.0.1",
            &[("x-forwarded-uri", "/a"), ("x-forwarded-uri", "/b")],
            false,
        ),
        // Directly to the edge.
        ("10.0.0.1", &[("x-forwarded-uri", "/a")], false),
        ("10.0.0.1", &[], false),
    ] {
        let settings = [
            ("EDGE_CHECK_AUTHORIZATION", "true"),
            ("EDGE_TRUSTED_PROXIES", trusted),
        ];
        let gateway = Gateway::start("", &settings).await;
        let mut browser = gateway.signed_in().await;
        let answer = browser.get_with("/api/auth/check", about).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(!answer.header("x-auth-subject").is_empty());
        let token = answer.header("authorization");
        assert_eq!(
            token.starts_with("Bearer "),
            given,
            "{trusted} {about:?}: {answer:?}"
        );
        assert_eq!(token.is_empty(), !given, "{trusted} {about:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_bound_to_a_key_is_handed_to_nobody() {
    let settings = [
        ("EDGE_CHECK_AUTHORIZATION", "true"),
        ("EDGE_TRUSTED_PROXIES", "127.0.0.1"),
    ];
    let gateway = Gateway::start("", &settings).await;
    for (token_type, status, scheme) in [("Bearer", 200, "Bearer "), ("DPoP", 401, ""), ("dpop", 401, "")] {
        let tokens = TokenSet {
            token_type: token_type.to_owned(),
            ..TokenSet::default()
        };
        let person = serde_json::json!({"sub": format!("person-{token_type}")});
        let (name, value) = gateway.stack.session_with(person, tokens).await;
        let mut browser = gateway.stack.browser();
        browser.jar.insert(name, value);
        let answer = browser
            .get_with("/api/auth/check", &[("x-forwarded-uri", "/a")])
            .await;
        assert_eq!(answer.status, status, "{token_type}");
        assert!(answer.header("authorization").starts_with(scheme), "{answer:?}");
        assert!(!answer.body.contains("token-of-person"), "{answer:?}");
    }
}
