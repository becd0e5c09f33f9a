//! Signs security event tokens (RFC 8417, SSF 1.0 section 4).
//!
//! The first key of a file signs and all are published, so that one can replace another. Keys sign ES256 or
//! RS256, which every receiver verifies (CAEP Interoperability Profile, section 2.6).
//!
//! Deliberately absent: the claims of a token, which the caller writes.

use oidc::{ClientKey, ClientKeys, SigningAlgorithm, SigningFailed};
use serde_json::{Value, json};

/// Begins a key of a file.
const KEY_BEGINS: &str = "-----BEGIN";
/// The explicit type of the tokens (SSF 1.0 section 4.1.1).
const TYPE: &str = "secevent+jwt";

/// Signs security event tokens.
#[derive(Clone, Debug)]
pub struct SecurityEventSigner(ClientKeys);

impl SecurityEventSigner {
    /// Reads PEM private keys, one after another: the first signs.
    ///
    /// # Errors
    /// The text has no key, or a key that signs neither ES256 nor RS256.
    pub fn from_pem(text: &str) -> Result<Self, UnusableSigningKey> {
        let key = |pem: &str| {
            let key = ClientKey::from_pem(pem).ok()?;
            let signs = matches!(key.algorithm(), SigningAlgorithm::Es256 | SigningAlgorithm::Rs256);
            signs.then_some(key)
        };
        // The text before the first key is a comment.
        let blocks = text.split(KEY_BEGINS).skip(1);
        let keys: Option<Vec<ClientKey>> = blocks.map(|rest| key(&format!("{KEY_BEGINS}{rest}"))).collect();
        let mut keys = keys.ok_or(UnusableSigningKey)?.into_iter();
        let first = keys.next().ok_or(UnusableSigningKey)?;
        Ok(Self(ClientKeys::new(first, keys.collect())))
    }

    /// The public halves as a JSON Web Key Set, for `jwks_uri`.
    #[must_use]
    pub fn public_jwks(&self) -> Value {
        self.0.public_jwks()
    }

    /// A signed token with these claims.
    ///
    /// # Errors
    /// The operating system gave no random bytes.
    pub fn sign(&self, claims: &Value) -> Result<String, SigningFailed> {
        let key = self.0.signing();
        key.sign(json!({ "typ": TYPE, "kid": key.thumbprint() }), claims)
    }
}

/// The text has no key, or one that cannot sign events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a PEM private key in PKCS#8 that signs ES256 (P-256) or RS256 (RSA of at least 2048 bits)")]
pub struct UnusableSigningKey;

#[cfg(test)]
mod tests {
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    };
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    use super::*;

    fn pem(algorithm: &'static EcdsaSigningAlgorithm) -> String {
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).expect("a key");
        let text = STANDARD.encode(key.as_ref());
        format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
    }

    fn header(token: &str) -> Value {
        let part = token.split('.').next().expect("a header");
        let bytes = URL_SAFE_NO_PAD.decode(part).expect("base64url");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    /// The service's tests verify such tokens by the published keys.
    #[test]
    fn the_first_key_of_a_file_signs_and_all_are_published() {
        let rsa = include_str!("../../../dev/scripted-provider/keys/rsa-0.pem");
        let both = format!("# the new one\n{}{rsa}", pem(&ECDSA_P256_SHA256_FIXED_SIGNING));
        for (text, algorithm, count) in [(both.as_str(), "ES256", 2), (rsa, "RS256", 1)] {
            let signer = SecurityEventSigner::from_pem(text).expect("keys");
            let raw = signer
                .sign(&json!({"iss": "https://tr.example"}))
                .expect("signed");
            let published = signer.public_jwks();
            let header = header(&raw);
            assert_eq!(header["alg"], algorithm);
            assert_eq!(header["typ"], "secevent+jwt");
            assert_eq!(header["kid"], published["keys"][0]["kid"]);
            assert_eq!(published["keys"].as_array().map(Vec::len), Some(count));
        }
    }

    #[test]
    fn keys_that_not_every_receiver_verifies_are_refused() {
        let other = pem(&ECDSA_P384_SHA384_FIXED_SIGNING);
        let second = pem(&ECDSA_P256_SHA256_FIXED_SIGNING) + &other;
        for text in ["", "-----BEGIN PRIVATE KEY-----", &other, &second] {
            assert!(SecurityEventSigner::from_pem(text).is_err());
        }
    }
}
