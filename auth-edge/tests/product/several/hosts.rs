//! Hosts assigned to a provider.

use super::{Two, parameter};
use crate::support::Browser;

const BASE: (&str, &str) = ("EDGE_BASE_URL", "http://app.localhost");
const HOSTS_A: &str = "hosts = [\"a.localhost\"]";
const HOSTS_B: &str = "hosts = [\"b.localhost\", \"b-too.localhost\"]";

fn at(two: &Two, host: &str) -> Browser {
    Browser::new(two.stack.address(), &format!("http://{host}"))
}

async fn signed_in(browser: &mut Browser) {
    let callback = browser.until_callback("/api/auth/login").await;
    assert_eq!(browser.visit(&callback).await.status, 302);
}

#[tokio::test]
async fn a_host_signs_people_in_at_its_own_provider_and_brings_them_back_to_itself() {
    let two = Two::with(HOSTS_A, HOSTS_B, &[BASE]).await;
    let mut browser = at(&two, "b.localhost");
    let login = "/api/auth/login?returnTo=/orders";
    let (sent_to, location) = two.sent_to(&mut browser, login).await;
    let callback = "http://b.localhost/api/auth/callback/b";
    assert_eq!(
        (sent_to, parameter(&location, "redirect_uri").as_deref()),
        ("b", Some(callback))
    );
    let back = browser.authorize(location.as_str()).await;
    let answer = browser.visit(&back).await;
    assert_eq!(
        (answer.status, answer.location()),
        (302, "http://b.localhost/orders")
    );
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
    let answer = browser.visit("/api/auth/logout").await;
    let location = url::Url::parse(answer.location()).unwrap();
    assert!(location.as_str().starts_with(two.b.issuer()), "{location}");
    let back = parameter(&location, "post_logout_redirect_uri").unwrap();
    assert!(back.starts_with("http://b.localhost/"), "{back}");
}

#[tokio::test]
async fn nobody_signs_in_at_a_host_by_another_provider() {
    let two = Two::with(HOSTS_A, HOSTS_B, &[BASE]).await;
    let mut browser = at(&two, "b.localhost");
    for query in ["connection=a".to_owned(), format!("iss={}", two.a().issuer())] {
        let answer = browser.get(&format!("/api/auth/login?{query}")).await;
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
    }
    let mut elsewhere = at(&two, "app.localhost");
    for id in ["a", "b"] {
        let login = format!("/api/auth/login?connection={id}");
        assert_eq!(two.sent_to(&mut elsewhere, &login).await.0, id);
    }
    // A sign-in begun at the base URL cannot end at a host, even if its cookies are copied there.
    let callback = elsewhere.until_callback("/api/auth/login?connection=a").await;
    browser.jar = elsewhere.jar.clone();
    let path = callback.strip_prefix("http://app.localhost").unwrap();
    assert_eq!(browser.visit(path).await.status, 400);
    assert_eq!(two.token_calls(), (0, 0));
}

#[tokio::test]
async fn a_session_counts_at_the_hosts_of_its_provider_and_nowhere_else() {
    let two = Two::with(HOSTS_A, HOSTS_B, &[BASE]).await;
    let mut browser = at(&two, "b.localhost");
    signed_in(&mut browser).await;
    for (host, status) in [
        ("b.localhost", 200),
        ("B.LOCALHOST:80", 200),
        ("b-too.localhost", 200),
        ("a.localhost", 204),
        ("app.localhost", 204),
        ("unknown.localhost", 204),
    ] {
        let mut elsewhere = at(&two, host);
        elsewhere.jar = browser.jar.clone();
        assert_eq!(elsewhere.get("/api/auth/me").await.status, status, "{host}");
    }
    let mut main = at(&two, "app.localhost");
    signed_in(&mut main).await;
    let mut of_a = at(&two, "a.localhost");
    of_a.jar = main.jar.clone();
    assert_eq!(of_a.get("/api/auth/me").await.status, 204, "made at the base URL");
}

#[tokio::test]
async fn only_a_trusted_proxy_may_say_which_host_was_asked_for() {
    let forwarded = [("x-forwarded-host", "b.localhost")];
    for (proxies, sent_to) in [("", "a"), ("127.0.0.1", "b")] {
        let proxies = ("EDGE_TRUSTED_PROXIES", proxies);
        let two = Two::with("", HOSTS_B, &[BASE, proxies]).await;
        let answer = at(&two, "app.localhost")
            .get_with("/api/auth/login", &forwarded)
            .await;
        let issuer = if sent_to == "a" {
            two.a().issuer()
        } else {
            two.b.issuer()
        };
        assert!(answer.location().starts_with(issuer), "{proxies:?}: {answer:?}");
    }
    let two = Two::with("", HOSTS_B, &[BASE, ("EDGE_TRUSTED_PROXIES", "127.0.0.1")]).await;
    let twice = [forwarded[0], ("x-forwarded-host", "app.localhost")];
    let answer = at(&two, "app.localhost")
        .get_with("/api/auth/login", &twice)
        .await;
    assert!(
        answer.location().starts_with(two.a().issuer()),
        "forwarded twice is not forwarded: {answer:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_that_a_check_is_about_decides_whose_sessions_count() {
    use crate::ext_authz::{Envoy, denied, passed};
    let two = Two::with(
        HOSTS_A,
        HOSTS_B,
        &[BASE, ("EDGE_TRUSTED_PROXIES", "127.0.0.1, 192.0.2.7")],
    )
    .await;
    let mut browser = at(&two, "b.localhost");
    signed_in(&mut browser).await;
    let cookie = format!("session={}", browser.jar["session"]);
    let mut envoy = Envoy::before_edge(&two.stack.edge).await;
    for lie in ["b.localhost", "a.localhost"] {
        let sent = [
            ("cookie", cookie.as_str()),
            ("x-forwarded-host", lie),
            ("host", lie),
        ];
        passed(envoy.ask_about("b.localhost", "192.0.2.7", &sent, &[]).await);
        let (_, refused) = denied(envoy.ask_about("a.localhost", "192.0.2.7", &sent, &[]).await);
        assert_eq!(refused.status.unwrap().code, 401, "{lie}");
    }
    // ingress-nginx sends the address as X-Original-URL and forwards a client's X-Forwarded-Host.
    let mut proxy = at(&two, "edge.internal");
    proxy.jar = browser.jar.clone();
    for (host, lie, status) in [("b", "a", 200), ("a", "b", 401), ("a", "a", 401)] {
        let url = format!("http://{host}.localhost/x");
        let lie = format!("{lie}.localhost");
        let about = [
            ("x-original-url", url.as_str()),
            ("x-forwarded-host", lie.as_str()),
        ];
        let answer = proxy.get_with("/api/auth/check", &about).await;
        assert_eq!(answer.status, status, "{url} {lie}");
    }
}
