//! ID tokens, one deviation at a time.

use scripted_provider::{CLIENT_ID, Endpoint, IdTokenShape, Script};
use serde_json::{Value, json};

use super::{accepted, rejected};

fn claim(name: &'static str, value: Value) -> impl Fn(&mut Script) {
    move |script| _ = script.claims.insert(name.to_owned(), value.clone())
}

// conformance: A-009 A-016 A-027
#[tokio::test]
async fn a_plain_sign_in_signed_rs256_is_accepted() {
    accepted(&[], |_| {}).await;
}

// conformance: A-010 A-027 A-071
#[tokio::test]
async fn another_issuer_is_rejected() {
    rejected(&[], claim("iss", json!("https://evil.example"))).await;
    rejected(&[], claim("iss", json!(null))).await;
}

#[tokio::test]
async fn the_hash_of_another_access_token_is_rejected() {
    rejected(&[], claim("at_hash", json!("AAAAAAAAAAAAAAAAAAAAAA"))).await;
}

// conformance: A-011 A-027
#[tokio::test]
async fn a_missing_subject_is_rejected() {
    rejected(&[], claim("sub", json!(null))).await;
}

// conformance: A-012 A-027 A-071
#[tokio::test]
async fn an_audience_without_this_client_is_rejected() {
    rejected(&[], claim("aud", json!("another-client"))).await;
}

// conformance: A-040 A-071
#[tokio::test]
async fn a_missing_audience_is_rejected() {
    rejected(&[], claim("aud", json!(null))).await;
}

// conformance: B-083
#[tokio::test]
async fn an_audience_nobody_knows_beside_this_client_is_rejected() {
    rejected(&[], claim("aud", json!([CLIENT_ID, "another-client"]))).await;
}

// conformance: A-073
#[tokio::test]
async fn an_audience_in_a_list_of_one_is_accepted() {
    accepted(&[], claim("aud", json!([CLIENT_ID]))).await;
}

// conformance: A-013 A-027
#[tokio::test]
async fn a_missing_time_of_issue_is_rejected() {
    rejected(&[], claim("iat", json!(null))).await;
}

// conformance: A-075
#[tokio::test]
async fn an_expired_token_and_one_that_never_expires_are_rejected() {
    rejected(&[], claim("exp", json!(1_000_000))).await;
    rejected(&[], claim("exp", json!(null))).await;
}

// conformance: A-020 A-027 A-076
#[tokio::test]
async fn another_nonce_is_rejected() {
    rejected(&[], claim("nonce", json!("another"))).await;
}

// conformance: A-076
#[tokio::test]
async fn a_missing_nonce_is_rejected() {
    rejected(&[], claim("nonce", json!(null))).await;
}

// conformance: A-014 A-027
#[tokio::test]
async fn a_token_without_kid_is_accepted_when_one_key_fits() {
    accepted(&[], |script| script.id_token = IdTokenShape::NoKid).await;
}

// conformance: A-018 A-027 B-085
#[tokio::test]
async fn a_broken_rs256_signature_is_rejected() {
    rejected(&[], |script| script.id_token = IdTokenShape::BadSignature).await;
}

// conformance: A-074 B-086
#[tokio::test]
async fn an_unsigned_token_is_rejected() {
    rejected(&[], |script| script.id_token = IdTokenShape::AlgNone).await;
}

// conformance: A-074 B-086
#[tokio::test]
async fn another_algorithm_than_the_configured_one_is_rejected() {
    for algorithm in ["PS256", "ES256", "EdDSA"] {
        rejected(&[("OIDC_ID_TOKEN_SIGNING_ALG", algorithm)], |script| {
            script.algorithm = "RS256";
        })
        .await;
    }
}

// conformance: B-086
#[tokio::test]
async fn a_public_key_is_no_shared_secret() {
    rejected(&[], |script| script.id_token = IdTokenShape::Hs256WithPublicKey).await;
}

// conformance: B-085
#[tokio::test]
async fn a_key_that_travels_with_the_token_is_never_used() {
    rejected(&[], |script| script.id_token = IdTokenShape::EmbeddedJwk).await;
}

