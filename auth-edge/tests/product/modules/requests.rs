//! Requests to the provider: authorization requests, pushed or not, and token requests.

use scripted_provider::{Answer as Script, CLIENT_ID, CLIENT_SECRET, Endpoint};
use serde_json::json;

use crate::support::Stack;

fn param(url: &str, name: &str) -> Option<String> {
    let url = url::Url::parse(url).unwrap();
    let mut all = url.query_pairs();
    all.find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

// conformance: A-001 A-002 A-022 B-065
#[tokio::test]
async fn code_and_verifier_go_once_with_the_same_redirect_uri_and_a_client_header() {
    let stack = Stack::start().await;
    stack.provider.script(|script| {
        let only = json!(["client_secret_basic"]);
        script
            .metadata
            .insert("token_endpoint_auth_methods_supported".into(), only);
    });
    let mut browser = stack.browser();
    browser.sign_in().await;
    let authorize = stack.provider.last_request(Endpoint::Authorize);
    let redeemed = stack.provider.last_request(Endpoint::Token);
    assert_eq!(stack.provider.calls(Endpoint::Token), 1);
    assert_eq!(redeemed.param("redirect_uri"), authorize.param("redirect_uri"));
    assert_eq!(authorize.param("code_challenge_method"), Some("S256"));
    let verifier = redeemed.param("code_verifier").unwrap();
    let challenge = {
        use base64::Engine as _;
        let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, verifier.as_bytes());
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(hash)
    };
    assert_eq!(authorize.param("code_challenge"), Some(challenge.as_str()));
    assert!(redeemed.header("authorization").unwrap().starts_with("Basic "));
    assert!(redeemed.param("client_secret").is_none() && redeemed.query.is_empty());
}

// conformance: B-033
#[tokio::test]
async fn the_secret_goes_in_the_body_where_that_is_configured() {
    let stack = Stack::with(&[("OIDC_CLIENT_AUTH_METHOD", "client_secret_post")]).await;
    stack.browser().sign_in().await;
    let redeemed = stack.provider.last_request(Endpoint::Token);
    assert_eq!(redeemed.param("client_id"), Some(CLIENT_ID));
    assert_eq!(redeemed.param("client_secret"), Some(CLIENT_SECRET));
    assert_eq!(redeemed.header("authorization"), None);
}

// conformance: A-003
#[tokio::test]
async fn to_ask_anew_and_not_to_ask_are_never_wished_together() {
    let stack = Stack::with(&[("OIDC_AUTHORIZATION_PARAMS", "max_age=0")]).await;
    for query in ["prompt=none", "prompt=none&max_age=0"] {
        let mut browser = stack.browser();
        let login = browser.visit(&format!("/api/auth/login?{query}")).await;
        let url = login.location();
        assert!(
            param(url, "prompt").is_none() || param(url, "max_age").as_deref() != Some("0"),
            "{url}"
        );
    }
}

// conformance: B-026
#[tokio::test]
async fn no_header_of_a_request_changes_where_the_provider_answers() {
    let stack = Stack::start().await;
    let answer = stack
        .raw(
            "GET /api/auth/login HTTP/1.1\r\nhost: evil.example\r\nx-forwarded-host: evil.example\r\n\
             x-forwarded-proto: https\r\nforwarded: host=evil.example\r\nconnection: close\r\n\r\n",
        )
        .await;
    assert!(answer.starts_with("HTTP/1.1 302"), "{answer}");
    assert!(!answer.contains("evil.example"), "{answer}");
    let back: String =
        url::form_urlencoded::byte_serialize(format!("{}/api/auth/callback", stack.base()).as_bytes())
            .collect();
    assert!(answer.contains(&format!("redirect_uri={back}")), "{answer}");
}

