//! Access tokens at a resource: JWTs (RFC 9068), and opaque ones with introspection (RFC 7662).

use oidc::{AcceptedAlgorithms, AccessTokenError, SigningAlgorithm, TokenBinding};
use scripted_provider::{Answer, CLIENT_ID, Endpoint};
use serde_json::{Value, json};

use crate::support::{Bench, NOW, bench, bench_with};

const ORDERS: &str = "https://orders.example";

fn patched(claims: Value) -> Value {
    let mut own = json!({ "aud": ORDERS, "scope": "orders:read orders:write" });
    for (name, value) in claims.as_object().expect("a patch") {
        own[name] = value.clone();
    }
    own
}

async fn reason(bench: &Bench, raw: &str) -> &'static str {
    match bench
        .party
        .validate_access_token(raw, |audience| audience == ORDERS, &[], NOW)
        .await
    {
        Ok(_) => "",
        Err(error) => error.reason(),
    }
}

#[tokio::test]
async fn a_jwt_access_token_says_who_and_for_what() {
    let bench = bench();
    let raw = bench
        .provider
        .access_token(patched(json!({ "auth_time": NOW - 5, "cnf": { "jkt": "key" } })));
    let token = bench
        .party
        .validate_access_token(&raw, |audience| audience == ORDERS, &[], NOW)
        .await
        .expect("good");
    assert_eq!(
        (token.iss.as_str(), token.sub.as_deref()),
        (bench.provider.issuer(), Some("alice"))
    );
    assert_eq!(
        (token.client_id.as_str(), token.auth_time),
        ("machine", Some(NOW - 5))
    );
    assert_eq!(
        (token.exp, token.binding.clone()),
        (Some(NOW + 300), TokenBinding::Key("key".to_owned()))
    );
    assert!(token.has_scope("orders:read") && token.has_scope("orders:write"));
    assert!(
        !token.has_scope("orders") && !token.has_scope("") && !token.has_scope("orders:read orders:write")
    );
    assert!(
        token.check(|audience| audience == ORDERS, &[], NOW + 360).is_ok(),
        "the clocks may differ by a minute"
    );
    for (audience, now, refused) in [
        (ORDERS, NOW + 361, "expired"),
        (ORDERS, NOW - 61, "iat"),
        ("https://orders.example/", NOW, "aud"),
        ("", NOW, "aud"),
    ] {
        let checked = token
            .check(|named| named == audience, &[], now)
            .map_err(|error| error.reason());
        assert_eq!(checked, Err(refused), "{audience} {now}");
    }
}

#[tokio::test]
async fn each_claim_wrong_is_the_end_of_an_access_token() {
    let bench = bench();
    for (claims, refused) in [
        (json!({}), ""),
        (json!({ "aud": ["https://other.example", ORDERS] }), ""),
        (json!({ "jti": null, "scope": null }), ""),
        (
            json!({ "exp": NOW - 60, "iat": NOW - 90_000, "nbf": NOW + 60 }),
            "",
        ),
        (json!({ "iss": null }), "iss"),
        (json!({ "iss": "https://evil.example" }), "iss"),
        (json!({ "iss": format!("{}/", bench.provider.issuer()) }), "iss"),
        (json!({ "aud": null }), "aud"),
        (json!({ "aud": CLIENT_ID }), "aud"),
        (json!({ "aud": [] }), "aud"),
        (json!({ "aud": { "0": ORDERS } }), "aud"),
        (json!({ "aud": "https://orders.example.evil.example" }), "aud"),
        (json!({ "exp": null }), "expired"),
        (json!({ "exp": NOW - 61 }), "expired"),
        (json!({ "exp": "never" }), "expired"),
        (json!({ "nbf": NOW + 61 }), "nbf"),
        (json!({ "nbf": "now" }), "nbf"),
        (json!({ "iat": null }), "iat"),
        (json!({ "iat": NOW + 61 }), "iat"),
        (json!({ "sub": null }), "sub"),
        (json!({ "sub": "" }), "sub"),
        (json!({ "sub": "s".repeat(256) }), "sub"),
        (json!({ "sub": "alice\r\nX-Auth-Subject: bob" }), "sub"),
        (json!({ "sub": "alice\u{85}" }), "sub"),
        (json!({ "client_id": null }), "client_id"),
        (json!({ "client_id": "" }), "client_id"),
        (json!({ "client_id": ["machine"] }), "client_id"),
        (json!({ "scope": ["orders:read"] }), "scope_malformed"),
        (
            json!({ "cnf": { "x5t#S256": "A4DtL2JmUMhAsvJj5tKyn64SqzmuXbMrJa0n761y5v0" } }),
            "cnf",
        ),
        (
            json!({ "cnf": { "jkt": "key", "x5t#S256": "certificate" } }),
            "cnf",
        ),
        (json!({ "cnf": {} }), "cnf"),
        (json!({ "cnf": { "jkt": "" } }), "cnf"),
        (json!({ "cnf": "jkt" }), "cnf"),
    ] {
        let raw = bench.provider.access_token(patched(claims.clone()));
        assert_eq!(reason(&bench, &raw).await, refused, "{claims}");
    }
}

