//! Which provider a login uses.

use std::io::Write as _;

use scripted_provider::Endpoint;
use tempfile::NamedTempFile;

use super::{Two, parameter};

const RULES: &str = r#"
[[route]]
path = "/fresh/*"
guard = "page"
upstream = "dir:."
max_age = 60
[[route]]
path = "/demands/*"
guard = "page"
upstream = "dir:."
sign_in = { connection = "b" }
[[route]]
path = "/only-b/*"
guard = "page"
upstream = "dir:."
connection = "b"
"#;

async fn with_routes() -> (Two, NamedTempFile) {
    let mut routes = NamedTempFile::new().unwrap();
    write!(routes, "{RULES}").unwrap();
    let path = routes.path().to_str().unwrap().to_owned();
    let two = Two::with("", "", &[("EDGE_ROUTES", &path)]).await;
    (two, routes)
}

#[tokio::test]
async fn a_login_leads_to_the_provider_named_or_of_the_route_or_the_default() {
    let (two, _routes) = with_routes().await;
    let mut browser = two.stack.browser();
    let issuer_b = two.b.issuer().to_owned();
    for (login, id) in [
        ("", "a"),
        ("?returnTo=/elsewhere", "a"),
        ("?returnTo=/demands/../elsewhere", "a"),
        ("?returnTo=/%64emands/it", "b"),
        ("?connection=b", "b"),
        ("?connection=a&returnTo=/elsewhere", "a"),
        ("?connection=b&connection=a", "b"),
        ("?returnTo=/demands/it", "b"),
        ("?connection=a&returnTo=/demands/it", "b"),
        ("?connection=a&returnTo=/only-b/it", "b"),
        (&format!("?iss={issuer_b}"), "b"),
        (&format!("?iss={issuer_b}&connection=b"), "b"),
    ] {
        let (sent_to, location) = two
            .sent_to(&mut browser, &format!("/api/auth/login{login}"))
            .await;
        assert_eq!(sent_to, id, "{login}");
        let callback = format!("{}/api/auth/callback/{id}", two.stack.base());
        assert_eq!(parameter(&location, "redirect_uri"), Some(callback));
        assert_eq!(parameter(&location, "connection"), None, "it is ours alone");
    }
}

