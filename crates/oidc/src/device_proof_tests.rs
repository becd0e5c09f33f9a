//! Each thing a proof says, wrong one at a time.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING as ES256, EcdsaKeyPair, KeyPair as _};
use serde_json::json;

use super::*;

/// What Chromium 156 sent with its registration, to the challenge `c1`.
const OF_CHROMIUM: &str = "eyJhbGciOiJFUzI1NiIsImp3ayI6eyJjcnYiOiJQLTI1NiIsImt0eSI6IkVDIiwieCI6Ik5MUlVtelBsa3dXWjdjR2ZSMTg0TXhsVy1WVENuYWw2UDIycDg5M2JzbDQiLCJ5IjoiMi13ZGx0eDJlS1VRT3FGTExPcEUxa3BjVkZ2ck1pRGt6eWZOLUYwQThLYyJ9LCJ0eXAiOiJkYnNjK2p3dCJ9.eyJqdGkiOiJjMSJ9.j8bv3zqaBMemaxvv080aTnvrrwEqZf-5-lBSP9nvqzVFFujVnBmzKP_Zx4lG_54DOyZbKVKR5-KYBZU2rB4ycQ";
/// What it sent with a refresh afterwards, to the challenge `ch1`.
const REFRESH_OF_CHROMIUM: &str = "eyJhbGciOiJFUzI1NiIsInR5cCI6ImRic2Mrand0In0.eyJqdGkiOiJjaDEifQ.5lAOwHkbl2RmQjV6mddYLwQ7HseDjM-lhVEB-e9Kgz2TOn8i4x_ky6WUoyQoOO1HT8MwKbPADqkE4iiDHhy0QQ";

struct Device {
    pair: EcdsaKeyPair,
}

impl Device {
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

    /// A right proof of a refresh, patched; `null` removes a member.
    fn proof(&self, header: &Value, claims: &Value) -> String {
        let patched = |mut own: Value, patch: &Value| {
            for (name, value) in patch.as_object().expect("a patch") {
                own[name] = value.clone();
            }
            let members = own.as_object_mut().expect("members");
            members.retain(|_, value| !value.is_null());
            URL_SAFE_NO_PAD.encode(own.to_string())
        };
        let header = patched(json!({ "typ": "dbsc+jwt", "alg": "ES256" }), header);
        let signed = format!("{header}.{}", patched(json!({ "jti": "one" }), claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.expect("signed")))
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
fn each_thing_a_proof_says_wrong_is_its_end() {
    use DeviceProofError as Refused;
    let (device, other) = (Device::new(), Device::new());
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
        (json!({}), json!({ "jti": null }), Refused::Challenge),
        (json!({}), json!({ "jti": "" }), Refused::Challenge),
        (json!({}), json!({ "jti": 7 }), Refused::Challenge),
    ] {
        let proof = device.proof(&header, &claims);
        assert_eq!(verify_refresh(&proof, &own), Err(refused), "{header} {claims}");
    }
    let proof = other.proof(&json!({}), &json!({}));
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
    use DeviceProofError as Refused;
    let (device, other) = (Device::new(), Device::new());
    let mut private = device.jwk();
    private["d"] = json!("AAAA");
    let octets = json!({ "kty": "oct", "k": "AAAA" });
    for (header, refused) in [
        (json!({}), Refused::Key),
        (json!({ "jwk": octets }), Refused::Key),
        (json!({ "jwk": other.jwk() }), Refused::Signature),
    ] {
        assert_eq!(
            verify_registration(&device.proof(&header, &json!({}))),
            Err(refused),
            "{header}"
        );
    }
    // What is kept of a key is its public members alone.
    let proof = device.proof(&json!({ "jwk": private }), &json!({}));
    assert_eq!(
        verify_registration(&proof).expect("a proof").jwk,
        device.jwk().to_string()
    );
}

#[test]
fn a_proof_of_any_length_is_not_looked_at() {
    let device = Device::new();
    let own = device.jwk().to_string();
    for (bytes, refused) in [(2_000, None), (4 * 1024, Some(DeviceProofError::Malformed))] {
        let proof = device.proof(&json!({}), &json!({ "padding": "x".repeat(bytes) }));
        assert_eq!(
            verify_refresh(&proof, &own).err(),
            refused,
            "{} bytes",
            proof.len()
        );
        assert_eq!(unverified_challenge(&proof).is_none(), refused.is_some());
    }
}
