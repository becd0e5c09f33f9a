//! A proof with one wrong part at a time.

use serde_json::json;

use super::*;
use crate::tokens::proof_key_tests::ProofKey;

const NOW: u64 = 1_800_000_000;
const TOKEN: &str = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
/// The hash of that token in RFC 9449 section 7.1.
const ATH: &str = "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo";

impl ProofKey {
    /// A valid proof, patched.
    fn dpop_proof(&self, header: &Value, claims: &Value) -> String {
        let right = json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": self.jwk() });
        let said = json!({ "htm": "GET", "htu": "https://api.example/orders", "iat": NOW, "jti": "one", "ath": ATH });
        self.signed((right, header), (said, claims))
    }

    fn verify(&self, raw: &str) -> Result<VerifiedProof, ProofError> {
        let url = Url::parse("https://api.example/orders?page=2#top").expect("a URL");
        let thumbprint =
            thumbprint(&required_members(self.jwk().as_object().expect("a key")).expect("members"));
        let expected = ExpectedProof {
            method: "GET",
            url: &url,
            access_token: TOKEN,
            thumbprint: &thumbprint,
        };
        verify_proof(raw, &expected, NOW)
    }
}

#[test]
fn a_proof_about_this_request_and_this_token_holds() {
    let client = ProofKey::new();
    for (header, claims) in [
        (json!({}), json!({})),
        (json!({ "typ": "application/DPoP+jwt" }), json!({})),
        (json!({ "kid": "any" }), json!({ "nonce": "ignored" })),
        (
            json!({}),
            json!({ "htu": "HTTPS://API.example:443/x/../orders?other=1" }),
        ),
        (json!({}), json!({ "iat": NOW - PROOF_WINDOW_SECS })),
        (json!({}), json!({ "iat": NOW + PROOF_WINDOW_SECS })),
    ] {
        let verified = client.verify(&client.dpop_proof(&header, &claims));
        assert_eq!(
            verified,
            Ok(VerifiedProof {
                jti: "one".to_owned()
            }),
            "{header} {claims}"
        );
    }
}

#[test]
fn each_thing_a_proof_says_wrong_is_its_end() {
    use ProofError as Refused;
    let (client, other) = (ProofKey::new(), ProofKey::new());
    let mut private = client.jwk();
    private["d"] = json!("AAAA");
    let octets = json!({ "kty": "oct", "k": "AAAA" });
    for (header, claims, refused) in [
        (json!({ "typ": null }), json!({}), Refused::Type),
        (json!({ "typ": "JWT" }), json!({}), Refused::Type),
        (json!({ "typ": "at+jwt" }), json!({}), Refused::Type),
        (json!({ "crit": ["exp"] }), json!({}), Refused::Type),
        (json!({ "alg": "none" }), json!({}), Refused::Algorithm),
        (json!({ "alg": "HS256" }), json!({}), Refused::Algorithm),
        (json!({ "alg": "RS256" }), json!({}), Refused::Key),
        (json!({ "jwk": null }), json!({}), Refused::Key),
        (json!({ "jwk": private }), json!({}), Refused::Key),
        (json!({ "jwk": octets }), json!({}), Refused::Key),
        (json!({ "jwk": other.jwk() }), json!({}), Refused::OtherKey),
        (json!({}), json!({ "htm": "POST" }), Refused::Method),
        (json!({}), json!({ "htm": "get" }), Refused::Method),
        (json!({}), json!({ "htm": null }), Refused::Method),
        (
            json!({}),
            json!({ "htu": "https://api.example/orders/7" }),
            Refused::Address,
        ),
        (
            json!({}),
            json!({ "htu": "http://api.example/orders" }),
            Refused::Address,
        ),
        (
            json!({}),
            json!({ "htu": "https://evil.example/orders" }),
            Refused::Address,
        ),
        (json!({}), json!({ "htu": "/orders" }), Refused::Address),
        (json!({}), json!({ "htu": null }), Refused::Address),
        (
            json!({}),
            json!({ "iat": NOW - PROOF_WINDOW_SECS - 1 }),
            Refused::IssuedAt,
        ),
        (
            json!({}),
            json!({ "iat": NOW + PROOF_WINDOW_SECS + 1 }),
            Refused::IssuedAt,
        ),
        (json!({}), json!({ "iat": "now" }), Refused::IssuedAt),
        (json!({}), json!({ "iat": null }), Refused::IssuedAt),
        (json!({}), json!({ "ath": null }), Refused::TokenHash),
        (json!({}), json!({ "ath": "AAAA" }), Refused::TokenHash),
        (json!({}), json!({ "jti": null }), Refused::TokenId),
        (json!({}), json!({ "jti": "" }), Refused::TokenId),
        (json!({}), json!({ "jti": "j".repeat(513) }), Refused::TokenId),
        (
            json!({}),
            json!({ "padding": "x".repeat(4_096) }),
            Refused::Malformed,
        ),
    ] {
        let raw = client.dpop_proof(&header, &claims);
        assert_eq!(client.verify(&raw), Err(refused), "{header} {claims}");
    }
    for raw in ["", "a.b", "a.b.c", "e30.e30."] {
        assert!(client.verify(raw).is_err(), "{raw}");
    }
    let stolen = other.dpop_proof(&json!({ "jwk": client.jwk() }), &json!({}));
    assert_eq!(
        client.verify(&stolen),
        Err(Refused::Signature),
        "the public key is no secret"
    );
}
