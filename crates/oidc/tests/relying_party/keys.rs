//! The provider's keys: weak, unusual, rotated, old or unavailable. Tests move tokio's clock.

use std::time::Duration;

use oidc::{AcceptedAlgorithms, IdTokenError, SigningAlgorithm};
use scripted_provider::{Answer, Endpoint, IdTokenShape};
use serde_json::{Value, json};

use crate::support::{Bench, bench, bench_with, later, request};

/// Longer than any cache lifetime.
const BEYOND_ALL_CACHES: Duration = Duration::from_secs(601);

async fn published(bench: &Bench) -> Vec<Value> {
    let document = reqwest::get(bench.provider.url(Endpoint::Jwks))
        .await
        .expect("keys");
    let document: Value = serde_json::from_slice(&document.bytes().await.expect("keys")).expect("JSON");
    document["keys"].as_array().expect("a list").clone()
}

/// A number with this many base64url characters, of six bits each except the last.
fn modulus(characters: usize) -> String {
    format!("{}w", "v".repeat(characters - 1))
}

// conformance: B-088
#[tokio::test]
async fn weak_keys_and_keys_of_another_curve_are_never_used() {
    let bench = bench();
    let [mut rsa, ec, ..] = <[Value; 5]>::try_from(published(&bench).await).expect("five keys");
    let mut secret = rsa.clone();
    secret["kty"] = json!("oct");
    rsa["n"] = json!(modulus(171)); // 1,024 bits
    for (algorithm, key) in [
        (SigningAlgorithm::Rs256, rsa),
        (SigningAlgorithm::Rs256, secret),
        (
            SigningAlgorithm::Es256,
            json!({ "kty": "EC", "crv": "P-384", "kid": ec["kid"], "x": ec["x"], "y": ec["y"] }),
        ),
        (
            SigningAlgorithm::Es256,
            json!({ "kty": "EC", "crv": "secp256k1", "kid": ec["kid"], "x": ec["x"], "y": ec["y"] }),
        ),
        (
            SigningAlgorithm::Es256,
            json!({ "kty": "oct", "kid": ec["kid"], "k": "AAAA" }),
        ),
        (
            SigningAlgorithm::EdDsa,
            json!({ "kty": "OKP", "crv": "X25519", "kid": "EdDSA-0", "x": ec["x"] }),
        ),
    ] {
        let bench = bench_with(|settings| settings.signing_algs = AcceptedAlgorithms::Named(vec![algorithm]));
        bench.provider.script(|script| {
            script.algorithm = algorithm.name();
            script.jwks = Some(json!({ "keys": [key] }));
        });
        assert!(
            matches!(bench.login().await, Err(IdTokenError::UnknownKey)),
            "{key}"
        );
    }
}

// conformance: B-088
#[tokio::test]
async fn a_point_that_is_not_on_the_curve_verifies_nothing() {
    let bench = bench_with(|settings| {
        settings.signing_algs = AcceptedAlgorithms::Named(vec![SigningAlgorithm::Es256])
    });
    let [_, mut ec, ..] = <[Value; 5]>::try_from(published(&bench).await).expect("five keys");
    ec["y"] = json!("A".repeat(43));
    bench.provider.script(|script| {
        script.algorithm = "ES256";
        script.jwks = Some(json!({ "keys": [ec] }));
    });
    assert!(matches!(
        bench.login().await,
        Err(IdTokenError::Signature | IdTokenError::UnknownKey)
    ));
}

#[tokio::test]
async fn the_right_key_is_found_behind_any_number_of_others() {
    let right = published(&bench()).await.swap_remove(0);
    let with = |members: Value| {
        let mut key = right.clone();
        for (name, value) in members.as_object().expect("an object") {
            key[name] = value.clone();
        }
        key
    };
    let other = with(json!({ "n": modulus(342) }));
    let mut nameless = other.clone();
    nameless.as_object_mut().expect("an object").remove("kid");
    let kinds = [
        ("unknown types", json!({ "kty": "odd" }), 1_000),
        ("junk", json!("junk"), 1_000),
        (
            "other names",
            with(json!({ "kid": "other", "n": modulus(342) })),
            500,
        ),
        ("no names", nameless, 100),
        ("another use", with(json!({ "use": "enc" })), 500),
        (
            "another algorithm",
            with(json!({ "alg": "PS256", "n": modulus(342) })),
            500,
        ),
        (
            "the same name for another type",
            json!({ "kty": "EC", "kid": right["kid"] }),
            1_000,
        ),
        ("the same name", other.clone(), 7),
    ];
    for (what, before, count) in kinds {
        let bench = bench();
        let mut keys = vec![before; count];
        keys.push(right.clone());
        bench
            .provider
            .script(|script| script.jwks = Some(json!({ "keys": keys })));
        let login = bench.login().await;
        assert!(login.is_ok(), "behind {count} with {what}: {login:?}");
    }
    for (count, known) in [(31, true), (32, false)] {
        let bench = bench();
        let mut keys = vec![other.clone(); count];
        keys.push(right.clone());
        bench.provider.script(|script| {
            script.jwks = Some(json!({ "keys": keys }));
            script.id_token = IdTokenShape::NoKid;
        });
        let login = bench.login().await;
        assert_eq!(login.is_ok(), known, "without a name behind {count}: {login:?}");
        assert!(login.is_ok() || matches!(login, Err(IdTokenError::UnknownKey)));
    }
}

