//! Mutates seeds of everything that a provider, or an attacker in its place, can send. No parser may panic,
//! and accepted values must keep the parser's guarantees.
//!
//! `seeds/` has one folder for each parser. Runs are short and deterministic; a failing input is printed. The
//! package `fuzz` tests the whole edge with such inputs.

#[path = "fuzz_tests/mutated.rs"]
mod mutated;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use url::Url;

use self::mutated::run;
use crate::json::strict_object;
use crate::tokens::jws::{MAX_TOKEN_BYTES, UnverifiedToken};
use crate::tokens::key_set::{KeySet, SignatureVerdict};
use crate::tokens::userinfo;
use crate::{
    AcceptedAlgorithms, ExpectedIdToken, ExpectedRefreshedIdToken, IdToken, LogoutToken, Metadata,
    ProviderSettings, SigningAlgorithm,
};

const ISSUER: &str = "https://op.example";
const NOW: u64 = 1_800_000_000;
fn object(bytes: &[u8]) -> Map<String, Value> {
    serde_json::from_slice(bytes).unwrap_or_default()
}

#[test]
fn metadata_of_any_shape_is_for_the_issuer_and_over_https_or_it_is_refused() {
    run("metadata", |bytes| {
        if let Ok(metadata) = Metadata::from_document(&object(bytes), ISSUER, bytes.len() % 2 == 0) {
            assert_eq!(metadata.issuer, ISSUER);
            let all = [
                metadata.authorization_endpoint.url(),
                &metadata.token_endpoint,
                &metadata.jwks_uri,
            ];
            assert!(all.iter().all(|url| url.scheme() == "https"));
        }
    });
}

#[test]
fn keys_of_any_shape_verify_nothing_that_was_not_signed() {
    for algorithm in [
        SigningAlgorithm::Rs256,
        SigningAlgorithm::Es256,
        SigningAlgorithm::EdDsa,
    ] {
        let raw = token(&format!("{{\"alg\":\"{algorithm}\"}}"), "{}");
        let token = UnverifiedToken::parse(&raw, &AcceptedAlgorithms::Auto).expect("a token");
        run("jwks", |bytes| {
            if let Some(keys) = KeySet::new(&object(bytes)) {
                assert_ne!(keys.verify(&token), SignatureVerdict::Verified);
            }
        });
    }
}

/// A compact token with an invalid signature.
fn token(header: &str, claims: &str) -> String {
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{}", encode(header), encode(claims), "A".repeat(86))
}

#[test]
fn tokens_of_any_shape_parse_only_with_the_right_algorithm_and_without_crit() {
    let named = AcceptedAlgorithms::Named(vec![SigningAlgorithm::Rs256]);
    run("token", |bytes| {
        let raw = String::from_utf8_lossy(bytes);
        if let Ok(token) = UnverifiedToken::parse(&raw, &named) {
            assert!(raw.len() <= MAX_TOKEN_BYTES);
            let header = raw
                .split('.')
                .next()
                .and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
            let header = strict_object(&header.expect("base64url")).expect("an object");
            assert_eq!(header.get("alg"), Some(&Value::from("RS256")));
            assert!(!header.contains_key("crit"));
            let _ = token.claims();
        }
    });
}

#[test]
fn claims_of_any_shape_are_those_that_were_requested_or_refused() {
    let settings = ProviderSettings::new(ISSUER, "client");
    let expected = ExpectedIdToken {
        nonce: "nonce",
        access_token: Some("token"),
        max_age: Some(600),
        acr_values: Some("gold"),
        organization: Some("org_1"),
    };
    run("id_token", |bytes| {
        let claims = strict_object(bytes).unwrap_or_default();
        if let Ok(token) = IdToken::of_login(
            (claims.clone(), SigningAlgorithm::Rs256),
            &settings,
            &expected,
            NOW,
        ) {
            assert_eq!(
                (token.iss.as_str(), &claims["nonce"]),
                (ISSUER, &Value::from("nonce"))
            );
            assert!(!token.sub.is_empty() && token.auth_time.is_some());
        }
        let expected = ExpectedRefreshedIdToken {
            iss: ISSUER,
            sub: "alice",
            nonce: Some("nonce"),
            access_token: "access",
        };
        let _ = IdToken::of_refresh(
            (claims.clone(), SigningAlgorithm::Rs256),
            &settings,
            &expected,
            NOW,
        );
        if let Ok(token) = LogoutToken::validate(&claims, &settings, NOW) {
            assert!(token.sub.is_some() || token.sid.is_some());
            assert!(!claims.contains_key("nonce") && !token.jti.is_empty());
        }
        if let Ok(person) = userinfo::about(claims, "alice") {
            assert_eq!(person["sub"], "alice");
            assert!(!person.contains_key("iss") && !person.contains_key("acr"));
        }
    });
}

#[test]
fn issuer_documents_of_any_shape_are_for_the_issuer_and_over_https_or_they_are_refused() {
    let settings = ProviderSettings::of_signer(ISSUER, Url::parse(ISSUER).expect("a URL"));
    run("issuer_document", |bytes| {
        if let Ok(metadata) = settings.check_document(object(bytes)) {
            assert_eq!(object(bytes)["issuer"], ISSUER);
            assert_eq!(metadata.jwks_uri.scheme(), "https");
        }
    });
}
