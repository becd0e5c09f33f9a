//! A null claim is absent, in every token and answer: some providers send null for missing values.

use oidc::ExpectedRefreshedIdToken;
use scripted_provider::{Answer, CLIENT_ID, Endpoint, IdTokenShape};
use serde_json::{Value, json};

use crate::support::{NOW, bench};

const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// Good claims, overridden by these.
fn with(good: &Value, claims: &Value) -> Value {
    let mut all = good.as_object().cloned().expect("claims");
    all.extend(claims.as_object().cloned().expect("claims"));
    Value::Object(all)
}

#[tokio::test]
async fn a_null_claim_of_a_logout_token_is_absent() {
    let bench = bench();
    let good = json!({
        "iss": bench.provider.issuer(), "aud": CLIENT_ID, "iat": NOW, "exp": NOW + 120, "jti": "j", "sid": "s",
        "events": { (EVENT): {} },
    });
    for (claims, accepted) in [
        (json!({ "sub": null }), true),
        (json!({ "sub": "alice", "sid": null }), true),
        (json!({ "nonce": null, "nbf": null, "azp": null }), true),
        (json!({ "sub": null, "sid": null }), false),
        (json!({ "jti": null }), false),
        (json!({ "events": null }), false),
        (json!({ "exp": null }), false),
    ] {
        let raw = bench
            .provider
            .sign_with_header(json!({ "typ": "logout+jwt" }), with(&good, &claims));
        let judged = bench.party.validate_logout_token(&raw, NOW).await;
        assert_eq!(judged.is_ok(), accepted, "{claims}: {judged:?}");
    }
}

#[tokio::test]
async fn a_null_claim_of_an_id_token_is_absent() {
    let bench = bench();
    let good = json!({
        "iss": bench.provider.issuer(), "sub": "alice", "aud": CLIENT_ID, "iat": NOW, "exp": NOW + 120,
        "nonce": "nonce",
    });
    let optional = json!({
        "nbf": null, "azp": null, "at_hash": null, "auth_time": null, "sid": null, "session_expiry": null,
        "middle_name": null,
    });
    for (claims, accepted) in [
        (optional.clone(), true),
        (json!({ "sub": null }), false),
        (json!({ "nonce": null }), false),
        (json!({ "exp": null }), false),
        (json!({ "aud": null }), false),
    ] {
        let raw = bench.provider.sign(with(&good, &claims));
        let login = bench.login_with(|script| script.id_token = IdTokenShape::Raw(raw));
        let token = login.await;
        assert_eq!(token.is_ok(), accepted, "{claims}: {token:?}");
        assert!(token.is_err() || !token.expect("a token").claims.contains_key("middle_name"));
    }
    let raw = bench
        .provider
        .sign(with(&with(&good, &optional), &json!({ "nonce": null })));
    let expected = ExpectedRefreshedIdToken {
        iss: bench.provider.issuer(),
        sub: "alice",
        nonce: Some("nonce"),
        access_token: "access",
    };
    let refreshed = bench
        .party
        .validate_refreshed_id_token(&raw, &expected, NOW)
        .await;
    assert!(refreshed.is_ok(), "{refreshed:?}");
}

#[tokio::test]
async fn a_null_claim_of_an_access_token_or_its_introspection_is_absent() {
    let bench = bench();
    let good = json!({
        "active": true, "iss": bench.provider.issuer(), "sub": "alice", "aud": "orders", "iat": NOW, "exp": NOW + 120,
        "client_id": "machine",
    });
    let is_orders = |audience: &str| audience == "orders";
    let all =
        json!({ "nbf": null, "scope": null, "cnf": null, "authorization_details": null, "auth_time": null });
    let raw = bench
        .provider
        .sign_with_header(json!({ "typ": "at+jwt" }), with(&good, &all));
    let token = bench.party.validate_access_token(&raw, is_orders, &[], NOW).await;
    assert!(token.is_ok(), "{token:?}");
    for (claims, accepted) in [
        (all, true),
        (
            json!({ "iss": null, "sub": null, "username": null, "exp": null, "iat": null, "token_type": null }),
            true,
        ),
        (json!({ "aud": null }), false),
        (json!({ "client_id": null }), false),
        (json!({ "active": null }), false),
    ] {
        let said = with(&good, &claims);
        let signed = json!({
            "iss": bench.provider.issuer(), "aud": CLIENT_ID, "iat": NOW, "token_introspection": said,
        });
        let signed = bench
            .provider
            .sign_with_header(json!({ "typ": "token-introspection+jwt" }), signed);
        for answer in [
            Answer::json(200, &said),
            Answer::text(200, "application/token-introspection+jwt", signed.as_str()),
        ] {
            bench
                .provider
                .script(|script| drop(script.answers.insert(Endpoint::Introspection, answer)));
            let token = bench.party.introspect("opaque", NOW).await;
            let judged = token.and_then(|token| token.check(is_orders, &[], NOW));
            assert_eq!(judged.is_ok(), accepted, "{claims}: {judged:?}");
        }
    }
}

#[tokio::test]
async fn a_null_claim_of_userinfo_is_absent() {
    let bench = bench();
    let said = json!({ "sub": "alice", "name": "Alice", "email": null, "exp": null, "nbf": null });
    let signed = with(
        &said,
        &json!({ "iss": bench.provider.issuer(), "aud": CLIENT_ID, "azp": null }),
    );
    let signed = bench.provider.sign(signed);
    for answer in [
        Answer::json(200, &said),
        Answer::text(200, "application/jwt", signed.as_str()),
    ] {
        bench
            .provider
            .script(|script| drop(script.answers.insert(Endpoint::Userinfo, answer)));
        let claims = bench.party.userinfo("Bearer", "token", "alice", NOW).await;
        let claims = claims.expect("userinfo");
        assert!(
            claims.contains_key("name") && !claims.contains_key("email"),
            "{claims:?}"
        );
    }
}