#[tokio::test]
async fn no_other_kind_of_token_and_no_other_signature_passes_for_an_access_token() {
    let bench = bench();
    let with = |header: Value| {
        bench
            .provider
            .access_token_with_header(header, patched(json!({})))
    };
    for (header, refused) in [
        (json!({ "typ": "application/at+jwt" }), ""),
        (json!({ "typ": "AT+JWT" }), ""),
        (json!({ "kid": null }), ""),
        (json!({ "typ": null }), "typ"),
        (json!({ "typ": "JWT" }), "typ"),
        (json!({ "typ": "logout+jwt" }), "typ"),
        (json!({ "typ": "dpop+jwt" }), "typ"),
        (json!({ "typ": "token-introspection+jwt" }), "typ"),
        (json!({ "alg": "none" }), "alg"),
        (json!({ "alg": "None" }), "alg"),
        (json!({ "alg": "HS256" }), "alg"),
        (json!({ "alg": null }), "alg"),
        (json!({ "crit": ["exp"] }), "header"),
        (json!({ "kid": "nobody-knows-me" }), "unknown_key"),
        (json!({ "alg": "ES384" }), "unknown_key"),
    ] {
        assert_eq!(reason(&bench, &with(header.clone())).await, refused, "{header}");
    }
    let good = with(json!({}));
    let (signed, _) = good.rsplit_once('.').expect("a signature");
    assert_eq!(
        reason(&bench, &format!("{signed}.{}", "A".repeat(342))).await,
        "signature"
    );
    assert_eq!(reason(&bench, &format!("{signed}.")).await, "signature");
    let tokens = bench.provider.sign_in("openid");
    let id_token = tokens["id_token"].as_str().expect("an ID token");
    assert_eq!(reason(&bench, id_token).await, "typ");
    let logout_token = bench
        .provider
        .logout_token(json!({ "sub": "alice", "aud": ORDERS, "client_id": "machine" }));
    assert_eq!(reason(&bench, &logout_token).await, "typ");
    let long = bench
        .provider
        .access_token(patched(json!({ "padding": "x".repeat(16_384) })));
    for malformed in ["", "a.b", "opaque", "a.b.c.d.e", &long] {
        assert_eq!(reason(&bench, malformed).await, "malformed", "{malformed}");
    }
}

#[tokio::test]
async fn access_tokens_may_be_signed_otherwise_than_id_tokens() {
    for id_tokens in [SigningAlgorithm::Rs256, SigningAlgorithm::Hs256] {
        let named = AcceptedAlgorithms::Named(vec![id_tokens]);
        let bench = bench_with(|settings| settings.signing_algs = named);
        for algorithm in ["RS256", "PS256", "ES256", "EdDSA"] {
            bench.provider.script(|script| script.algorithm = algorithm);
            let raw = bench.provider.access_token(patched(json!({})));
            assert_eq!(reason(&bench, &raw).await, "", "{id_tokens} {algorithm}");
        }
        bench.provider.script(|script| script.algorithm = "HS256");
        let raw = bench.provider.access_token(patched(json!({})));
        assert_eq!(
            reason(&bench, &raw).await,
            "alg",
            "a client that knows the secret is no provider"
        );
    }
}

