//! Sender-constrained tokens: proofs that the client holds the key a token was issued to (RFC 9449).
//!
//! Invariants: a proof is for one request, names its method and its address without query and fragment, and
//! holds no private part of the key. Each server has its own nonce. Deliberately absent: one key for each
//! session. All replicas share a key, so that any of them can continue a session.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use url::{Position, Url};

use crate::client::client_key::{ClientKey, SigningFailed, UnusableKey};
use crate::{SigningAlgorithm, random};

/// Bound on servers with a stored nonce: a few of the provider, and the upstreams of a route table.
const MAX_SERVERS: usize = 1_024;
/// Longest nonce kept, in bytes.
const MAX_NONCE_BYTES: usize = 512;

/// The key that tokens are bound to.
#[derive(Clone, Debug)]
pub struct DpopKey(ClientKey);

/// The request that a proof is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) url: &'a Url,
    /// The token of the request.
    pub(crate) access_token: Option<&'a str>,
    /// The nonce that the server requires.
    pub(crate) nonce: Option<&'a str>,
    pub(crate) now: u64,
}

impl DpopKey {
    /// Reads the first private key of a PEM text.
    ///
    /// # Errors
    /// The text is not a PKCS#8 key of a supported kind.
    pub fn from_pem(pem: &str) -> Result<Self, UnusableKey> {
        ClientKey::from_pem(pem).map(Self)
    }

    /// The algorithm of the proofs.
    pub fn algorithm(&self) -> SigningAlgorithm {
        self.0.algorithm()
    }

    /// The thumbprint tokens are bound to (RFC 7638), `dpop_jkt` of authorization requests.
    pub(crate) fn thumbprint(&self) -> &str {
        self.0.thumbprint()
    }

    pub(crate) fn proof(&self, request: &Request<'_>) -> Result<String, SigningFailed> {
        let mut claims = json!({
            "jti": random::token(),
            "htm": request.method,
            "htu": &request.url[..Position::AfterPath],
            "iat": request.now,
        });
        if let Some(token) = request.access_token {
            let hash = digest::digest(&digest::SHA256, token.as_bytes());
            claims["ath"] = json!(URL_SAFE_NO_PAD.encode(hash));
        }
        if let Some(nonce) = request.nonce {
            claims["nonce"] = json!(nonce);
        }
        let header = json!({ "typ": "dpop+jwt", "jwk": self.0.public_members() });
        self.0.sign(header, &claims)
    }
}

/// The latest nonce of each server.
#[derive(Default)]
pub(crate) struct Nonces(Mutex<HashMap<String, String>>);

impl Nonces {
    pub(crate) fn get(&self, url: &Url) -> Option<String> {
        let nonces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        nonces.get(&url.origin().ascii_serialization()).cloned()
    }

    /// Stores a server's nonce (RFC 9449, section 8.2). Returns whether it is usable.
    pub(crate) fn learn(&self, url: &Url, nonce: &str) -> bool {
        let legal = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        if nonce.is_empty() || nonce.len() > MAX_NONCE_BYTES || !nonce.bytes().all(legal) {
            return false;
        }
        let origin = url.origin().ascii_serialization();
        let mut nonces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if nonces.len() >= MAX_SERVERS && !nonces.contains_key(&origin) {
            nonces.clear();
        }
        nonces.insert(origin, nonce.to_owned());
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn key() -> DpopKey {
        let algorithm = &aws_lc_rs::signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        let random = aws_lc_rs::rand::SystemRandom::new();
        let der = aws_lc_rs::signature::EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
        let text = base64::engine::general_purpose::STANDARD.encode(der.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
        DpopKey::from_pem(&pem).expect("a key")
    }

    fn part(token: &str, at: usize) -> Value {
        let part = token.split('.').nth(at).expect("three parts");
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON")
    }

    // conformance: B-075
    #[test]
    fn a_proof_names_its_request_and_holds_the_public_key_alone() {
        let key = key();
        let url = Url::parse("https://op.example/token?a=b#c").expect("a URL");
        let request = Request {
            method: "POST",
            url: &url,
            access_token: None,
            nonce: None,
            now: 1_800_000_000,
        };
        let (first, second) = (
            key.proof(&request).expect("signed"),
            key.proof(&request).expect("signed"),
        );
        let (header, claims) = (part(&first, 0), part(&first, 1));
        assert_eq!(
            (&header["typ"], &header["alg"]),
            (&json!("dpop+jwt"), &json!("ES256"))
        );
        let members: Vec<_> = header["jwk"].as_object().expect("a key").keys().collect();
        assert_eq!(members, ["crv", "kty", "x", "y"]);
        assert_eq!(claims["htm"], "POST");
        assert_eq!(claims["htu"], "https://op.example/token");
        assert_eq!(claims["iat"], 1_800_000_000);
        assert!(claims.get("ath").is_none() && claims.get("nonce").is_none());
        assert!(claims["jti"].as_str().is_some_and(|jti| jti.len() >= 22));
        assert_ne!(claims["jti"], part(&second, 1)["jti"]);

        let presented = Request {
            access_token: Some("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"),
            nonce: Some("n-1"),
            ..request
        };
        let claims = part(&key.proof(&presented).expect("signed"), 1);
        // The hash of this token is the example of RFC 9449, section 7.1.
        assert_eq!(claims["ath"], "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
        assert_eq!(claims["nonce"], "n-1");
    }

    #[test]
    fn nonces_are_kept_by_server_and_only_those_a_header_can_carry() {
        let nonces = Nonces::default();
        let url = |text| Url::parse(text).expect("a URL");
        assert!(nonces.learn(&url("https://op.example/token"), "one"));
        assert!(nonces.learn(&url("https://api.example/x"), "two"));
        assert_eq!(
            nonces.get(&url("https://op.example/userinfo")).as_deref(),
            Some("one")
        );
        assert_eq!(nonces.get(&url("https://op.example:8443/")), None);
        for bad in ["", "a b", "a\"b", "a\\b", "ä", &"x".repeat(513)] {
            assert!(!nonces.learn(&url("https://op.example/"), bad), "{bad:?}");
        }
        assert_eq!(nonces.get(&url("https://op.example/")).as_deref(), Some("one"));
    }

    #[test]
    fn servers_without_end_do_not_fill_the_memory() {
        let nonces = Nonces::default();
        for number in 0..=MAX_SERVERS {
            let url = Url::parse(&format!("https://api-{number}.example/")).expect("a URL");
            assert!(nonces.learn(&url, "one"));
            assert_eq!(nonces.get(&url).as_deref(), Some("one"));
        }
        let kept = nonces.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        assert!(kept <= MAX_SERVERS, "{kept}");
    }
}
