//! Logout tokens pass every check or none.

use oidc::LogoutTokenError;
use serde_json::{Value, json};

use crate::support::{NOW, bench};

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
    validate(json!({ "sub": "alice", "iat": NOW - 300 }))
        .await
        .expect("five minutes old");
    for bad in [
        json!({}),
        json!({ "sub": "a", "nonce": "n" }),
        json!({ "sub": "a", "events": null }),
        json!({ "sub": "a", "events": { "other": {} } }),
        json!({ "sub": "a", "jti": null }),
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
        (json!("at+jwt"), false),
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
    let id_token = bench.exchange().await.expect("tokens").id_token;
    assert!(matches!(
        bench.party.validate_logout_token(&id_token, NOW).await,
        Err(LogoutTokenError::Type)
    ));
}