#[tokio::test]
async fn a_storm_of_unknown_keys_is_one_fetch_and_a_rotated_key_is_found() {
    let bench = bench();
    assert_eq!(
        reason(&bench, &bench.provider.access_token(patched(json!({})))).await,
        ""
    );
    bench.provider.rotate_keys();
    assert_eq!(
        reason(&bench, &bench.provider.access_token(patched(json!({})))).await,
        ""
    );
    let before = bench.provider.calls(Endpoint::Jwks);
    for number in 0..1_000 {
        let header = json!({ "kid": format!("kid-{number}") });
        let raw = bench
            .provider
            .access_token_with_header(header, patched(json!({})));
        assert_eq!(reason(&bench, &raw).await, "unknown_key");
    }
    assert_eq!(
        bench.provider.calls(Endpoint::Jwks),
        before,
        "the interval has one fetch, and it is used up"
    );
    bench.provider.stop();
    assert_eq!(
        reason(&bench, &bench.provider.access_token(patched(json!({})))).await,
        "",
        "keys are kept"
    );
}

#[tokio::test]
async fn keys_that_were_never_had_are_no_verdict() {
    let bench = bench();
    bench.provider.stop();
    assert_eq!(
        reason(&bench, &bench.provider.access_token(patched(json!({})))).await,
        "provider_unavailable"
    );
}

async fn introspected(bench: &Bench, raw: &str) -> Result<oidc::VerifiedAccessToken, AccessTokenError> {
    let token = bench.party.introspect(raw, NOW).await?;
    token.check(|audience| audience == ORDERS, &[], NOW)?;
    Ok(token)
}

fn opaque(bench: &Bench) -> String {
    let tokens = bench.provider.sign_in("orders:read");
    tokens["access_token"].as_str().expect("a token").to_owned()
}

#[tokio::test]
async fn an_opaque_token_is_what_the_provider_says_of_it_plain_or_signed() {
    let bench = bench();
    bench
        .provider
        .script(|script| drop(script.introspection.insert("aud".to_owned(), json!(ORDERS))));
    for signed in [false, true] {
        bench.provider.script(|script| script.introspection_jwt = signed);
        let raw = opaque(&bench);
        let token = introspected(&bench, &raw).await.expect("active");
        assert_eq!(
            (token.sub.as_deref(), token.client_id.as_str()),
            (Some("alice"), "machine")
        );
        assert!(token.has_scope("orders:read") && token.exp == Some(NOW + 3600));
        let asked = bench.provider.last_request(Endpoint::Introspection);
        assert_eq!(asked.param("token"), Some(raw.as_str()));
        assert_eq!(asked.param("token_type_hint"), Some("access_token"));
        let unknown = introspected(&bench, "nobody-knows-me").await;
        assert!(matches!(unknown, Err(AccessTokenError::Inactive)), "{unknown:?}");
    }
}

