//! Sender-constrained tokens (RFC 9449).

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use scripted_provider::{Endpoint, Recorded, Script};
use serde_json::{Value, json};

use super::{Plan, accepted};
use crate::gateway::Gateway;
use crate::support::{Stack, key_file};

fn bound(script: &mut Script) {
    script.dpop = true;
}

fn part(token: &str, at: usize) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(at).unwrap()).unwrap()).unwrap()
}

fn proof(request: &Recorded) -> &str {
    request.header("dpop").unwrap()
}

fn thumbprint(request: &Recorded) -> String {
    let jwk = part(proof(request), 0)["jwk"].to_string();
    URL_SAFE_NO_PAD.encode(aws_lc_rs::digest::digest(
        &aws_lc_rs::digest::SHA256,
        jwk.as_bytes(),
    ))
}

// conformance: A-083 B-075 B-080
#[tokio::test]
async fn without_nonces_tokens_are_bound_to_the_key_that_was_announced() {
    let key = key_file();
    let settings = [
        ("OIDC_DPOP", "on"),
        ("OIDC_DPOP_KEY_FILE", key.path().to_str().unwrap()),
    ];
    for (stack, _) in accepted(&settings, bound).await {
        let [authorize, redeemed, read] = [Endpoint::Authorize, Endpoint::Token, Endpoint::Userinfo]
            .map(|endpoint| stack.provider.last_request(endpoint));
        let announced = authorize.param("dpop_jkt").unwrap();
        assert_eq!(announced, thumbprint(&redeemed));
        assert_eq!(announced, thumbprint(&read));
        assert!(read.header("authorization").unwrap().starts_with("DPoP "));
        assert!(part(proof(&redeemed), 1).get("ath").is_none());
        assert!(part(proof(&read), 1)["ath"].is_string());
    }
}

#[tokio::test]
async fn a_nonce_that_is_asked_for_is_repeated_at_once_and_from_then_on() {
    let key = key_file();
    let settings = [
        ("OIDC_DPOP", "on"),
        ("OIDC_DPOP_KEY_FILE", key.path().to_str().unwrap()),
    ];
    let with_nonce = |script: &mut Script| {
        script.dpop = true;
        script.dpop_nonce = Some("nonce-1".to_owned());
    };
    for (stack, mut browser) in accepted(&settings, with_nonce).await {
        let provider = &stack.provider;
        assert_eq!(
            (
                provider.calls(Endpoint::Token),
                provider.calls(Endpoint::Userinfo)
            ),
            (2, 1)
        );
        let tries = provider.requests(Endpoint::Token);
        assert_ne!(part(proof(&tries[0]), 1)["jti"], part(proof(&tries[1]), 1)["jti"]);
        assert_eq!(part(proof(&tries[1]), 1)["nonce"], "nonce-1");
        provider.script(|script| script.dpop_nonce = Some("nonce-2".to_owned()));
        assert_eq!(browser.get("/api/auth/me?refetch=true").await.status, 200);
        assert_eq!(
            provider.calls(Endpoint::Userinfo),
            3,
            "sent, and sent again with the new nonce"
        );
    }
}

#[tokio::test]
async fn a_server_that_is_never_content_with_a_nonce_is_not_asked_for_ever() {
    let key = key_file();
    let settings = [
        ("OIDC_DPOP", "on"),
        ("OIDC_DPOP_KEY_FILE", key.path().to_str().unwrap()),
    ];
    let [plan, _] = Plan::both(&settings).await;
    let refusal = scripted_provider::Answer::Http {
        status: 400,
        headers: vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("dpop-nonce".to_owned(), "another".to_owned()),
        ],
        body: json!({ "error": "use_dpop_nonce" }).to_string().into_bytes(),
    };
    plan.stack
        .provider
        .script(|script| _ = script.answers.insert(Endpoint::Token, refusal));
    let mut browser = plan.stack.browser();
    assert_eq!(plan.sign_in(&mut browser).await.status, 400);
    assert_eq!(plan.stack.provider.calls(Endpoint::Token), 2);
}