#[tokio::test]
async fn a_connection_nobody_knows_is_refused_in_plain_words() {
    let two = Two::start().await;
    let mut browser = two.stack.browser();
    let issuer = two.b.issuer().to_owned();
    for query in [
        "connection=nobody".to_owned(),
        "connection=A".to_owned(),
        "connection=".to_owned(),
        "iss=https://evil.example".to_owned(),
        format!("iss={issuer}/"),
    ] {
        let answer = browser
            .get_with(&format!("/api/auth/login?{query}"), &[("accept", "text/html")])
            .await;
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
        assert!(answer.set_cookies().is_empty(), "{query}");
    }
    let answer = browser.get("/api/auth/login?connection=nobody").await;
    let words = answer.json()["error_description"].as_str().unwrap().to_owned();
    assert!(words.starts_with("This connection does not exist."), "{words}");
    for path in [
        "/api/auth/callback",
        "/api/auth/callback/nobody",
        "/api/auth/callback/a/b",
    ] {
        assert_eq!(browser.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn trying_again_and_signing_in_anew_lead_to_the_same_provider() {
    let (two, _routes) = with_routes().await;
    let mut browser = two.signed_in("b").await;
    two.stack.advance(120);
    let step_up = browser.visit("/fresh/page").await;
    assert!(step_up.location().contains("connection=b"), "{step_up:?}");
    let (sent_to, location) = two.sent_to(&mut browser, step_up.location()).await;
    assert_eq!(
        (sent_to, parameter(&location, "max_age").as_deref()),
        ("b", Some("60"))
    );

    two.b
        .script(|script| script.authorize_error = Some("access_denied".to_owned()));
    let callback = browser.until_callback("/api/auth/login?connection=b").await;
    let refused = browser.get(&callback).await;
    let again = refused.json()["login_url"].as_str().unwrap().to_owned();
    assert!(again.ends_with("?connection=b"), "{again}");

    let script = [("sec-fetch-mode", "cors"), ("accept", "application/json")];
    let script = browser
        .get_with("/api/auth/login?connection=b&returnTo=/x", &script)
        .await;
    let login_url = script.json()["login_url"].as_str().unwrap().to_owned();
    assert!(login_url.ends_with("%2Fx&connection=b"), "{login_url}");
}

#[tokio::test]
async fn a_route_for_people_of_one_provider_lets_nobody_else_pass() {
    let (two, _routes) = with_routes().await;
    let mut of_a = two.signed_in("a").await;
    two.stack.advance(60);
    let answer = of_a.visit("/only-b/page").await;
    assert_eq!(answer.status, 307, "{answer:?}");
    assert_eq!(two.sent_to(&mut of_a, answer.location()).await.0, "b");
    let mut of_b = two.signed_in("b").await;
    // The folder has no such file: the guard let the request pass.
    assert_eq!(of_b.visit("/only-b/page").await.status, 404);
    let mut again = two.signed_in("a").await;
    let at_once = again.visit("/only-b/page").await;
    assert_eq!(at_once.status, 307, "however young: nobody was asked for b yet");
    assert_eq!(two.sent_to(&mut again, at_once.location()).await.0, "b");
}

#[tokio::test]
async fn a_silent_sign_in_that_found_nobody_at_one_provider_may_be_tried_at_the_other() {
    let two = Two::start().await;
    let mut browser = two.stack.browser();
    two.a()
        .script(|script| script.authorize_error = Some("login_required".to_owned()));
    let callback = browser
        .until_callback("/api/auth/login?connection=a&prompt=none")
        .await;
    assert_eq!(browser.visit(&callback).await.status, 302);
    let again = browser.visit("/api/auth/login?connection=a&prompt=none").await;
    assert_eq!(
        again.location(),
        format!("{}/", two.stack.base()),
        "not in circles"
    );
    let (sent_to, _) = two
        .sent_to(&mut browser, "/api/auth/login?connection=b&prompt=none")
        .await;
    assert_eq!(sent_to, "b");
}

#[tokio::test]
async fn a_provider_that_is_down_does_no_harm_to_the_other() {
    let two = Two::start().await;
    let mut of_a = two.signed_in("a").await;
    two.a().stop();
    let mut of_b = two.signed_in("b").await;
    for browser in [&mut of_a, &mut of_b] {
        assert_eq!(browser.get("/api/auth/me").await.status, 200);
    }
    assert_eq!(of_b.get("/api/auth/me?refetch=true").await.status, 200);
    let calls = two.b.calls(Endpoint::Userinfo);
    assert!(of_a.get("/api/auth/me?refetch=true").await.status >= 500);
    assert_eq!(
        two.b.calls(Endpoint::Userinfo),
        calls,
        "no token of a is shown to b"
    );
    two.a().start_again();
    assert_eq!(of_a.get("/api/auth/me?refetch=true").await.status, 200);
}

#[tokio::test]
async fn ten_restored_tabs_of_two_providers_end_on_their_own_pages() {
    let two = Two::start().await;
    let mut browser = two.stack.browser();
    let page = |tab: usize| format!("/tab/{tab}?q={}", "a".repeat(400));
    let mut callbacks = Vec::new();
    for tab in 0..10 {
        two.stack.clock.advance_ms(1);
        let id = ["a", "b"][tab % 2];
        let to: String = url::form_urlencoded::byte_serialize(page(tab).as_bytes()).collect();
        let login = format!("/api/auth/login?connection={id}&returnTo={to}");
        callbacks.push(browser.until_callback(&login).await);
    }
    for (tab, callback) in callbacks.iter().enumerate() {
        let answer = browser.visit(callback).await;
        let wanted = format!("{}{}", two.stack.base(), page(tab));
        assert_eq!((answer.status, answer.location()), (302, &*wanted), "{tab}");
    }
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
}
