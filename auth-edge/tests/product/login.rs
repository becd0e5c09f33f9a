//! The login route: its request to the provider, and the query parameters it reads.

use scripted_provider::Answer as Script;
use scripted_provider::Endpoint;
use serde_json::json;
use url::Url;

use crate::support::Stack;

fn param(url: &str, name: &str) -> Option<String> {
    let url = Url::parse(url).unwrap();
    url.query_pairs()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

// conformance: A-001 B-001 B-065
#[tokio::test]
async fn login_redirects_with_everything_the_protocol_needs_each_fresh() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let (first, second) = (
        browser.visit("/api/auth/login").await,
        browser.visit("/api/auth/login").await,
    );
    for answer in [&first, &second] {
        assert_eq!(answer.status, 302);
        assert_eq!(answer.header("cache-control"), "no-store");
        let url = answer.location();
        assert!(url.starts_with(&stack.provider.url(Endpoint::Authorize)), "{url}");
        assert_eq!(
            param(url, "client_id").as_deref(),
            Some(scripted_provider::CLIENT_ID)
        );
        assert_eq!(param(url, "response_type").as_deref(), Some("code"));
        assert_eq!(
            param(url, "redirect_uri"),
            Some(format!("{}/api/auth/callback", stack.base()))
        );
        assert_eq!(param(url, "scope").as_deref(), Some("openid profile email"));
        assert_eq!(param(url, "code_challenge_method").as_deref(), Some("S256"));
        assert!(param(url, "state").unwrap().len() >= 22 && param(url, "nonce").unwrap().len() >= 22);
        assert_eq!(param(url, "code_challenge").unwrap().len(), 43);
    }
    for name in ["state", "nonce", "code_challenge"] {
        assert_ne!(
            param(first.location(), name),
            param(second.location(), name),
            "{name}"
        );
    }
    assert_eq!(browser.jar.len(), 2, "one transaction cookie per pending sign-in");
}

// conformance: B-001
#[tokio::test]
async fn query_parameters_outside_the_list_change_nothing() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let hostile = "/api/auth/login?client_id=evil&redirect_uri=https://evil.example&state=s&nonce=n&scope=x&login_hint=ada&login_hint=eve&code_challenge=x";
    let url = browser.visit(hostile).await.location().to_owned();
    assert_eq!(
        param(&url, "client_id").as_deref(),
        Some(scripted_provider::CLIENT_ID)
    );
    assert_eq!(param(&url, "scope").as_deref(), Some("openid profile email"));
    assert_ne!(param(&url, "state").as_deref(), Some("s"));
    assert_eq!(
        param(&url, "login_hint").as_deref(),
        Some("ada"),
        "the first of repeated parameters wins"
    );
    assert!(!url.contains("evil"), "{url}");
}

#[tokio::test]
async fn who_only_looks_ahead_starts_nothing() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    for header in [
        ("purpose", "prefetch"),
        ("sec-purpose", "prefetch;prerender"),
        ("x-moz", "prefetch"),
    ] {
        for path in ["/api/auth/login", "/api/auth/logout"] {
            let answer = browser.get_with(path, &[header]).await;
            assert_eq!(
                (answer.status, answer.header("cache-control")),
                (204, "no-store"),
                "{header:?} {path}"
            );
            assert!(answer.set_cookies().is_empty() && answer.location().is_empty());
        }
    }
    let head = browser
        .send(reqwest::Method::HEAD, "/api/auth/login", &[], None)
        .await;
    assert_eq!((head.status, head.set_cookies().len()), (204, 0));
}

// conformance: B-051
#[tokio::test]
async fn a_script_gets_json_with_the_login_url_and_no_redirect() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    for header in [("sec-fetch-mode", "cors"), ("accept", "application/json")] {
        let answer = browser
            .get_with("/api/auth/login?returnTo=%2Fa%3Fb", &[header])
            .await;
        assert_eq!(answer.status, 401);
        let body = answer.json();
        assert_eq!(body["error"], "login_required");
        assert!(body["error_description"].is_string());
        let url = body["login_url"].as_str().unwrap();
        assert_eq!(param(url, "returnTo"), Some(format!("{}/a?b", stack.base())));
        assert!(answer.set_cookies().is_empty());
    }
}

// conformance: B-003
#[tokio::test]
async fn a_return_to_elsewhere_lands_on_the_base_url_and_one_of_ours_survives_whole() {
    let stack = Stack::start().await;
    for (return_to, lands) in [
        ("%2Fa%3Fb%3Dc%26d%23e", "/a?b=c&d#e"),
        ("https%3A%2F%2Fevil.example%2F", "/"),
        ("%2F%2Fevil.example", "/"),
        ("%2F%5Cevil.example", "/"),
        ("javascript%3Aalert(1)", "/"),
        ("%2F.%2F%2Fevil.example", "//evil.example"),
    ] {
        let mut browser = stack.browser();
        let callback = browser
            .until_callback(&format!("/api/auth/login?returnTo={return_to}"))
            .await;
        let answer = browser.visit(&callback).await;
        assert_eq!(
            (answer.status, answer.location()),
            (302, format!("{}{lands}", stack.base()).as_str()),
            "{return_to}"
        );
    }
}

// conformance: B-010
#[tokio::test]
async fn two_tabs_finish_in_either_order_and_each_lands_on_its_own_page() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let first = browser.until_callback("/api/auth/login?returnTo=/first").await;
    let second = browser.until_callback("/api/auth/login?returnTo=/second").await;
    assert!(browser.visit(&second).await.location().ends_with("/second"));
    assert!(browser.visit(&first).await.location().ends_with("/first"));
    assert_eq!(
        browser.jar.len(),
        1,
        "only the session is left: {:?}",
        browser.jar.keys()
    );
}

