//! Clients other than a plain browser window: service workers, Office, frames; and unknown paths.

use crate::gateway::Gateway;
use crate::support::{NAVIGATION, Stack};

const HTML: (&str, &str) = ("accept", "text/html");

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_in_through_a_service_worker_from_the_guarded_page_on() {
    let gateway = Gateway::start("", &[]).await;
    for site in ["same-origin", "cross-site", "none"] {
        for dest in [Some("empty"), None] {
            let mut headers = vec![HTML, ("sec-fetch-mode", "navigate"), ("sec-fetch-site", site)];
            headers.extend(dest.map(|dest| ("sec-fetch-dest", dest)));
            let mut browser = gateway.stack.browser();
            let guarded = browser.get_with("/account/a?b=c", &headers).await;
            assert_eq!(guarded.status, 307, "{headers:?}");
            let login = browser.get_with(guarded.location(), &headers).await;
            assert_eq!(login.status, 302, "{headers:?}");
            let callback = browser.authorize(login.location()).await;
            let landed = browser.get_with(&callback, &headers).await;
            assert!(
                landed.location().ends_with("/account/a?b=c"),
                "{headers:?}: {landed:?}"
            );
            let out = browser.get_with("/api/auth/logout", &headers).await;
            let asks = site == "cross-site";
            assert_eq!(out.status, if asks { 200 } else { 302 }, "{headers:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn office_and_previews_get_a_page_that_opens_the_same_address_again() {
    let gateway = Gateway::start("", &[]).await;
    let base = gateway.stack.base().to_owned();
    let office = ("user-agent", "Mozilla/4.0 (compatible; ms-office; MSOffice 16)");
    let header = ("x-office-major-version", "16");
    let teams = ("user-agent", "Mozilla/5.0 SkypeUriPreview Preview/0.5");
    for client in [office, header, teams] {
        for path in ["/account/document?id=7", "/api/auth/login?returnTo=%2Faccount"] {
            let answer = gateway.stack.browser().get_with(path, &[client]).await;
            assert_eq!((answer.status, answer.location()), (200, ""), "{client:?} {path}");
            assert_eq!(answer.header("refresh"), format!("1; url={base}{path}"));
            assert_eq!(answer.header("cache-control"), "no-store");
            assert!(answer.set_cookies().is_empty());
        }
        let forward_auth = gateway
            .stack
            .browser()
            .get_with("/api/auth/check?redirect=1", &[client])
            .await;
        assert_ne!(forward_auth.status, 200, "200 would let it pass");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guarded_page_in_a_frame_has_one_link_to_sign_in_in_the_whole_window() {
    let gateway = Gateway::start("", &[]).await;
    let base = gateway.stack.base().to_owned();
    let outer = format!("{base}/public/page");
    for dest in ["iframe", "frame", "object", "embed"] {
        let framed = [HTML, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", dest)];
        let mut browser = gateway.stack.browser();
        let answer = browser.get_with("/account/a", &framed).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (401, "text/html; charset=utf-8")
        );
        assert_eq!(answer.body.matches("<a ").count(), 1, "{}", answer.body);
        let link = "href=\"/api/auth/login?returnTo=%2Faccount%2Fa\" target=\"_top\"";
        assert!(answer.body.contains(link), "{}", answer.body);
        let policy = answer.header("content-security-policy");
        assert!(policy.contains("frame-ancestors 'self'"), "{policy}");
        assert_eq!(answer.header("x-frame-options"), "");
        let from_page = [framed[0], framed[1], framed[2], ("referer", &*outer)];
        let answer = browser.get_with("/account/a", &from_page).await;
        assert!(
            answer.body.contains("%2Fpublic%2Fpage"),
            "back to the page: {}",
            answer.body
        );
        let foreign = [
            framed[0],
            framed[1],
            framed[2],
            ("referer", "https://evil.example/"),
        ];
        let answer = browser.get_with("/account/a", &foreign).await;
        assert!(answer.body.contains("returnTo=%2Faccount%2Fa"), "{}", answer.body);
        let program = browser.get_with("/account/a", &framed[1..]).await;
        assert_eq!(program.json()["error"], "not_authenticated");
    }
}

#[tokio::test]
async fn no_return_address_leads_to_a_route_of_the_edge() {
    let stack = Stack::with(&[("EDGE_COOKIE_SAME_SITE", "strict"), ("EDGE_LOGIN_PATH", "/enter")]).await;
    for own in [
        "/api/auth/logout",
        "/API/auth/logout",
        "/api/auth/callback%3Fcode%3Dx",
        "/enter",
        "/api/auth/%2564evice",
    ] {
        let mut browser = stack.browser();
        let callback = browser.until_callback(&format!("/enter?returnTo={own}")).await;
        let landed = browser.visit(&callback).await;
        assert_eq!(
            landed.header("refresh"),
            format!("0; url={}/", stack.base()),
            "{own}"
        );
        let out = browser.visit("/api/auth/logout?returnTo=/api/auth/me").await;
        assert!(
            !out.location().contains("%2Fme") && !out.location().ends_with("/me"),
            "{out:?}"
        );
    }
    let mut browser = stack.browser();
    let callback = browser
        .until_callback("/enter?returnTo=/api/auth/form%3Ffor%3D%252Forders")
        .await;
    let landed = browser.visit(&callback).await;
    assert!(
        landed.header("refresh").ends_with("/api/auth/form?for=%2Forders"),
        "{landed:?}"
    );
}

#[tokio::test]
async fn of_a_third_partys_login_nothing_else_is_read() {
    let stack = Stack::start().await;
    let issuer: String = url::form_urlencoded::byte_serialize(stack.provider.issuer().as_bytes()).collect();
    let more = "prompt=none&acr_values=gold&max_age=0&organization=org_x&screen_hint=signup&ui_locales=de&returnTo=/mine";
    let mut browser = stack.browser();
    let login = format!("/api/auth/login?iss={issuer}&login_hint=ada&target_link_uri=%2Fdeep&{more}");
    let started = browser.visit(&login).await.location().to_owned();
    assert!(started.contains("login_hint=ada"), "{started}");
    for name in [
        "prompt",
        "acr_values",
        "max_age",
        "organization",
        "screen_hint",
        "ui_locales",
    ] {
        assert!(!started.contains(&format!("{name}=")), "{name}: {started}");
    }
    let callback = browser.authorize(&started).await;
    assert_eq!(
        browser.visit(&callback).await.location(),
        format!("{}/deep", stack.base())
    );
    // Our own login links keep their parameters.
    let own = browser.visit("/api/auth/login?max_age=60&acr_values=gold").await;
    assert!(own.location().contains("max_age=60") && own.location().contains("acr_values=gold"));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_missing_scope_an_expired_token_and_a_cancelled_sign_in_say_what_to_press() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.signed_in().await;
    let answer = browser.visit("/scope/a").await;
    assert_eq!(answer.status, 403);
    assert!(
        answer.body.contains("/api/auth/login?returnTo=%2Fscope%2Fa"),
        "{}",
        answer.body
    );
    assert!(answer.body.contains(">Sign in</a>"), "{}", answer.body);
    gateway.stack.advance(3_590);
    let expired = browser.visit("/token/a").await;
    assert_eq!(expired.status, 401);
    assert!(
        expired.body.contains("access token has expired")
            && expired.body.contains("/api/auth/login?returnTo=%2Ftoken%2Fa")
            && expired.body.contains(">Sign in</a>"),
        "{}",
        expired.body
    );
    gateway
        .stack
        .provider
        .script(|script| script.authorize_error = Some("access_denied".to_owned()));
    let mut browser = gateway.stack.browser();
    let callback = browser.until_callback("/api/auth/login").await;
    let page = browser
        .send(reqwest::Method::GET, &callback, &NAVIGATION, None)
        .await;
    assert!(page.body.contains("<h1>Sign-in cancelled</h1>"), "{}", page.body);
    assert!(
        page.body.contains("href=\"/\">Go to the start page</a>"),
        "{}",
        page.body
    );
}
