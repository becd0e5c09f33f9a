//! Each thing a proof says, wrong one at a time.

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING as ES256, EcdsaKeyPair, KeyPair as _};
use serde_json::json;

use super::*;

const NOW: u64 = 1_800_000_000;
const TOKEN: &str = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
/// The hash of that token, as RFC 9449 section 7.1 has it.
const ATH: &str = "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo";

struct Client {
    pair: EcdsaKeyPair,
}

impl Client {
    fn new() -> Self {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ES256, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ES256, der.as_ref(), &random).expect("the key");
        Self { pair }
    }

    fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let (x, y) = (&point[1..33], &point[33..]);
        json!({ "kty": "EC", "crv": "P-256", "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y) })
    }

    /// A right proof, patched; `null` removes a member.
    fn proof(&self, header: Value, claims: Value) -> String {
        let right = json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": self.jwk() });
        let said = json!({ "htm": "GET", "htu": "https://api.example/orders", "iat": NOW, "jti": "one", "ath": ATH });
        let patched = |mut own: Value, patch: Value| {
            for (name, value) in patch.as_object().expect("a patch") {
                own[name] = value.clone();
            }
            let members = own.as_object_mut().expect("members");
            members.retain(|_, value| !value.is_null());
            URL_SAFE_NO_PAD.encode(own.to_string())
        };
        let signed = format!("{}.{}", patched(right, header), patched(said, claims));
        let signature = self
            .pair
            .sign(&SystemRandom::new(), signed.as_bytes())
            .expect("signed");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn verify(&self, raw: &str) -> Result<VerifiedProof, DpopProofError> {
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
    let client = Client::new();
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
        let verified = client.verify(&client.proof(header.clone(), claims.clone()));
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
    use DpopProofError as Refused;
    let (client, other) = (Client::new(), Client::new());
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
        let raw = client.proof(header.clone(), claims.clone());
        assert_eq!(client.verify(&raw), Err(refused), "{header} {claims}");
    }
    for raw in ["", "a.b", "a.b.c", "e30.e30."] {
        assert!(client.verify(raw).is_err(), "{raw}");
    }
    let stolen = other.proof(json!({ "jwk": client.jwk() }), json!({}));
    assert_eq!(
        client.verify(&stolen),
        Err(Refused::Signature),
        "the public key is no secret"
    );
}
