//! `EDGE_FRAME_ANCESTORS`: sign-in for pages in frames of other sites. Each partition of the browser's cookies is a
//! jar: one for the frame in a portal, one for windows of the product's own site.

use crate::gateway::Gateway;
use crate::support::{Answer, Browser};

const BASE: &str = "https://app.example";
const PORTAL: &str = "https://portal.example";
const FINISH: &str = "/api/auth/frame/callback";

/// A page of the portal loads the frame.
const FRAMED: [(&str, &str); 4] = [
    ("accept", "text/html"),
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "iframe"),
];
/// The script of the page in the frame calls the edge.
const OWN_SCRIPT: [(&str, &str); 4] = [
    ("origin", BASE),
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-mode", "cors"),
    ("x-csrf", "1"),
];
/// The page in the frame posts a form.
const OWN_FORM: [(&str, &str); 5] = [
    ("accept", "text/html"),
    ("origin", BASE),
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "iframe"),
];
/// A page of the portal posts a form or calls by script.
const OF_PORTAL: [(&str, &str); 3] = [
    ("origin", PORTAL),
    ("sec-fetch-site", "cross-site"),
    ("x-csrf", "1"),
];

async fn start() -> Gateway {
    Gateway::start("", &[("EDGE_BASE_URL", BASE), ("EDGE_FRAME_ANCESTORS", PORTAL)]).await
}

/// The value of an attribute in a page.
fn attribute<'a>(page: &'a Answer, name: &str) -> &'a str {
    let after = page.body.split(&format!("{name}=\"")).nth(1);
    after
        .and_then(|rest| rest.split('"').next())
        .unwrap_or_else(|| panic!("no {name}: {}", page.body))
}

/// Begins a sign-in in the frame, and returns the callback's URL for the window.
async fn until_callback(frame: &mut Browser) -> String {
    let page = frame.get_with("/account/a?b=c", &FRAMED).await;
    let begun = frame.post(attribute(&page, "data-login"), &OWN_SCRIPT, "").await;
    assert_eq!(begun.status, 200, "{begun:?}");
    frame.authorize(begun.json()["url"].as_str().unwrap()).await
}

/// As [`until_callback`], then visits it in the window. Returns the form for the frame.
async fn until_hand_over(frame: &mut Browser, window: &mut Browser) -> String {
    let callback = until_callback(frame).await;
    let page = window.visit(&callback).await;
    assert_eq!(page.status, 200, "{page:?}");
    format!("response={}", attribute(&page, "data-sealed"))
}