// conformance: B-070 B-071 B-072 B-074
#[tokio::test]
async fn a_pushed_request_holds_everything_and_the_browser_sees_two_parameters() {
    let stack = Stack::start().await;
    stack.provider.script(|script| {
        script.offer_par = true;
        let no = json!(false);
        script
            .metadata
            .insert("request_uri_parameter_supported".into(), no);
    });
    let mut browser = stack.browser();
    let (first, second) = (
        browser.visit("/api/auth/login").await,
        browser.visit("/api/auth/login").await,
    );
    for answer in [&first, &second] {
        let url = url::Url::parse(answer.location()).unwrap();
        let names: Vec<_> = url.query_pairs().map(|(name, _)| name.into_owned()).collect();
        assert_eq!(names, ["client_id", "request_uri"]);
    }
    assert_ne!(
        param(first.location(), "request_uri"),
        param(second.location(), "request_uri")
    );
    assert_eq!(stack.provider.calls(Endpoint::Par), 2);
    let pushed = stack.provider.last_request(Endpoint::Par);
    assert!(pushed.header("authorization").unwrap().starts_with("Basic "));
    assert_eq!(pushed.param("request_uri"), None);
    for name in [
        "state",
        "nonce",
        "code_challenge",
        "redirect_uri",
        "scope",
        "response_type",
    ] {
        assert!(pushed.param(name).is_some(), "{name}");
    }
    let callback = browser.authorize(second.location()).await;
    assert_eq!(browser.visit(&callback).await.status, 302);
}

// conformance: B-073
#[tokio::test]
async fn a_push_that_fails_is_a_failed_login_and_never_a_plain_request() {
    let stack = Stack::with(&[("OIDC_PAR", "require")]).await;
    let mut browser = stack.browser();
    assert_eq!(
        browser.visit("/api/auth/login").await.status,
        502,
        "required, and not offered"
    );
    let stack = Stack::with(&[("OIDC_PAR", "require")]).await;
    stack.provider.script(|script| script.offer_par = true);
    for answer in [
        Script::json(201, &json!({ "request_uri": "urn:x", "expires_in": 0 })),
        Script::json(201, &json!({ "request_uri": "urn:x" })),
        Script::json(201, &json!({ "expires_in": 60 })),
        Script::json(401, &json!({ "error": "invalid_client" })),
        Script::status(429),
        Script::status(500),
        Script::text(201, "application/json", "{"),
        Script::text(201, "text/html", "<html></html>"),
        Script::redirect("https://evil.example/"),
    ] {
        stack
            .provider
            .script(|script| _ = script.answers.insert(Endpoint::Par, answer.clone()));
        let mut browser = stack.browser();
        let failed = browser.visit("/api/auth/login").await;
        assert_eq!((failed.status, failed.location()), (502, ""), "{answer:?}");
        assert!(browser.jar.is_empty());
    }
}

#[tokio::test]
async fn a_parameter_that_the_provider_refuses_is_no_outage() {
    for code in ["invalid_request", "invalid_scope", "invalid_target"] {
        let stack = Stack::start().await;
        stack.provider.script(|script| {
            script.offer_par = true;
            let refusal = Script::json(400, &json!({ "error": code }));
            script.answers.insert(Endpoint::Par, refusal);
        });
        let mut browser = stack.browser();
        let refused = browser.visit("/api/auth/login?prompt=select_account").await;
        assert_eq!((refused.status, refused.location()), (400, ""), "{code}");
        assert!(
            refused.body.contains("does not accept this sign-in request"),
            "{}",
            refused.body
        );
        assert!(browser.jar.is_empty());
    }
}

#[tokio::test]
async fn pushing_is_off_where_configured_unless_the_provider_insists() {
    let stack = Stack::with(&[("OIDC_PAR", "off")]).await;
    stack.provider.script(|script| script.offer_par = true);
    let url = stack
        .browser()
        .visit("/api/auth/login")
        .await
        .location()
        .to_owned();
    assert!(param(&url, "state").is_some(), "{url}");
    assert_eq!(stack.provider.calls(Endpoint::Par), 0);
    let stack = Stack::with(&[("OIDC_PAR", "off")]).await;
    stack.provider.script(|script| {
        script.offer_par = true;
        let yes = json!(true);
        script
            .metadata
            .insert("require_pushed_authorization_requests".into(), yes);
    });
    assert_eq!(stack.browser().visit("/api/auth/login").await.status, 502);
}

// conformance: B-034
#[tokio::test]
async fn no_page_of_signing_in_or_out_can_be_framed() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    let failed = browser.visit("/api/auth/callback").await;
    let policy = failed.header("content-security-policy").to_owned();
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!(failed.header("x-frame-options"), "DENY");
}
