//! A key for signing proofs in tests.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING as ES256, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

pub(crate) struct ProofKey {
    pair: EcdsaKeyPair,
}

impl ProofKey {
    pub(crate) fn new() -> Self {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ES256, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ES256, der.as_ref()).expect("the key");
        Self { pair }
    }

    pub(crate) fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let (x, y) = (&point[1..33], &point[33..]);
        json!({ "kty": "EC", "crv": "P-256", "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y) })
    }

    /// A compact JWS of header and claims, each patched; `null` removes a member.
    pub(crate) fn signed(&self, header: (Value, &Value), claims: (Value, &Value)) -> String {
        let patched = |(mut own, patch): (Value, &Value)| {
            for (name, value) in patch.as_object().expect("a patch") {
                own[name] = value.clone();
            }
            let members = own.as_object_mut().expect("members");
            members.retain(|_, value| !value.is_null());
            URL_SAFE_NO_PAD.encode(own.to_string())
        };
        let signed = format!("{}.{}", patched(header), patched(claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.expect("signed")))
    }
}