async fn is_signed_in(browser: &mut Browser) -> bool {
    browser.get("/api/auth/me").await.status == 200
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_signs_in_by_a_window_and_only_that_frame_gets_the_session() {
    let gateway = start().await;
    let (mut frame, mut window) = (gateway.stack.browser(), gateway.stack.browser());

    let page = frame.get_with("/account/a?b=c", &FRAMED).await;
    assert_eq!((page.status, page.set_cookies().len()), (401, 0), "{page:?}");
    assert!(page.body.contains(">Sign in</button>"), "{}", page.body);
    let policy = page.header("content-security-policy");
    assert!(
        policy.contains("frame-ancestors 'self' https://portal.example;"),
        "{policy}"
    );
    assert_eq!(page.header("x-frame-options"), "");

    let begun = frame.post(attribute(&page, "data-login"), &OWN_SCRIPT, "").await;
    let pending = begun.set_cookies()[0].to_owned();
    assert!(
        pending.starts_with("__Host-session_login_")
            && pending.contains("; Secure; SameSite=None; Partitioned"),
        "{pending}"
    );
    let callback = window.authorize(begun.json()["url"].as_str().unwrap()).await;
    let page = window.visit(&callback).await;
    assert_eq!((page.status, page.set_cookies().len()), (200, 0), "{page:?}");
    assert_eq!(page.header("cross-origin-opener-policy"), "unsafe-none");
    assert_eq!(page.header("x-frame-options"), "DENY");
    assert_eq!(page.header("referrer-policy"), "no-referrer");

    let response = format!("response={}", attribute(&page, "data-sealed"));
    let finished = frame.post(FINISH, &OWN_FORM, &response).await;
    assert_eq!(
        (finished.status, finished.location()),
        (303, "https://app.example/account/a?b=c"),
        "{finished:?}"
    );
    let session = finished.set_cookie("__Host-session").unwrap();
    assert!(
        session.contains("; Secure; SameSite=None; Partitioned"),
        "{session}"
    );
    assert_eq!(frame.get_with("/account/a?b=c", &FRAMED).await.status, 200);
    assert!(is_signed_in(&mut frame).await);
    assert!(!is_signed_in(&mut window).await, "the window gets no session");
    let mut elsewhere = gateway.stack.browser();
    assert!(!is_signed_in(&mut elsewhere).await, "another portal has none");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_works_once() {
    let gateway = start().await;
    let (mut frame, mut window) = (gateway.stack.browser(), gateway.stack.browser());
    let response = until_hand_over(&mut frame, &mut window).await;
    let mut copy = frame.clone();
    assert_eq!(frame.post(FINISH, &OWN_FORM, &response).await.status, 303);
    let again = copy.post(FINISH, &OWN_FORM, &response).await;
    assert_eq!(again.status, 400, "{again:?}");
    assert!(!is_signed_in(&mut copy).await);
    assert_eq!(gateway.stack.counter("sign_in_refusals_total", "already_used"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_response_is_worth_nothing() {
    let gateway = start().await;
    let (mut frame, mut window) = (gateway.stack.browser(), gateway.stack.browser());
    let response = until_hand_over(&mut frame, &mut window).await;
    let mut thief = gateway.stack.browser();
    assert_eq!(thief.post(FINISH, &OWN_FORM, &response).await.status, 400);
    // The thief has a pending sign-in too, but not that of the response.
    until_callback(&mut thief).await;
    assert_eq!(thief.post(FINISH, &OWN_FORM, &response).await.status, 400);
    assert!(!is_signed_in(&mut thief).await);
    assert_eq!(
        gateway
            .stack
            .counter("sign_in_refusals_total", "unknown_transaction"),
        2
    );
    let forged = [format!("{response}A"), "response=".to_owned(), String::new()];
    for form in forged {
        assert_eq!(frame.post(FINISH, &OWN_FORM, &form).await.status, 400, "{form}");
    }
    assert_eq!(
        frame.post(FINISH, &OWN_FORM, &response).await.status,
        303,
        "the frame's sign-in stays"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_expires_after_a_minute() {
    let gateway = start().await;
    let (mut frame, mut window) = (gateway.stack.browser(), gateway.stack.browser());
    let response = until_hand_over(&mut frame, &mut window).await;
    gateway.stack.advance(60);
    let late = frame.post(FINISH, &OWN_FORM, &response).await;
    assert_eq!(late.status, 400, "{late:?}");
    assert!(!is_signed_in(&mut frame).await);
    assert_eq!(
        gateway
            .stack
            .counter("sign_in_refusals_total", "expired_transaction"),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_of_the_embedding_site_acts_with_the_session_of_its_frame() {
    let gateway = start().await;
    let (mut frame, mut window) = (gateway.stack.browser(), gateway.stack.browser());
    let page = frame.get_with("/account/a", &FRAMED).await;
    let login = attribute(&page, "data-login").to_owned();
    assert_eq!(frame.post(&login, &OF_PORTAL, "").await.status, 403);
    assert_eq!(
        frame.post(&login, &OWN_FORM, "").await.status,
        403,
        "a form has no x-csrf"
    );
    let response = until_hand_over(&mut frame, &mut window).await;
    assert_eq!(frame.post(FINISH, &OF_PORTAL, &response).await.status, 403);
    assert_eq!(
        frame.post(FINISH, &[], &response).await.status,
        403,
        "no origin is no proof"
    );
    assert_eq!(frame.post(FINISH, &OWN_FORM, &response).await.status, 303);
    for path in ["/account/a", "/api/orders", "/api/auth/logout"] {
        assert_eq!(frame.post(path, &OF_PORTAL, "a=b").await.status, 403, "{path}");
    }
    let sign_out = frame.get_with("/api/auth/logout", &FRAMED).await;
    assert_eq!(sign_out.status, 403, "{sign_out:?}");
    assert!(is_signed_in(&mut frame).await);
    assert_eq!(frame.post("/api/orders", &OWN_SCRIPT, "a=b").await.status, 200);
    assert!(frame.post("/api/auth/logout", &OWN_SCRIPT, "").await.status < 400);
    assert!(!is_signed_in(&mut frame).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_sign_in_is_explained_in_the_frame_with_the_way_back() {
    let gateway = start().await;
    let (mut frame, mut window) = (gateway.stack.browser(), gateway.stack.browser());
    let callback = until_callback(&mut frame)
        .await
        .replace("code=", "error=access_denied&no=");
    let page = window.visit(&callback).await;
    let response = format!("response={}", attribute(&page, "data-sealed"));
    let failed = frame.post(FINISH, &OWN_FORM, &response).await;
    assert_eq!(failed.status, 400, "{failed:?}");
    assert!(
        failed.body.contains("href=\"https://app.example/account/a?b=c\""),
        "{}",
        failed.body
    );
    let policy = failed.header("content-security-policy");
    assert!(
        policy.contains("frame-ancestors 'self' https://portal.example;"),
        "{policy}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_can_still_sign_in_in_a_whole_window() {
    let gateway = start().await;
    let mut window = gateway.stack.browser();
    let landed = window.sign_in().await;
    let session = landed.set_cookie("__Host-session").unwrap();
    assert!(
        session.contains("; Secure; SameSite=None; Partitioned"),
        "{session}"
    );
    assert!(is_signed_in(&mut window).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_there_is_no_sign_in_in_a_frame() {
    let gateway = Gateway::start("", &[("EDGE_BASE_URL", BASE)]).await;
    let mut frame = gateway.stack.browser();
    for path in ["/api/auth/frame/login?returnTo=/", FINISH] {
        assert_eq!(frame.post(path, &OWN_SCRIPT, "").await.status, 404, "{path}");
    }
    let page = frame.get_with("/account/a", &FRAMED).await;
    assert!(!page.body.contains("<script"), "{}", page.body);
}