// conformance: A-044
#[tokio::test]
async fn es256_is_accepted_where_configured_and_its_broken_signature_rejected() {
    let es256 = [("OIDC_ID_TOKEN_SIGNING_ALG", "ES256")];
    accepted(&es256, |script| script.algorithm = "ES256").await;
    rejected(&es256, |script| {
        script.algorithm = "ES256";
        script.id_token = IdTokenShape::BadSignature;
    })
    .await;
}

// conformance: B-100
#[tokio::test]
async fn a_token_beyond_every_measure_is_rejected() {
    rejected(&[], |script| {
        script.id_token = IdTokenShape::Raw(format!("e30.{}.e30", "a".repeat(70_000)));
    })
    .await;
}

// conformance: A-045
#[tokio::test]
async fn claims_kept_elsewhere_are_not_fetched() {
    let elsewhere = |script: &mut Script| {
        let source = json!({ "source": { "endpoint": "http://127.0.0.1:9/", "access_token": "x" } });
        script.claims.insert("_claim_sources".into(), source);
        script
            .claims
            .insert("_claim_names".into(), json!({ "age": "source" }));
        let identities = json!([{ "provider": "other", "other_access_token": "x", "id": 1 }]);
        script.user.insert("identities".into(), identities);
        script.userinfo.insert("refresh_token".into(), json!("x"));
    };
    for (stack, mut browser) in accepted(&[], elsewhere).await {
        let me = browser.get("/api/auth/me").await.json();
        for name in ["age", "_claim_names", "_claim_sources", "refresh_token"] {
            assert!(me.get(name).is_none(), "{name}");
        }
        assert_eq!(me["identities"], json!([{ "provider": "other", "id": 1 }]));
        assert_eq!(stack.provider.calls(Endpoint::Userinfo), 1);
    }
}

// conformance: A-029 A-030
#[tokio::test]
async fn every_address_comes_from_discovery_and_keys_are_read_before_userinfo() {
    let [query, _] = super::Plan::both(&[]).await;
    let provider = &query.stack.provider;
    let gate = provider.hold(Endpoint::Userinfo);
    let mut browser = query.stack.browser();
    let callback = browser.until_callback("/api/auth/login").await;
    let signing_in = tokio::spawn(async move {
        let answer = browser.visit(&callback).await;
        (browser, answer)
    });
    provider.wait_for_calls(Endpoint::Userinfo, 1).await;
    assert_eq!(
        [Endpoint::Discovery, Endpoint::Token, Endpoint::Jwks].map(|endpoint| provider.calls(endpoint)),
        [1, 1, 1]
    );
    gate.release();
    let (mut browser, answer) = signing_in.await.unwrap();
    assert_eq!(answer.status, 302);
    let out = browser.visit("/api/auth/logout").await;
    assert!(out.location().starts_with(&provider.url(Endpoint::EndSession)));
}

// conformance: A-033
#[tokio::test]
async fn a_key_that_is_published_a_second_late_costs_nobody_a_sign_in() {
    let [query, form] = super::Plan::both(&[("OIDC_HTTP_TIMEOUT_MS", "10000")]).await;
    for plan in [query, form] {
        let provider = &plan.stack.provider;
        let mut browser = plan.stack.browser();
        plan.sign_in(&mut browser).await;
        provider.rotate_keys_unpublished();
        let gate = provider.hold_answers(Endpoint::Jwks);
        let mut other = plan.stack.browser();
        let (answer, ()) = tokio::join!(plan.sign_in(&mut other), async {
            provider.wait_for_held(Endpoint::Jwks, 1).await;
            provider.script(|script| script.jwks = None);
            gate.release();
        });
        assert!(matches!(answer.status, 302 | 303), "{answer:?}");
        assert_eq!(other.get("/api/auth/me").await.status, 200);
    }
}

#[tokio::test]
async fn a_sign_in_under_a_key_that_is_not_published_can_be_tried_again_at_once() {
    let [query, _] = super::Plan::both(&[]).await;
    let provider = &query.stack.provider;
    query.sign_in(&mut query.stack.browser()).await;
    let mut browser = query.stack.browser();
    provider.script(|script| script.id_token = IdTokenShape::UnknownKid);
    let refused = query.sign_in(&mut browser).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.body.contains("or it answered with an error"),
        "{refused:?}"
    );
    provider.reset();
    provider.rotate_keys();
    assert_eq!(query.sign_in(&mut browser).await.status, 302);
}
