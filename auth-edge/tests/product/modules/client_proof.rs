//! How the client authenticates with keys: assertions, signed requests, published keys.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use scripted_provider::{Answer, CLIENT_ID, Endpoint, Recorded};
use serde_json::{Value, json};

use crate::support::{Browser, Stack, key_file};

const PUBLISHED: &str = "/.well-known/vestibule/client-jwks.json";

fn part(token: &str, at: usize) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(at).unwrap()).unwrap()).unwrap()
}

async fn published(browser: &mut Browser) -> Vec<Value> {
    let answer = browser.get(PUBLISHED).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/jwk-set+json")
    );
    assert!(!answer.body.contains("\"d\""));
    answer.json()["keys"].as_array().unwrap().clone()
}

/// Whether the published key named by the token's `kid` verifies it.
fn verifies(token: &str, keys: &[Value]) -> bool {
    let kid = part(token, 0)["kid"].clone();
    let Some(key) = keys.iter().find(|key| key["kid"] == kid) else {
        return false;
    };
    let decode = |text: &Value| URL_SAFE_NO_PAD.decode(text.as_str().unwrap()).unwrap();
    let point = [vec![4], decode(&key["x"]), decode(&key["y"])].concat();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
        .verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
        .is_ok()
}

// conformance: B-033
#[tokio::test]
async fn an_assertion_proves_the_client_and_overlapping_keys_are_published() {
    let (new, old) = (key_file(), key_file());
    let files = format!("{},{}", new.path().display(), old.path().display());
    let stack = Stack::with(&[
        ("OIDC_CLIENT_AUTH_METHOD", "private_key_jwt"),
        ("OIDC_CLIENT_KEY_FILE", &files),
    ])
    .await;
    let mut browser = stack.browser();
    let keys = published(&mut browser).await;
    assert_eq!(keys.len(), 2);
    let mut seen = Vec::new();
    for _ in 0..2 {
        browser.sign_in().await;
        let redeemed = stack.provider.last_request(Endpoint::Token);
        assert_eq!(
            (redeemed.header("authorization"), redeemed.param("client_secret")),
            (None, None)
        );
        let assertion = redeemed.param("client_assertion").unwrap();
        assert!(verifies(assertion, &keys[..1]), "the first key signs");
        let claims = part(assertion, 1);
        assert_eq!(
            (&claims["iss"], &claims["sub"]),
            (&json!(CLIENT_ID), &json!(CLIENT_ID))
        );
        assert_eq!(claims["aud"], stack.provider.issuer());
        assert!(claims["exp"].as_u64().unwrap() <= claims["iat"].as_u64().unwrap() + 60);
        seen.push(claims["jti"].clone());
    }
    assert_ne!(seen[0], seen[1], "used once");
}

/// A JWT as SPIRE or a platform writes it. The provider of these tests reads its claims only.
fn assertion_of(subject: &str, exp: u64) -> String {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({ "sub": subject, "aud": ["https://op.example"], "exp": exp });
    format!("{}.{}.c2ln", part(json!({ "alg": "ES256" })), part(claims))
}

#[tokio::test]
async fn an_assertion_in_a_file_is_sent_with_its_registered_type() {
    const WORKLOAD: &str = "spiffe://prod.example/ns/auth/sa/auth-edge";
    for (method, kind) in [("private_key_jwt", "jwt-bearer"), ("spiffe_jwt", "jwt-spiffe")] {
        let file = tempfile::NamedTempFile::new().unwrap();
        let first = assertion_of(WORKLOAD, 4_000_000_000);
        std::fs::write(&file, format!("{first}\n")).unwrap();
        let stack = Stack::with(&[
            ("OIDC_CLIENT_AUTH_METHOD", method),
            ("OIDC_CLIENT_SECRET", ""),
            ("OIDC_CLIENT_ASSERTION_FILE", file.path().to_str().unwrap()),
        ])
        .await;
        stack.provider.script(|script| {
            script.assertion.insert("sub".to_owned(), json!(WORKLOAD));
        });
        let second = assertion_of(WORKLOAD, 4_000_000_001);
        for assertion in [first, second] {
            std::fs::write(&file, &assertion).unwrap();
            stack.browser().sign_in().await;
            let redeemed = stack.provider.last_request(Endpoint::Token);
            let registered = format!("urn:ietf:params:oauth:client-assertion-type:{kind}");
            assert_eq!(redeemed.param("client_assertion_type"), Some(registered.as_str()));
            assert_eq!(redeemed.param("client_assertion"), Some(assertion.as_str()));
            assert_eq!(redeemed.param("client_secret"), None);
        }
        std::fs::write(&file, assertion_of("spiffe://prod.example/other", 4_000_000_000)).unwrap();
        let mut browser = stack.browser();
        let callback = browser.until_callback("/api/auth/login").await;
        assert_eq!(
            browser.visit(&callback).await.status,
            400,
            "the provider does not know it"
        );
    }
}

#[tokio::test]
async fn without_keys_nothing_is_published() {
    let stack = Stack::start().await;
    assert_eq!(stack.browser().get(PUBLISHED).await.status, 404);
}

