//! A proof with one wrong part at a time.

use serde_json::json;

use super::*;
use crate::tokens::proof::MAX_PROOF_BYTES;
use crate::tokens::proof_key_tests::ProofKey;

/// The registration of Chromium 156 for the challenge `c1`.
const OF_CHROMIUM: &str = "eyJhbGciOiJFUzI1NiIsImp3ayI6eyJjcnYiOiJQLTI1NiIsImt0eSI6IkVDIiwieCI6Ik5MUlVtelBsa3dXWjdjR2ZSMTg0TXhsVy1WVENuYWw2UDIycDg5M2JzbDQiLCJ5IjoiMi13ZGx0eDJlS1VRT3FGTExPcEUxa3BjVkZ2ck1pRGt6eWZOLUYwQThLYyJ9LCJ0eXAiOiJkYnNjK2p3dCJ9.eyJqdGkiOiJjMSJ9.j8bv3zqaBMemaxvv080aTnvrrwEqZf-5-lBSP9nvqzVFFujVnBmzKP_Zx4lG_54DOyZbKVKR5-KYBZU2rB4ycQ";
/// Its later refresh for the challenge `ch1`.
const REFRESH_OF_CHROMIUM: &str = "eyJhbGciOiJFUzI1NiIsInR5cCI6ImRic2Mrand0In0.eyJqdGkiOiJjaDEifQ.5lAOwHkbl2RmQjV6mddYLwQ7HseDjM-lhVEB-e9Kgz2TOn8i4x_ky6WUoyQoOO1HT8MwKbPADqkE4iiDHhy0QQ";

impl ProofKey {
    /// A valid refresh proof, patched.
    fn device_proof(&self, header: &Value, claims: &Value) -> String {
        let right = json!({ "typ": "dbsc+jwt", "alg": "ES256" });
        self.signed((right, header), (json!({ "jti": "one" }), claims))
    }
}

#[test]
fn what_a_browser_sends_holds() {
    let registered = verify_registration(OF_CHROMIUM).expect("a proof");
    assert_eq!(registered.challenge, "c1");
    let refreshed = verify_refresh(REFRESH_OF_CHROMIUM, &registered.jwk).expect("a proof");
    assert_eq!(
        (refreshed.challenge.as_str(), refreshed.jwk),
        ("ch1", registered.jwk)
    );
}

#[test]
fn a_device_that_signs_by_rsa_is_known_by_its_key() {
    let keys = scripted_provider::ScriptedProvider::start();
    let own = keys.published_keys()["keys"]
        .as_array()
        .and_then(|all| all.iter().find(|key| key["kty"] == "RSA"))
        .cloned()
        .expect("an RSA key");
    let jwk = json!({ "kty": "RSA", "n": own["n"], "e": own["e"] });
    let header = |jwk: Value| json!({ "typ": "dbsc+jwt", "alg": "RS256", "kid": null, "jwk": jwk });
    let registration = keys.sign_with_header(header(jwk), json!({ "jti": "c1" }));
    let registered = verify_registration(&registration).expect("a proof");
    assert_eq!(registered.challenge, "c1");
    let refresh = keys.sign_with_header(header(Value::Null), json!({ "jti": "c2" }));
    assert_eq!(
        verify_refresh(&refresh, &registered.jwk)
            .expect("a proof")
            .challenge,
        "c2"
    );
    assert_eq!(
        verify_refresh(&refresh, &ProofKey::new().jwk().to_string()),
        Err(ProofError::Key)
    );
}

#[test]
fn each_thing_a_proof_says_wrong_is_its_end() {
    use ProofError as Refused;
    let (device, other) = (ProofKey::new(), ProofKey::new());
    let own = device.jwk().to_string();
    for (header, claims, refused) in [
        (json!({ "typ": null }), json!({}), Refused::Type),
        (json!({ "typ": "JWT" }), json!({}), Refused::Type),
        (json!({ "typ": "dpop+jwt" }), json!({}), Refused::Type),
        (json!({ "crit": ["exp"] }), json!({}), Refused::Type),
        (json!({ "alg": "none" }), json!({}), Refused::Algorithm),
        (json!({ "alg": "HS256" }), json!({}), Refused::Algorithm),
        (json!({ "alg": "ES384" }), json!({}), Refused::Algorithm),
        (json!({ "alg": "RS256" }), json!({}), Refused::Key),
        (json!({ "jwk": device.jwk() }), json!({}), Refused::Key),
        (json!({}), json!({ "jti": null }), Refused::TokenId),
        (json!({}), json!({ "jti": "" }), Refused::TokenId),
        (json!({}), json!({ "jti": 7 }), Refused::TokenId),
    ] {
        let proof = device.device_proof(&header, &claims);
        assert_eq!(verify_refresh(&proof, &own), Err(refused), "{header} {claims}");
    }
    let proof = other.device_proof(&json!({}), &json!({}));
    assert_eq!(verify_refresh(&proof, &own), Err(Refused::Signature));
    assert_eq!(verify_refresh(&proof, "{}"), Err(Refused::Key));
    assert_eq!(
        verify_refresh(&"x".repeat(MAX_PROOF_BYTES + 1), &own),
        Err(Refused::Malformed)
    );
    assert_eq!(verify_refresh("a.b", &own), Err(Refused::Malformed));
}

#[test]
fn a_registration_needs_a_key_of_its_own_that_is_public() {
    use ProofError as Refused;
    let (device, other) = (ProofKey::new(), ProofKey::new());
    let mut private = device.jwk();
    private["d"] = json!("AAAA");
    let octets = json!({ "kty": "oct", "k": "AAAA" });
    for (header, refused) in [
        (json!({}), Refused::Key),
        (json!({ "jwk": octets }), Refused::Key),
        (json!({ "jwk": other.jwk() }), Refused::Signature),
    ] {
        assert_eq!(
            verify_registration(&device.device_proof(&header, &json!({}))),
            Err(refused),
            "{header}"
        );
    }
    // Only the public members of a key are kept.
    let proof = device.device_proof(&json!({ "jwk": private }), &json!({}));
    assert_eq!(
        verify_registration(&proof).expect("a proof").jwk,
        device.jwk().to_string()
    );
}

#[test]
fn a_proof_of_any_length_is_not_looked_at() {
    let device = ProofKey::new();
    let own = device.jwk().to_string();
    for (bytes, refused) in [(2_000, None), (4 * 1024, Some(ProofError::Malformed))] {
        let proof = device.device_proof(&json!({}), &json!({ "padding": "x".repeat(bytes) }));
        assert_eq!(
            verify_refresh(&proof, &own).err(),
            refused,
            "{} bytes",
            proof.len()
        );
        assert_eq!(unverified_challenge(&proof).is_none(), refused.is_some());
    }
}
