//! `EDGE_COOKIE_SAME_SITE=strict`: a browser omits the session cookie from requests that another site's page
//! causes, and so from the redirect back from the provider.

use crate::support::{Browser, Stack};

const FROM_ANOTHER_SITE: [(&str, &str); 4] = [
    ("accept", "text/html"),
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
];

async fn strict() -> Stack {
    Stack::with(&[("EDGE_COOKIE_SAME_SITE", "strict")]).await
}

/// The browser's state on a request that another site's page causes.
fn without_session(browser: &Browser) -> Browser {
    let mut other = browser.clone();
    other.jar.remove("session");
    other
}

#[tokio::test]
async fn the_callback_is_a_page_that_goes_on_by_itself() {
    let stack = strict().await;
    let mut browser = stack.browser();
    let callback = browser
        .until_callback("/api/auth/login?returnTo=/a%3Fb%3D%22c%22")
        .await;
    let page = browser.get_with(&callback, &FROM_ANOTHER_SITE).await;
    assert_eq!((page.status, page.location()), (200, ""), "{page:?}");
    let target = format!("{}/a?b=%22c%22", stack.base());
    assert_eq!(page.header("refresh"), format!("0; url={target}"));
    assert!(page.body.contains(&format!("href=\"{target}\"")), "{page:?}");
    assert_eq!(page.header("cache-control"), "no-store");
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    let cookie = page.set_cookie("session").unwrap();
    assert!(cookie.contains("SameSite=Strict"), "{cookie}");
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
}

#[tokio::test]
async fn a_sign_in_caused_by_another_site_gets_the_cookie_and_replaces_the_session() {
    let stack = strict().await;
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login").await;
    assert_eq!(browser.visit(&callback).await.status, 200);
    let mut before = browser.clone();

    let login = "/api/auth/login?returnTo=/a&login_hint=ada";
    let page = without_session(&browser)
        .get_with(login, &FROM_ANOTHER_SITE)
        .await;
    assert_eq!((page.status, page.set_cookies().len()), (200, 0), "{page:?}");
    let again = page.header("refresh").strip_prefix("0; url=").unwrap().to_owned();
    assert_eq!(again, format!("{}{login}", stack.base()));

    let callback = browser.until_callback(&again).await;
    let mut returning = without_session(&browser);
    assert_eq!(
        returning.get_with(&callback, &FROM_ANOTHER_SITE).await.status,
        200
    );
    assert_eq!(returning.get("/api/auth/me").await.status, 200);
    assert_eq!(
        before.get("/api/auth/me").await.status,
        204,
        "the session before is over"
    );
}

#[tokio::test]
async fn another_site_cannot_take_the_cookie_away_by_a_sign_out_that_does_not_see_it() {
    let stack = strict().await;
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login").await;
    browser.visit(&callback).await;
    let answer = without_session(&browser)
        .get_with("/api/auth/logout", &FROM_ANOTHER_SITE)
        .await;
    assert_eq!(
        (answer.status, answer.set_cookies().len()),
        (303, 0),
        "{answer:?}"
    );
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
}