// conformance: B-011
#[tokio::test]
async fn a_hundred_abandoned_sign_ins_do_not_block_the_next() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    for n in 0..100 {
        stack.clock.advance_ms(1);
        browser
            .visit(&format!("/api/auth/login?returnTo=/{n}{}", "a".repeat(300)))
            .await;
        let bytes: usize = browser
            .jar
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        assert!(bytes < 4000, "{bytes}");
    }
    browser.sign_in().await;
}

// conformance: A-008 B-034
#[tokio::test]
async fn a_provider_that_is_down_gives_a_5xx_page_without_cookie_and_recovers_by_itself() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    for (answer, status) in [(Script::status(500), 502), (Script::Hang, 504)] {
        stack
            .provider
            .script(|script| _ = script.answers.insert(Endpoint::Discovery, answer.clone()));
        let answer = eventually(&mut browser, status).await;
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        assert!(
            answer.body.contains(answer.header("x-request-id")),
            "the page shows the request ID"
        );
        assert!(answer.set_cookies().is_empty());
        let answer = browser.get("/api/auth/login").await;
        assert_eq!(
            (answer.status, answer.json()["error"].as_str()),
            (status, Some("ERR_LOGIN_HANDLER_FAILURE"))
        );
    }
    stack.provider.stop();
    assert!(eventually(&mut browser, 503).await.set_cookies().is_empty());
    let answer = browser.get("/api/auth/login").await;
    assert_eq!(
        (answer.status, answer.json()["error"].as_str()),
        (503, Some("ERR_LOGIN_HANDLER_FAILURE"))
    );
    stack.provider.reset();
    stack.provider.start_again();
    eventually(&mut browser, 302).await;
}

/// Visits login until it answers like this: a failure is cached only for a moment.
async fn eventually(browser: &mut crate::support::Browser, status: u16) -> crate::support::Answer {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        let answer = browser.visit("/api/auth/login").await;
        if answer.status == status || std::time::Instant::now() > deadline {
            assert_eq!(answer.status, status, "{answer:?}");
            return answer;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

// conformance: A-023 A-025 B-019
#[tokio::test]
async fn form_post_sets_none_and_secure_and_finishes_by_post() {
    let stack = Stack::with(&[
        ("OIDC_RESPONSE_MODE", "form_post"),
        ("EDGE_BASE_URL", "https://app.example"),
    ])
    .await;
    let mut browser = stack.browser();
    let login = browser.visit("/api/auth/login?returnTo=/a").await;
    let line = login.set_cookies()[0].to_owned();
    assert!(
        line.contains("SameSite=None") && line.contains("Secure") && line.starts_with("__Host-"),
        "{line}"
    );
    assert_eq!(
        param(login.location(), "response_mode").as_deref(),
        Some("form_post")
    );
    // The form that the provider's page would post.
    let page = reqwest::get(login.location())
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let field = |name: &str| {
        let at = page.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap();
        at.split('"').next().unwrap().to_owned()
    };
    let form: String = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(["code", "state", "iss"].map(|name| (name, field(name))))
        .finish();
    let get = browser.visit(&format!("/api/auth/callback?{form}")).await;
    assert_eq!(
        (get.status, get.header("allow")),
        (405, "POST"),
        "and nothing is used up"
    );
    let multipart = browser
        .post(
            "/api/auth/callback",
            &[("content-type", "multipart/form-data")],
            &form,
        )
        .await;
    assert_eq!(multipart.status, 400);
    let answer = browser
        .post("/api/auth/callback", &[("sec-fetch-site", "cross-site")], &form)
        .await;
    assert_eq!(
        (answer.status, answer.location()),
        (303, "https://app.example/a"),
        "{answer:?}"
    );
    let session = answer.set_cookie("session").unwrap();
    assert!(
        session.starts_with("__Host-session=") && session.contains("SameSite=Lax"),
        "{session}"
    );
}

#[tokio::test]
async fn logins_are_limited_per_address() {
    let stack = Stack::with(&[("EDGE_RATE_LIMIT_LOGIN", "2")]).await;
    let mut browser = stack.browser();
    assert_eq!(browser.visit("/api/auth/login").await.status, 302);
    assert_eq!(browser.visit("/api/auth/login").await.status, 302);
    let limited = browser.visit("/api/auth/login").await;
    assert_eq!((limited.status, limited.header("retry-after")), (429, "30"));
    assert_eq!(
        browser.visit("/api/auth/callback?state=x").await.status,
        400,
        "callbacks have their own bucket"
    );
    assert_eq!(browser.visit("/api/auth/callback?state=x").await.status, 400);
    let limited = browser.visit("/api/auth/callback?state=x").await;
    assert_eq!((limited.status, limited.header("retry-after")), (429, "30"));
    stack.advance(30);
    assert_eq!(browser.visit("/api/auth/login").await.status, 302);
}

// conformance: A-031 A-070
#[tokio::test]
async fn an_issuer_other_than_the_configured_one_never_gets_a_visitor() {
    let stack = Stack::start().await;
    stack.provider.script(|script| {
        _ = script
            .metadata
            .insert("issuer".into(), json!("https://evil.example"))
    });
    assert_eq!(stack.browser().visit("/api/auth/login").await.status, 502);
}