#[tokio::test]
async fn what_introspection_says_wrong_is_the_end_of_a_token() {
    let bench = bench();
    for (said, refused) in [
        (json!({}), ""),
        (
            json!({ "iss": null, "exp": null, "iat": null, "token_type": null }),
            "",
        ),
        (json!({ "sub": null }), ""),
        (json!({ "username": "Alice" }), ""),
        (json!({ "sub": null, "username": "Alice" }), "sub"),
        (json!({ "token_type": "DPoP", "cnf": { "jkt": "key" } }), ""),
        (json!({ "active": "true" }), "provider_unavailable"),
        (json!({ "active": null }), "provider_unavailable"),
        (json!({ "active": false }), "inactive"),
        (json!({ "aud": null }), "aud"),
        (json!({ "aud": "https://other.example" }), "aud"),
        (json!({ "iss": "https://evil.example" }), "iss"),
        (json!({ "exp": NOW - 61 }), "expired"),
        (json!({ "exp": "never" }), "expired"),
        (json!({ "nbf": NOW + 61 }), "nbf"),
        (json!({ "iat": NOW + 61 }), "iat"),
        (json!({ "client_id": null }), "client_id"),
        (json!({ "token_type": "access_token" }), ""),
        (json!({ "token_type": "Access_Token" }), ""),
        (json!({ "token_type": "refresh_token" }), "token_type"),
        (json!({ "token_type": "id_token" }), "token_type"),
        (json!({ "token_type": 1 }), "token_type"),
        (json!({ "cnf": { "x5t#S256": "certificate" } }), "cnf"),
    ] {
        let patch = patched(said.clone());
        bench
            .provider
            .script(|script| script.introspection = patch.as_object().cloned().expect("members"));
        let verdict = introspected(&bench, &opaque(&bench)).await;
        let reason = verdict.map_or_else(|error| error.reason(), |_| "");
        assert_eq!(reason, refused, "{said}");
    }
}

#[tokio::test]
async fn an_introspection_that_cannot_be_had_or_trusted_is_no_verdict() {
    let bench = bench();
    let patch = patched(json!({}));
    bench
        .provider
        .script(|script| script.introspection = patch.as_object().cloned().expect("members"));
    let raw = opaque(&bench);
    for answer in [
        Answer::status(500),
        Answer::status(401),
        Answer::text(200, "text/html", "<html>sign in</html>"),
        Answer::text(200, "application/json", "{\"active\":true,\"active\":true}"),
        Answer::text(200, "application/token-introspection+jwt", "e30.e30.AAAA"),
    ] {
        bench
            .provider
            .script(|script| drop(script.answers.insert(Endpoint::Introspection, answer.clone())));
        let verdict = introspected(&bench, &raw).await;
        assert!(
            matches!(verdict, Err(AccessTokenError::Provider(_))),
            "{answer:?} {verdict:?}"
        );
    }
    bench.provider.script(|script| script.answers.clear());
    let signed = |header: Value, claims: Value| {
        let mut own = json!({ "iss": bench.provider.issuer(), "aud": CLIENT_ID, "iat": NOW,
            "token_introspection": { "active": true, "aud": ORDERS, "client_id": "machine" } });
        for (name, value) in claims.as_object().expect("a patch") {
            own[name] = value.clone();
        }
        let mut head = json!({ "typ": "token-introspection+jwt" });
        for (name, value) in header.as_object().expect("a patch") {
            head[name] = value.clone();
        }
        bench.provider.sign_with_header(head, own)
    };
    for (header, claims, good) in [
        (json!({}), json!({}), true),
        (json!({ "typ": "JWT" }), json!({}), false),
        (json!({ "alg": "HS256" }), json!({}), false),
        (json!({}), json!({ "iss": "https://evil.example" }), false),
        (json!({}), json!({ "aud": "another" }), false),
        (json!({}), json!({ "token_introspection": null }), false),
        (json!({ "kid": "published-later" }), json!({}), false),
    ] {
        let body = signed(header.clone(), claims.clone());
        let answer = Answer::text(200, "application/token-introspection+jwt", body.as_str());
        bench
            .provider
            .script(|script| drop(script.answers.insert(Endpoint::Introspection, answer)));
        let verdict = introspected(&bench, &raw).await;
        let fits = match &verdict {
            Ok(_) => good,
            Err(error) => !good && matches!(error, AccessTokenError::Provider(_)),
        };
        assert!(fits, "{header} {claims} {verdict:?}");
    }
    let without = crate::support::bench();
    let null = json!(null);
    let metadata = |script: &mut scripted_provider::Script| {
        script.metadata.insert("introspection_endpoint".to_owned(), null);
    };
    without.provider.script(metadata);
    let verdict = introspected(&without, "any").await;
    assert!(
        matches!(verdict, Err(AccessTokenError::Provider(_))),
        "{verdict:?}"
    );
}
