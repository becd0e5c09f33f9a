//! A logout token passes every check, or is rejected.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oidc::IdTokenError;
use serde_json::{Value, json};

use crate::support::{NOW, bench};

const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

#[tokio::test]
async fn a_logout_token_has_an_algorithm_that_id_tokens_may_have() {
    for (algorithm, accepted) in [("ES512", true), ("PS384", true), ("HS256", false)] {
        let bench = bench();
        bench.provider.script(|script| script.algorithm = algorithm);
        let token = bench.provider.logout_token(json!({ "sub": "alice" }));
        let validated = bench.party.validate_logout_token(&token, NOW).await;
        let refused = matches!(validated, Err(IdTokenError::Algorithm));
        assert_eq!((validated.is_ok(), refused), (accepted, !accepted), "{algorithm}");
    }
}

// conformance: B-115 B-117
#[tokio::test]
async fn logout_tokens_pass_every_check_or_none() {
    let bench = bench();
    let validate = async |claims: Value| {
        bench
            .party
            .validate_logout_token(&bench.provider.logout_token(claims), NOW)
            .await
    };
    let token = validate(json!({ "sid": "s", "sub": "alice", "extra": 1 }))
        .await
        .expect("good");
    assert_eq!(
        (token.sid.as_deref(), token.sub.as_deref()),
        (Some("s"), Some("alice"))
    );
    validate(json!({ "sub": "alice", "iat": NOW - 300, "jti": "j".repeat(512), "events": { (EVENT): {} } }))
        .await
        .expect("five minutes old, and named at length");
    for bad in [
        json!({}),
        json!({ "sub": "a", "nonce": "n" }),
        json!({ "sub": "a", "events": null }),
        json!({ "sub": "a", "events": { "other": {} } }),
        json!({ "sub": "a", "events": { (EVENT): null } }),
        json!({ "sub": "a", "events": { (EVENT): [] } }),
        json!({ "sub": "a", "events": { (EVENT): "{}" } }),
        json!({ "sub": "a", "sid": "" }),
        json!({ "sub": "a", "sid": 7 }),
        json!({ "sub": "a", "jti": null }),
        json!({ "sub": "a", "jti": "" }),
        json!({ "sub": "a", "jti": "j".repeat(513) }),
        json!({ "sub": "a", "exp": null }),
        json!({ "sub": "a", "exp": NOW - 61 }),
        json!({ "sub": "a", "iat": null }),
        json!({ "sub": "a", "iat": NOW - 301 }),
        json!({ "sub": "a", "iat": NOW + 61 }),
        json!({ "sub": "a", "iss": "https://evil.example" }),
        json!({ "sub": "a", "aud": "other" }),
    ] {
        assert!(validate(bad.clone()).await.is_err(), "{bad}");
    }
    for (typ, accepted) in [
        (json!(null), true),
        (json!("logout+jwt"), true),
        (json!("Logout+JWT"), true),
        (json!("application/logout+jwt"), true),
        (json!("JWT"), true),
        (json!("at+jwt"), false),
        (json!("application/secevent+jwt"), false),
        (json!(""), false),
        (json!(["logout+jwt"]), false),
    ] {
        let raw = bench
            .provider
            .logout_token_with_header(json!({ "typ": typ }), json!({ "sub": "a" }));
        assert_eq!(
            bench.party.validate_logout_token(&raw, NOW).await.is_ok(),
            accepted,
            "{typ}"
        );
    }
    let good = bench.provider.logout_token(json!({ "sub": "a" }));
    let (header, rest) = good.split_once('.').expect("a JWS");
    let header = URL_SAFE_NO_PAD.decode(header).expect("a header");
    let twice = String::from_utf8_lossy(&header).replacen('{', r#"{"alg":"none","#, 1);
    let twice = format!("{}.{rest}", URL_SAFE_NO_PAD.encode(twice));
    assert!(
        matches!(
            bench.party.validate_logout_token(&twice, NOW).await,
            Err(IdTokenError::Malformed)
        ),
        "a header that says alg twice is not read at all"
    );
    let id_token = bench.exchange().await.expect("tokens").id_token;
    assert!(
        bench.party.validate_logout_token(&id_token, NOW).await.is_err(),
        "an ID token ends nothing"
    );
}