#[tokio::test]
async fn a_kid_of_another_kind_of_key_does_not_change_the_algorithm() {
    let bench = bench();
    let login = bench.login_with(|script| {
        script.header.insert("kid".into(), json!("ES256-0"));
    });
    assert!(matches!(login.await, Err(IdTokenError::UnknownKey)));
}

#[tokio::test]
async fn addresses_of_keys_in_a_header_are_not_followed() {
    let bench = bench();
    let elsewhere = bench.provider.url(Endpoint::Revocation);
    let login = bench.login_with(|script| {
        for name in ["jku", "x5u"] {
            script.header.insert(name.into(), json!(elsewhere));
        }
        script.header.insert("x5c".into(), json!(["AAAA"]));
        script
            .header
            .insert("jwk".into(), json!({ "kty": "oct", "k": "AAAA" }));
    });
    login.await.expect("signed by the published key");
    assert_eq!(bench.provider.calls(Endpoint::Revocation), 0);
}

#[tokio::test]
async fn an_answer_that_is_no_key_set_is_an_outage_and_not_a_verdict() {
    for answer in [
        Answer::json(200, &json!({ "keys": "none" })),
        Answer::json(200, &json!([])),
        Answer::text(200, "text/html", "<html>sign in</html>"),
        Answer::status(500),
    ] {
        let bench = bench();
        bench.provider.script(|script| {
            script.answers.insert(Endpoint::Jwks, answer.clone());
        });
        assert!(
            matches!(bench.login().await, Err(IdTokenError::Provider(_))),
            "{answer:?}"
        );
    }
}

// conformance: A-033
#[tokio::test]
async fn keys_that_rotate_while_a_sign_in_is_under_way_are_followed() {
    let bench = bench();
    bench.login().await.expect("the first key");
    let code = bench.code().await;
    bench.provider.rotate_keys(); // between the authorization and the token
    let tokens = bench.redeem(&code).await.expect("tokens");
    bench.judge(&tokens).await.expect("the very next key");
    let fetched = bench.provider.calls(Endpoint::Jwks);
    bench.provider.publish_key();
    later(BEYOND_ALL_CACHES).await;
    bench.login().await.expect("both keys are published");
    bench.provider.rotate_keys();
    bench.login().await.expect("a key known before it was used");
    assert_eq!(bench.provider.calls(Endpoint::Jwks), fetched + 1);
}

// conformance: B-098
#[tokio::test]
async fn a_key_that_is_withdrawn_verifies_nothing_once_the_cache_is_old() {
    let bench = bench();
    bench.login().await.expect("a published key");
    bench
        .provider
        .script(|script| script.jwks = Some(json!({ "keys": [] })));
    bench.login().await.expect("known and fresh");
    later(BEYOND_ALL_CACHES).await;
    assert!(matches!(bench.login().await, Err(IdTokenError::UnknownKey)));
}

// conformance: B-097
#[tokio::test]
async fn old_metadata_and_keys_serve_while_the_provider_is_down_and_no_longer() {
    let bench = bench();
    let tokens = bench.exchange().await.expect("tokens");
    bench.judge(&tokens).await.expect("the key is known");
    bench.provider.stop();
    later(BEYOND_ALL_CACHES).await;
    bench
        .party
        .authorization_url(&request())
        .await
        .expect("old metadata");
    bench.judge(&tokens).await.expect("an old key");
    bench.provider.start_again();
    let calls = bench.provider.calls(Endpoint::Discovery);
    later(Duration::from_secs(1)).await;
    bench
        .party
        .authorization_url(&request())
        .await
        .expect("new metadata");
    assert_eq!(bench.provider.calls(Endpoint::Discovery), calls + 1);
}

#[tokio::test]
async fn nothing_waits_for_a_refresh_ahead_of_time() {
    let bench = bench();
    bench.party.metadata().await.expect("metadata");
    let gate = bench.provider.hold(Endpoint::Discovery);
    later(Duration::from_secs(400)).await;
    bench
        .party
        .metadata()
        .await
        .expect("still fresh, though the provider does not answer");
    bench.provider.wait_for_calls(Endpoint::Discovery, 2).await;
    gate.release();
}
