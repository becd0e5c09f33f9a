//! Requests that load an address without a visit (prefetches, images, frames, scripts): they start and finish
//! no sign-in, use nothing up and count for no user.

use reqwest::Method;
use scripted_provider::Endpoint;

use crate::gateway::Gateway;
use crate::support::{NAVIGATION, Stack};

/// The headers a browser sends, and the status of login and callback.
type Load = (&'static [(&'static str, &'static str)], u16, u16);

const LOADS: [Load; 12] = [
    (
        &[
            ("sec-purpose", "prefetch"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ],
        204,
        204,
    ),
    (
        &[
            ("sec-purpose", "prefetch;prerender"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ],
        204,
        204,
    ),
    (
        &[
            ("sec-purpose", "prefetch"),
            ("sec-fetch-mode", "no-cors"),
            ("sec-fetch-dest", "empty"),
        ],
        204,
        204,
    ),
    (
        &[
            ("sec-fetch-mode", "no-cors"),
            ("sec-fetch-dest", "image"),
            ("sec-fetch-site", "cross-site"),
        ],
        403,
        403,
    ),
    (
        &[
            ("sec-fetch-mode", "no-cors"),
            ("sec-fetch-dest", "script"),
            ("sec-fetch-site", "cross-site"),
        ],
        403,
        403,
    ),
    (
        &[
            ("sec-fetch-mode", "no-cors"),
            ("sec-fetch-dest", "empty"),
            ("sec-fetch-site", "cross-site"),
        ],
        403,
        403,
    ),
    (
        &[
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "iframe"),
            ("sec-fetch-site", "cross-site"),
        ],
        403,
        403,
    ),
    (
        &[
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "frame"),
            ("sec-fetch-site", "same-origin"),
        ],
        403,
        403,
    ),
    (
        &[
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "object"),
            ("sec-fetch-site", "cross-site"),
        ],
        403,
        403,
    ),
    (
        &[
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "embed"),
            ("sec-fetch-site", "cross-site"),
        ],
        403,
        403,
    ),
    (
        &[
            ("sec-fetch-mode", "cors"),
            ("sec-fetch-dest", "empty"),
            ("sec-fetch-site", "same-origin"),
        ],
        401,
        403,
    ),
    (
        &[
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-mode", "cors"),
            ("sec-fetch-dest", "document"),
        ],
        403,
        403,
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn only_a_visit_starts_and_finishes_a_sign_in() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login").await;
    let jar = browser.jar.clone();
    for (headers, at_login, at_callback) in LOADS {
        let login = browser.get_with("/api/auth/login", headers).await;
        assert_eq!(login.status, at_login, "{headers:?}: {login:?}");
        let finished = browser.get_with(&callback, headers).await;
        assert_eq!(finished.status, at_callback, "{headers:?}: {finished:?}");
        for answer in [login, finished] {
            assert_eq!(answer.header("cache-control"), "no-store", "{headers:?}");
            assert!(
                answer.set_cookies().is_empty() && answer.location().is_empty(),
                "{headers:?}"
            );
        }
    }
    assert_eq!(browser.jar, jar, "nothing was used up");
    assert_eq!(stack.provider.calls(Endpoint::Token), 0);
    assert_eq!(browser.visit(&callback).await.status, 302);
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_without_fetch_metadata_and_a_visit_from_another_site_sign_in() {
    let stack = Stack::start().await;
    let from_elsewhere = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    // As Chromium sends a service worker's forwarded request.
    let passed_on = [
        ("sec-fetch-site", "same-origin"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "empty"),
    ];
    for headers in [&[][..], &from_elsewhere, &passed_on, &NAVIGATION] {
        let mut browser = stack.browser();
        let login = browser.get_with("/api/auth/login", headers).await;
        assert_eq!(login.status, 302, "{headers:?}");
        let callback = browser.authorize(login.location()).await;
        assert_eq!(
            browser.get_with(&callback, headers).await.status,
            302,
            "{headers:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_posted_is_a_visit_and_nothing_else_may_post_it() {
    let stack = Stack::with(&[
        ("EDGE_BASE_URL", "https://app.example"),
        ("OIDC_RESPONSE_MODE", "form_post"),
    ])
    .await;
    let mut browser = stack.browser();
    let login = browser.visit("/api/auth/login").await;
    let page = reqwest::get(login.location())
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let field = |name: &str| {
        let value = page.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap();
        value.split('"').next().unwrap().to_owned()
    };
    let form = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(["code", "state", "iss"].map(|name| (name, field(name))))
        .finish();
    for (headers, _, at_callback) in LOADS {
        let answer = browser.post("/api/auth/callback", headers, &form).await;
        assert_eq!(answer.status, at_callback, "{headers:?}: {answer:?}");
        assert!(answer.set_cookies().is_empty());
    }
    let visit = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    assert_eq!(
        browser.post("/api/auth/callback", &visit, &form).await.status,
        303
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_images_of_another_site_use_up_nobodys_share() {
    let stack = Stack::with(&[("EDGE_RATE_LIMIT_LOGIN", "60")]).await;
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login").await;
    for (headers, ..) in LOADS {
        for _ in 0..61 {
            for path in ["/api/auth/login", callback.as_str(), "/api/auth/logout"] {
                let answer = browser.get_with(path, headers).await;
                assert_ne!(answer.status, 429, "{headers:?} {path}");
            }
        }
    }
    assert_eq!(browser.visit("/api/auth/login").await.status, 302);
    assert_eq!(browser.visit(&callback).await.status, 302);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guarded_page_in_a_frame_sends_nobody_to_sign_in_there() {
    let gateway = Gateway::start("", &[]).await;
    let mut stranger = gateway.stack.browser();
    for (headers, ..) in LOADS {
        let answer = stranger.get_with("/account/a", headers).await;
        assert!(matches!(answer.status, 204 | 401), "{headers:?}: {answer:?}");
        assert_eq!(answer.location(), "");
    }
    assert_eq!(stranger.visit("/account/a").await.status, 307);
    let mut browser = gateway.signed_in().await;
    let framed = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
    assert_eq!(
        browser.get_with("/account/a", &framed).await.status,
        200,
        "who is signed in sees it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forward_auth_redirect_is_for_visits_alone() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    for (headers, ..) in LOADS {
        let answer = browser.get_with("/api/auth/check?redirect=1", headers).await;
        assert_eq!((answer.status, answer.location()), (401, ""), "{headers:?}");
    }
    let answer = browser
        .send(Method::GET, "/api/auth/check?redirect=1", &NAVIGATION, None)
        .await;
    assert_eq!(answer.status, 302);
}
