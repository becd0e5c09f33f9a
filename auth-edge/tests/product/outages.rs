//! A backend outage signs no user out.

use crate::support::Stack;

#[tokio::test]
async fn while_the_session_service_is_down_answers_are_503_and_no_cookie_changes() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let callback = browser.until_callback("/api/auth/login").await;
    stack.sessions.stop().await;
    for path in ["/api/auth/me", "/api/auth/status"] {
        let answer = browser.get(path).await;
        assert_eq!((answer.status, answer.set_cookies().len()), (503, 0), "{path}");
        assert!(!answer.header("retry-after").is_empty());
        assert_eq!(answer.json()["error"], "ERR_SESSION_SERVICE_UNAVAILABLE");
    }
    let answer = browser.visit(&callback).await;
    assert_eq!(
        (answer.status, answer.set_cookies().len()),
        (503, 0),
        "{answer:?}"
    );
    assert!(answer.body.contains("Try again"));
    stack.sessions.start_again().await;
    assert_eq!(
        browser.get("/api/auth/me").await.status,
        200,
        "the same cookie is good again"
    );
}

#[tokio::test]
async fn signing_out_while_the_session_service_is_down_ends_the_session_later() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let mut thief = browser.clone();
    stack.sessions.stop().await;
    let answer = browser.visit("/api/auth/logout").await;
    assert_eq!(answer.status, 503);
    assert!(answer.set_cookie("session").unwrap().contains("Max-Age=0"));
    assert!(answer.body.contains("signed out") && answer.body.contains("as soon as the service is back"));
    stack.sessions.start_again().await;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while thief.get("/api/auth/me").await.status != 204 {
        assert!(
            std::time::Instant::now() < deadline,
            "the session was never ended"
        );
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

// conformance: B-097
#[tokio::test]
async fn the_provider_being_down_does_not_touch_signed_in_people() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    stack.provider.stop();
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
    let answer = browser.visit("/api/auth/logout").await;
    assert_eq!(answer.status, 302);
    assert_eq!(browser.get("/api/auth/me").await.status, 204);
}
