//! Keys and signatures. RSA keys come from files, since making them takes long; the others are made on the spot.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RSA_PSS_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};

use crate::CLIENT_SECRET;

const RSA: [&str; 2] = [
    include_str!("../keys/rsa-0.pem"),
    include_str!("../keys/rsa-1.pem"),
];

/// One generation of the provider's keys.
pub(crate) struct Keys {
    generation: usize,
    rsa: RsaKeyPair,
    ec: EcdsaKeyPair,
    ed: Ed25519KeyPair,
}

impl Keys {
    pub(crate) fn new(generation: usize) -> Self {
        let random = SystemRandom::new();
        let rsa = RsaKeyPair::from_pkcs8(&der(RSA[generation % RSA.len()])).expect("the test key is RSA");
        let ec = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("randomness");
        let ec = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, ec.as_ref(), &random)
            .expect("a key just made");
        let ed = Ed25519KeyPair::generate_pkcs8(&random).expect("randomness");
        let ed = Ed25519KeyPair::from_pkcs8(ed.as_ref()).expect("a key just made");
        Self {
            generation,
            rsa,
            ec,
            ed,
        }
    }

    pub(crate) fn kid(&self, algorithm: &str) -> String {
        let kind = if algorithm.starts_with('R') || algorithm.starts_with('P') {
            "rsa"
        } else {
            algorithm
        };
        format!("{kind}-{}", self.generation)
    }

    /// The public keys.
    pub(crate) fn public(&self) -> Vec<Value> {
        let mut rsa = self.rsa_public();
        rsa["use"] = json!("sig");
        rsa["kid"] = json!(self.kid("RS256"));
        let point = self.ec.public_key().as_ref();
        let ec = json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.kid("ES256"),
            "x": encode(&point[1..33]), "y": encode(&point[33..]),
        });
        let ed = json!({
            "kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": self.kid("EdDSA"),
            "x": encode(self.ed.public_key().as_ref()),
        });
        vec![rsa, ec, ed]
    }

    /// The RSA key's public members alone.
    pub(crate) fn rsa_public(&self) -> Value {
        let public = PublicKeyComponents::<Vec<u8>>::from(self.rsa.public());
        json!({ "kty": "RSA", "n": encode(&public.n), "e": encode(&public.e) })
    }

    /// A compact JWS of these parts; the header says which algorithm.
    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        let signed = format!(
            "{}.{}",
            encode(header.to_string().as_bytes()),
            encode(claims.to_string().as_bytes())
        );
        let signature = self.signature(header["alg"].as_str().unwrap_or_default(), signed.as_bytes());
        format!("{signed}.{}", encode(&signature))
    }

    fn signature(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match algorithm {
            "RS256" | "PS256" => {
                let padding: &dyn ring::signature::RsaEncoding = if algorithm == "RS256" {
                    &RSA_PKCS1_SHA256
                } else {
                    &RSA_PSS_SHA256
                };
                let mut signature = vec![0; self.rsa.public().modulus_len()];
                self.rsa
                    .sign(padding, &random, message, &mut signature)
                    .expect("an RSA signature");
                signature
            }
            "ES256" => self
                .ec
                .sign(&random, message)
                .expect("an ECDSA signature")
                .as_ref()
                .to_vec(),
            "EdDSA" => self.ed.sign(message).as_ref().to_vec(),
            "HS256" => hmac(CLIENT_SECRET.as_bytes(), message),
            _ => Vec::new(),
        }
    }
}

/// HMAC-SHA256.
pub(crate) fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key);
    ring::hmac::sign(&key, message).as_ref().to_vec()
}

/// Left half of SHA-256, as `at_hash` wants it; SHA-512 for EdDSA.
pub(crate) fn half_hash(algorithm: &str, text: &str) -> String {
    let digest = if algorithm == "EdDSA" {
        &ring::digest::SHA512
    } else {
        &ring::digest::SHA256
    };
    let hash = ring::digest::digest(digest, text.as_bytes());
    encode(&hash.as_ref()[..hash.as_ref().len() / 2])
}

/// base64url without padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn der(pem: &str) -> Vec<u8> {
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    STANDARD.decode(body).expect("the test key is PEM")
}
