//! Keys and signatures. RSA keys come from files, because generating them takes long; others are generated.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
    RsaPublicKeyComponents,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::CLIENT_SECRET;

const RSA: [&str; 2] = [
    include_str!("../keys/rsa-0.pem"),
    include_str!("../keys/rsa-1.pem"),
];

/// The algorithms that the provider can sign with.
pub(crate) const ALGORITHMS: [&str; 13] = [
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "HS256",
    "HS384", "HS512",
];

/// One generation of the provider's keys.
pub(crate) struct Keys {
    generation: usize,
    rsa: RsaKeyPair,
    ec: EcdsaKeyPair,
    p384: EcdsaKeyPair,
    p521: EcdsaKeyPair,
    ed: Ed25519KeyPair,
}

impl Keys {
    pub(crate) fn new(generation: usize) -> Self {
        let random = SystemRandom::new();
        let rsa = RsaKeyPair::from_pkcs8(&der(RSA[generation % RSA.len()])).expect("the test key is RSA");
        let ec = |algorithm: &'static EcdsaSigningAlgorithm| {
            let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("randomness");
            EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref()).expect("a key just made")
        };
        let ed = Ed25519KeyPair::generate_pkcs8(&random).expect("randomness");
        let ed = Ed25519KeyPair::from_pkcs8(ed.as_ref()).expect("a key just made");
        Self {
            generation,
            rsa,
            ec: ec(&ECDSA_P256_SHA256_FIXED_SIGNING),
            p384: ec(&ECDSA_P384_SHA384_FIXED_SIGNING),
            p521: ec(&ECDSA_P521_SHA512_FIXED_SIGNING),
            ed,
        }
    }

    /// These keys under the names of another generation.
    pub(crate) fn named_as_of(self, generation: usize) -> Self {
        Self { generation, ..self }
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
        let points = [
            ("P-256", "ES256", self.ec.public_key().as_ref()),
            ("P-384", "ES384", self.p384.public_key().as_ref()),
            ("P-521", "ES512", self.p521.public_key().as_ref()),
        ];
        let [ec, p384, p521] = points.map(|(curve, algorithm, point)| {
            let (x, y) = point[1..].split_at(point.len() / 2);
            json!({
                "kty": "EC", "crv": curve, "use": "sig", "alg": algorithm, "kid": self.kid(algorithm),
                "x": encode(x), "y": encode(y),
            })
        });
        let ed = json!({
            "kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": self.kid("EdDSA"),
            "x": encode(self.ed.public_key().as_ref()),
        });
        vec![rsa, ec, ed, p384, p521]
    }

    /// Only the RSA key's public members.
    pub(crate) fn rsa_public(&self) -> Value {
        let public = RsaPublicKeyComponents::<Vec<u8>>::from(self.rsa.public_key());
        json!({ "kty": "RSA", "n": encode(&public.n), "e": encode(&public.e) })
    }

    /// A compact JWS of these parts; the header names the algorithm.
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
        let rsa = |padding: &'static dyn RsaEncoding| {
            let mut signature = vec![0; self.rsa.public_modulus_len()];
            let signed = self.rsa.sign(padding, &random, message, &mut signature);
            signed.expect("an RSA signature");
            signature
        };
        let ec = |key: &EcdsaKeyPair| {
            let signature = key.sign(&random, message).expect("an ECDSA signature");
            signature.as_ref().to_vec()
        };
        match algorithm {
            "RS256" => rsa(&RSA_PKCS1_SHA256),
            "RS384" => rsa(&RSA_PKCS1_SHA384),
            "RS512" => rsa(&RSA_PKCS1_SHA512),
            "PS256" => rsa(&RSA_PSS_SHA256),
            "PS384" => rsa(&RSA_PSS_SHA384),
            "PS512" => rsa(&RSA_PSS_SHA512),
            "ES256" => ec(&self.ec),
            "ES384" => ec(&self.p384),
            "ES512" => ec(&self.p521),
            "EdDSA" => self.ed.sign(message).as_ref().to_vec(),
            "HS256" => hmac(CLIENT_SECRET.as_bytes(), message),
            "HS384" => hmac_of(aws_lc_rs::hmac::HMAC_SHA384, CLIENT_SECRET.as_bytes(), message),
            "HS512" => hmac_of(aws_lc_rs::hmac::HMAC_SHA512, CLIENT_SECRET.as_bytes(), message),
            _ => Vec::new(),
        }
    }
}

/// HMAC-SHA256.
pub(crate) fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac_of(aws_lc_rs::hmac::HMAC_SHA256, key, message)
}

fn hmac_of(algorithm: aws_lc_rs::hmac::Algorithm, key: &[u8], message: &[u8]) -> Vec<u8> {
    let key = aws_lc_rs::hmac::Key::new(algorithm, key);
    aws_lc_rs::hmac::sign(&key, message).as_ref().to_vec()
}

/// The left half of the algorithm's hash, for `at_hash`; SHA-512 for EdDSA.
pub(crate) fn half_hash(algorithm: &str, text: &str) -> String {
    let digest = match algorithm {
        name if name.ends_with("384") => &aws_lc_rs::digest::SHA384,
        name if name.ends_with("512") || name == "EdDSA" => &aws_lc_rs::digest::SHA512,
        _ => &aws_lc_rs::digest::SHA256,
    };
    let hash = aws_lc_rs::digest::digest(digest, text.as_bytes());
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