// conformance: B-078
#[tokio::test]
async fn a_bearer_token_in_the_place_of_a_bound_one_is_rejected() {
    let key = key_file();
    let settings = [
        ("OIDC_DPOP", "on"),
        ("OIDC_DPOP_KEY_FILE", key.path().to_str().unwrap()),
    ];
    let bearer = |script: &mut Script| {
        script.dpop = true;
        script.token.insert("token_type".into(), json!("Bearer"));
    };
    super::rejected(&settings, bearer).await;
    super::rejected(&[], |script| {
        script.token.insert("token_type".into(), json!("DPoP"));
    })
    .await;
}

// conformance: B-079
#[tokio::test]
async fn the_session_service_refreshes_with_the_same_key() {
    let key = key_file();
    let stack = Stack::with(&[
        ("OIDC_DPOP", "on"),
        ("OIDC_DPOP_KEY_FILE", key.path().to_str().unwrap()),
    ])
    .await;
    stack.provider.script(bound);
    let mut browser = stack.browser();
    browser.sign_in().await;
    stack.advance(3600);
    assert_eq!(browser.get("/api/auth/me?refetch=true").await.status, 200);
    let requests = stack.provider.requests(Endpoint::Token);
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1].param("grant_type"), Some("refresh_token"));
    assert_eq!(thumbprint(&requests[0]), thumbprint(&requests[1]));
    assert_eq!(
        thumbprint(&requests[0]),
        thumbprint(&stack.provider.last_request(Endpoint::Userinfo))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_gets_the_bound_token_with_a_proof_of_its_own_and_its_nonce_back() {
    let key = key_file();
    let settings = [
        ("OIDC_DPOP", "on"),
        ("OIDC_DPOP_KEY_FILE", key.path().to_str().unwrap()),
    ];
    let gateway = Gateway::start("", &settings).await;
    gateway.stack.provider.script(bound);
    let mut browser = gateway.stack.browser();
    browser.sign_in().await;
    gateway.upstream.answer_by(|seen| {
        let proof = seen.all("dpop").pop().unwrap_or_default();
        let nonce = part(&proof, 1)["nonce"].clone();
        let refusal = [
            ("www-authenticate", "DPoP error=\"use_dpop_nonce\""),
            ("dpop-nonce", "up-1"),
        ];
        (nonce != "up-1").then(|| (StatusCode::UNAUTHORIZED, refusal).into_response())
    });
    let forged = [("dpop", "forged"), ("authorization", "DPoP forged")];
    assert_eq!(browser.get_with("/token/orders?a=b", &forged).await.status, 200);
    let seen = gateway.upstream.requests();
    assert_eq!(seen.len(), 2, "refused for the nonce, and sent again with it");
    for request in &seen {
        let (tokens, proofs) = (request.all("authorization"), request.all("dpop"));
        assert_eq!(
            (tokens.len(), proofs.len()),
            (1, 1),
            "the client's own do not pass"
        );
        let token = tokens[0].strip_prefix("DPoP ").unwrap();
        let claims = part(&proofs[0], 1);
        assert_eq!(claims["htm"], "GET");
        assert_eq!(claims["htu"], format!("{}/orders", gateway.upstream.url()));
        let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, token.as_bytes());
        assert_eq!(claims["ath"], URL_SAFE_NO_PAD.encode(hash));
    }
    assert_ne!(
        part(&seen[0].all("dpop")[0], 1)["jti"],
        part(&seen[1].all("dpop")[0], 1)["jti"]
    );

    // The edge keeps a form's body until the upstream has asked for another nonce or not.
    gateway.upstream.answer_by(|seen| {
        let proof = seen.all("dpop").pop().unwrap_or_default();
        let refusal = [
            ("www-authenticate", "DPoP error=\"use_dpop_nonce\""),
            ("dpop-nonce", "up-2"),
        ];
        (part(&proof, 1)["nonce"] != "up-2").then(|| (StatusCode::UNAUTHORIZED, refusal).into_response())
    });
    let own = [("sec-fetch-site", "same-origin")];
    assert_eq!(browser.post("/token/orders", &own, "a=b").await.status, 200);
    assert_eq!(gateway.upstream.requests().len(), 4);
}