#[tokio::test]
async fn a_signed_request_holds_every_parameter_whether_pushed_or_not() {
    let key = key_file();
    let settings = [
        ("OIDC_SIGNED_REQUESTS", "true"),
        ("OIDC_CLIENT_KEY_FILE", key.path().to_str().unwrap()),
        ("OIDC_RESOURCE", "https://api.example/a,https://api.example/b"),
        ("OIDC_AUTHORIZATION_PARAMS", "max_age=600"),
    ];
    let stack = Stack::with(&settings).await;
    let mut browser = stack.browser();
    let keys = published(&mut browser).await;
    let judge = |object: &str| {
        assert!(verifies(object, &keys));
        assert_eq!(part(object, 0)["typ"], "oauth-authz-req+jwt");
        let claims = part(object, 1);
        for name in ["state", "nonce", "code_challenge", "redirect_uri", "jti"] {
            assert!(claims[name].is_string(), "{name}");
        }
        assert_eq!(
            (&claims["iss"], &claims["client_id"]),
            (&json!(CLIENT_ID), &json!(CLIENT_ID))
        );
        assert_eq!(claims["aud"], stack.provider.issuer());
        assert_eq!(claims["max_age"], 600);
        assert_eq!(
            claims["resource"],
            json!(["https://api.example/a", "https://api.example/b"])
        );
    };
    let login = browser.visit("/api/auth/login").await;
    let url = url::Url::parse(login.location()).unwrap();
    let names: Vec<_> = url.query_pairs().map(|(name, _)| name.into_owned()).collect();
    assert_eq!(names, ["client_id", "response_type", "scope", "request"]);
    judge(&url.query_pairs().last().unwrap().1);

    let fresh = Stack::with(&settings).await;
    fresh.provider.script(|script| script.offer_par = true);
    let pushed_to = fresh
        .browser()
        .visit("/api/auth/login")
        .await
        .location()
        .to_owned();
    assert!(pushed_to.contains("request_uri="), "{pushed_to}");
    let pushed = fresh.provider.last_request(Endpoint::Par);
    let names: Vec<_> = pushed.form.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["client_id", "request"],
        "and the client proves itself in the header"
    );
}

// conformance: B-027
#[tokio::test]
async fn the_resources_are_named_to_both_endpoints() {
    let stack = Stack::with(&[("OIDC_RESOURCE", "https://api.example/orders")]).await;
    stack.browser().sign_in().await;
    for endpoint in [Endpoint::Authorize, Endpoint::Token] {
        let request = stack.provider.last_request(endpoint);
        assert_eq!(
            request.param("resource"),
            Some("https://api.example/orders"),
            "{endpoint:?}"
        );
    }
}

/// Every value of `resource` in a request.
fn resources(request: &Recorded) -> Vec<&str> {
    let values = request.form.iter().chain(&request.query);
    let named = values.filter(|(name, _)| name == "resource");
    named.map(|(_, value)| value.as_str()).collect()
}

#[tokio::test]
async fn several_resources_are_one_tokens_and_a_provider_without_them_does_no_harm() {
    let both = ["https://api.example/orders", "https://api.example/bills"];
    let stack = Stack::with(&[
        ("OIDC_RESOURCE", both.join(",").as_str()),
        ("EDGE_ACCESS_TOKEN_ENDPOINT", "true"),
    ])
    .await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let proof = [("x-csrf", "1"), ("sec-fetch-site", "same-origin")];
    stack.advance(3_600);
    let renewed = browser.get_with("/api/auth/access-token", &proof).await;
    assert_eq!(renewed.status, 200, "{renewed:?}");
    let authorize = stack.provider.last_request(Endpoint::Authorize);
    let tokens = stack.provider.requests(Endpoint::Token);
    assert_eq!(tokens.len(), 2, "the code, and a refresh");
    for request in [&authorize].into_iter().chain(&tokens) {
        assert_eq!(resources(request), both);
    }

    // RFC 8707, section 2: a provider that issues no such token says so.
    stack.advance(3_600);
    let refuse = |error: Option<&str>| {
        let error = error.map(str::to_owned);
        stack.provider.script(|script| script.refresh_error = error);
    };
    refuse(Some("invalid_target"));
    let refused = browser.get_with("/api/auth/access-token", &proof).await;
    assert_eq!(
        (refused.status, &refused.json()["error"]),
        (401, &serde_json::json!("ERR_FAILED_REFRESH_GRANT"))
    );
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
    refuse(None);
    stack.advance(1); // the pause after a refusal
    let again = browser.get_with("/api/auth/access-token", &proof).await;
    assert_eq!(again.status, 200, "{again:?}");
    let answer = Answer::json(400, &serde_json::json!({"error": "invalid_target"}));
    stack
        .provider
        .script(|script| _ = script.answers.insert(Endpoint::Token, answer));
    let mut other = stack.browser();
    let callback = other.until_callback("/api/auth/login").await;
    assert_eq!(other.visit(&callback).await.status, 400);
    assert!(!other.jar.contains_key("session"));
}
