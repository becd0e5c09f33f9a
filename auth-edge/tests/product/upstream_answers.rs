//! What an upstream's answer may do to the browser, to caches, and to a proxy before the edge.

use axum::http::StatusCode;
use axum::response::IntoResponse as _;

use crate::gateway::Gateway;

const FOR_CACHES: [(&str, &str); 9] = [
    ("cdn-cache-control", "public, max-age=600"),
    ("cloudflare-cdn-cache-control", "public, max-age=600"),
    ("x-litespeed-cache-control", "public"),
    ("surrogate-control", "max-age=600"),
    ("edge-control", "cache-maxage=600"),
    ("x-accel-expires", "600"),
    ("expires", "Thu, 01 Jan 2099 00:00:00 GMT"),
    ("age", "1"),
    ("pragma", "public"),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_has_opened_no_header_lets_a_cache_keep() {
    let gateway = Gateway::start("", &[]).await;
    gateway
        .upstream
        .answer_by(|_| Some((FOR_CACHES, "mine").into_response()));
    let mut browser = gateway.signed_in().await;
    for path in ["/api/orders", "/account/a", "/token/a"] {
        let answer = browser.get(path).await;
        assert_eq!(
            (answer.status, answer.header("cache-control")),
            (200, "no-store"),
            "{path}"
        );
        for (name, _) in FOR_CACHES {
            assert_eq!(answer.header(name), "", "{path} {name}");
        }
    }
    let public = browser.get("/public/a").await;
    assert_eq!(
        public.header("surrogate-control"),
        "max-age=600",
        "what is for everybody may be kept"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_signs_nobody_out_by_clearing_the_site() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.signed_in().await;
    for (sent, kept) in [
        ("\"cookies\"", ""),
        ("\"cache\", \"cookies\"", "\"cache\""),
        ("\"*\"", "\"cache\", \"storage\""),
    ] {
        gateway
            .upstream
            .answer_by(move |_| Some(([("clear-site-data", sent)], "bye").into_response()));
        for path in ["/api/orders", "/public/a"] {
            assert_eq!(
                browser.get(path).await.header("clear-site-data"),
                kept,
                "{path} {sent}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_sessions_are_bound_no_upstream_takes_a_browsers_key_or_binds_it_itself() {
    const OFFER: (&str, &str) = (
        "secure-session-registration",
        "(ES256);path=\"/own\";challenge=\"a\"",
    );
    const CHALLENGE: (&str, &str) = ("secure-session-challenge", "\"a\";id=\"b\"");
    let https = ("EDGE_BASE_URL", "https://app.example.test");
    for (settings, binds) in [
        (&[https][..], true),
        (&[https, ("EDGE_DEVICE_BOUND", "off")], false),
    ] {
        let gateway = Gateway::start("", settings).await;
        // A form of another site: the browser omits its cookies.
        let mut browser = gateway.stack.browser();
        for (sent, kept, kept_otherwise) in [
            ("\"*\"", "\"cache\"", "\"cache\", \"storage\""),
            ("\"storage\"", "", "\"storage\""),
        ] {
            gateway.upstream.answer_by(move |_| {
                Some(([("clear-site-data", sent), OFFER, CHALLENGE], "bye").into_response())
            });
            let answer = browser.post("/public/a", &[], "a=b").await;
            let expected = if binds { kept } else { kept_otherwise };
            assert_eq!(answer.header("clear-site-data"), expected, "{sent} {settings:?}");
            for (name, value) in [OFFER, CHALLENGE] {
                let expected = if binds { "" } else { value };
                assert_eq!(answer.header(name), expected, "{name} {settings:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_has_no_proxy_before_us_answer_instead() {
    let gateway = Gateway::start("", &[]).await;
    gateway.upstream.answer_by(|_| {
        let orders = [
            ("x-accel-redirect", "/internal/a"),
            ("x-sendfile", "/etc/passwd"),
            ("x-accel-buffering", "no"),
        ];
        Some((orders, "a").into_response())
    });
    let answer = gateway.stack.browser().get("/public/a").await;
    assert_eq!(
        (answer.header("x-accel-redirect"), answer.header("x-sendfile")),
        ("", "")
    );
    assert_eq!(
        answer.header("x-accel-buffering"),
        "no",
        "streams are not to be held back"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_redirect_carries_a_fragment_to_another_origin() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.stack.browser();
    let raw = |answer: &crate::support::Answer| answer.header("location").to_owned();
    let to_login = browser.visit("/account/a").await;
    assert!(!raw(&to_login).contains('#'), "on our own address: {to_login:?}");
    let to_provider = browser.visit(to_login.location()).await;
    assert!(
        raw(&to_provider).ends_with('#'),
        "to another origin: {to_provider:?}"
    );
    let callback = browser.authorize(to_provider.location()).await;
    let landed = browser.visit(&callback).await;
    assert_eq!(raw(&landed), format!("{}/account/a", gateway.stack.base()));
    let with_own = browser
        .until_callback("/api/auth/login?returnTo=/account/b%23top")
        .await;
    let landed = browser.visit(&with_own).await;
    assert_eq!(raw(&landed), format!("{}/account/b#top", gateway.stack.base()));
    for (target, sent) in [
        ("https://other.example/x", "https://other.example/x#"),
        ("//other.example/x", "//other.example/x#"),
        ("https://other.example/x#own", "https://other.example/x#own"),
        ("/docs/", "/docs/"),
    ] {
        gateway
            .upstream
            .answer_by(move |_| Some((StatusCode::FOUND, [("location", target)]).into_response()));
        assert_eq!(raw(&browser.get("/public/a").await), sent);
    }
    let out = browser.visit("/api/auth/logout").await;
    assert!(raw(&out).ends_with('#'), "{out:?}");
}
