//! Routes, and whole edges, that require a bound session.

use super::device::Device;
use super::{GRACE_MS, HTTPS, bound, is_signed_in};
use crate::gateway::Gateway;
use crate::support::{NAVIGATION, Stack};

const RULES: &str = "[[route]]\npath = \"/vault/*\"\nguard = \"page\"\nupstream = \"{upstream}\"\ndevice_bound = true\n\
    [[route]]\npath = \"/vault-api/*\"\nguard = \"api\"\nupstream = \"{upstream}\"\ndevice_bound = true\n";

#[tokio::test]
async fn upstreams_are_told_of_a_bound_session_and_get_no_cookie_of_it() {
    let gateway = Gateway::start(RULES, &[HTTPS]).await;
    let (mut browser, _device) = bound(&gateway.stack).await;
    let told = ("x-auth-device", "bound, says the client");
    for path in ["/vault/", "/vault-api/", "/api/orders"] {
        assert_eq!(browser.get_with(path, &[told]).await.status, 200, "{path}");
        let seen = gateway.upstream.requests().pop().unwrap();
        assert_eq!(seen.all("x-auth-device"), ["bound"], "{path}");
        assert!(seen.all("cookie").is_empty(), "{seen:?}");
    }
    let mut unbound = gateway.stack.browser();
    unbound.sign_in().await;
    assert_eq!(unbound.get_with("/api/orders", &[told]).await.status, 200);
    assert!(
        gateway
            .upstream
            .requests()
            .pop()
            .unwrap()
            .all("x-auth-device")
            .is_empty()
    );
}

#[tokio::test]
async fn a_route_that_demands_it_waits_for_the_binding_and_says_why_it_lets_nobody_else_in() {
    let gateway = Gateway::start(RULES, &[HTTPS]).await;
    let mut browser = gateway.stack.browser();
    let callback = browser.sign_in().await;
    let offer = callback.header("secure-session-registration").to_owned();
    let sent = browser.get_with("/vault/a?b=c", &NAVIGATION).await;
    let page = "/api/auth/device?returnTo=%2Fvault%2Fa%3Fb%3Dc";
    assert_eq!((sent.status, sent.location()), (307, page), "{sent:?}");
    let waiting = browser.get_with(page, &NAVIGATION).await;
    assert_eq!(waiting.status, 200, "{waiting:?}");
    let again = waiting
        .header("refresh")
        .strip_prefix("1; url=")
        .unwrap()
        .to_owned();
    assert!(
        waiting.body.contains("is binding this sign-in to your device"),
        "{waiting:?}"
    );

    let mut unable = browser.clone();
    Device::new().register(&mut browser, &offer).await;
    let on = browser.get_with(&again, &NAVIGATION).await;
    let target = format!("{}/vault/a?b=c", gateway.stack.base());
    assert_eq!((on.status, on.location()), (302, target.as_str()));
    assert_eq!(browser.get_with("/vault/a?b=c", &NAVIGATION).await.status, 200);

    gateway.stack.clock.advance_ms(GRACE_MS);
    unable.sign_in().await;
    gateway.stack.clock.advance_ms(10_000);
    let refused = unable.get_with(page, &NAVIGATION).await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.body.contains("not bound to your device") && refused.body.contains("Sign in again"),
        "{refused:?}"
    );
    assert!(refused.body.contains("/api/auth/login?returnTo="), "{refused:?}");
    let script = unable.get("/vault-api/").await;
    assert_eq!(
        (script.status, script.json()["error"].as_str()),
        (403, Some("device_not_bound"))
    );
    assert_eq!(
        unable.get("/api/orders").await.status,
        200,
        "other routes are as ever"
    );
    // A browser without a session is sent to sign in, and never to another site.
    let stranger = gateway.stack.browser().get_with(page, &NAVIGATION).await;
    assert!(
        stranger.location().contains("/api/auth/login?returnTo="),
        "{stranger:?}"
    );
    let elsewhere = browser
        .get_with("/api/auth/device?returnTo=https://evil.test/", &NAVIGATION)
        .await;
    assert_eq!(elsewhere.location(), format!("{}/", gateway.stack.base()));
}

#[tokio::test]
async fn where_it_is_required_a_session_cookie_alone_is_worth_nothing_from_the_first_moment() {
    let stack = Stack::with(&[HTTPS, ("EDGE_DEVICE_BOUND", "require")]).await;
    let mut browser = stack.browser();
    let callback = browser.until_callback("/api/auth/login?returnTo=/orders").await;
    let callback = browser.visit(&callback).await;
    let page = callback.location().to_owned();
    assert!(page.contains("/api/auth/device?returnTo="), "{callback:?}");
    assert!(!is_signed_in(&mut browser).await, "not bound yet");
    assert_eq!(browser.visit(&page).await.status, 200);

    let alone = browser.jar.clone();
    let offer = callback.header("secure-session-registration").to_owned();
    let device = Device::new();
    let registered = device.register(&mut browser, &offer).await;
    let device = device.named(&registered.json());
    assert!(is_signed_in(&mut browser).await);
    let on = browser.visit(&page).await;
    assert_eq!(
        (on.status, on.location()),
        (302, format!("{}/orders", stack.base()).as_str())
    );
    let mut thief = stack.browser();
    thief.jar = alone;
    assert!(!is_signed_in(&mut thief).await);
    assert_eq!(device.refresh(&mut browser).await.status, 200);

    let mut unable = stack.browser();
    let callback = unable.until_callback("/api/auth/login").await;
    let page = unable.visit(&callback).await.location().to_owned();
    stack.clock.advance_ms(10_000);
    let refused = unable
        .get_with(&page, &[NAVIGATION[0], ("accept-language", "de")])
        .await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.body.contains("nicht an Ihr Gerät gebunden"),
        "{refused:?}"
    );
    assert!(!is_signed_in(&mut unable).await);
    let out = unable.visit("/api/auth/logout").await;
    assert_eq!(out.status, 302, "{out:?}");
    assert!(unable.jar.is_empty(), "{:?}", unable.jar);
}
