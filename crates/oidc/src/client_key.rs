//! Private keys of this client, and the assertions of `private_key_jwt` they sign (RFC 7523, OpenID Connect Core 9).
//!
//! The key comes as PKCS#8 PEM; its algorithm follows from its kind: RSA signs RS256, P-256 signs ES256,
//! Ed25519 signs EdDSA.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaKeyPair};
use serde_json::{Value, json};

/// How long an assertion may be used, in seconds: a request's time and the clocks' difference.
const ASSERTION_LIFETIME_SECS: u64 = 60;
/// Below this an RSA key is no protection.
const LEAST_RSA_MODULUS_BYTES: usize = 256;

/// A private key that authenticates this client.
#[derive(Clone)]
pub struct ClientKey {
    pair: Arc<Pair>,
    key_id: String,
}

enum Pair {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// The text is not a PKCS#8 PEM key of a supported kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a PEM private key in PKCS#8 (RSA of at least 2048 bits, P-256 or Ed25519)")]
pub struct UnusableKey;

/// The assertion could not be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key could not sign")]
pub(crate) struct SigningFailed;

impl ClientKey {
    /// Reads the first private key of a PEM text.
    pub fn from_pem(pem: &str) -> Result<Self, UnusableKey> {
        let der = private_key_der(pem).ok_or(UnusableKey)?;
        let pair = if let Ok(rsa) = RsaKeyPair::from_pkcs8(&der) {
            if rsa.public().modulus_len() < LEAST_RSA_MODULUS_BYTES {
                return Err(UnusableKey);
            }
            Pair::Rsa(rsa)
        } else if let Ok(ec) = EcdsaKeyPair::from_pkcs8(
            &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
            &der,
            &SystemRandom::new(),
        ) {
            Pair::P256(ec)
        } else {
            Pair::Ed25519(Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| UnusableKey)?)
        };
        let key_id = thumbprint(&public_members(&pair));
        Ok(Self {
            pair: Arc::new(pair),
            key_id,
        })
    }

    /// The public half as a JSON Web Key.
    fn public_jwk(&self) -> Value {
        let mut key = self.public_members();
        key["use"] = json!("sig");
        key["alg"] = json!(self.algorithm());
        key["kid"] = json!(self.key_id);
        key
    }

    /// The members that make the public key, and nothing else.
    pub(crate) fn public_members(&self) -> Value {
        public_members(&self.pair)
    }

    /// The key's thumbprint (RFC 7638), which is its `kid` too.
    pub(crate) fn thumbprint(&self) -> &str {
        &self.key_id
    }

    /// Signs an assertion that this client speaks to `audience`; `token_id` is used once.
    pub(crate) fn assertion(
        &self,
        client_id: &str,
        audience: &str,
        token_id: &str,
        now: u64,
    ) -> Result<String, SigningFailed> {
        let header = json!({ "typ": "JWT", "kid": self.key_id });
        let claims = json!({
            "iss": client_id,
            "sub": client_id,
            "aud": audience,
            "jti": token_id,
            "iat": now,
            "exp": now.saturating_add(ASSERTION_LIFETIME_SECS),
        });
        self.sign(header, &claims)
    }

    /// A compact JWS; `alg` is added to the header.
    pub(crate) fn sign(&self, mut header: Value, claims: &Value) -> Result<String, SigningFailed> {
        header["alg"] = json!(self.algorithm());
        let mut token = URL_SAFE_NO_PAD.encode(header.to_string());
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(claims.to_string()));
        let random = SystemRandom::new();
        let signature = match self.pair.as_ref() {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(
                    &signature::RSA_PKCS1_SHA256,
                    &random,
                    token.as_bytes(),
                    &mut signature,
                )
                .map_err(|_| SigningFailed)?;
                signature
            }
            Pair::P256(pair) => pair
                .sign(&random, token.as_bytes())
                .map_err(|_| SigningFailed)?
                .as_ref()
                .to_vec(),
            Pair::Ed25519(pair) => pair.sign(token.as_bytes()).as_ref().to_vec(),
        };
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(signature));
        Ok(token)
    }

    fn algorithm(&self) -> &'static str {
        match self.pair.as_ref() {
            Pair::Rsa(_) => "RS256",
            Pair::P256(_) => "ES256",
            Pair::Ed25519(_) => "EdDSA",
        }
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientKey")
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}

/// Keys that overlap while one takes the place of another: the first signs, all are published.
#[derive(Clone, Debug)]
pub struct ClientKeys {
    first: ClientKey,
    others: Vec<ClientKey>,
}

impl ClientKeys {
    /// The first one signs.
    pub fn new(first: ClientKey, others: Vec<ClientKey>) -> Self {
        Self { first, others }
    }

    pub(crate) fn signing(&self) -> &ClientKey {
        &self.first
    }

    /// The public halves as a JSON Web Key Set, to be registered with the provider.
    pub fn public_jwks(&self) -> Value {
        let all = std::iter::once(&self.first).chain(&self.others);
        json!({ "keys": all.map(ClientKey::public_jwk).collect::<Vec<_>>() })
    }
}

fn private_key_der(pem: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
    let text: String = body.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    STANDARD.decode(text).ok()
}

/// The required members of the public key alone, which is also what a thumbprint covers (RFC 7638).
fn public_members(pair: &Pair) -> Value {
    match pair {
        Pair::Rsa(pair) => {
            let public = PublicKeyComponents::<Vec<u8>>::from(pair.public());
            json!({
                "e": URL_SAFE_NO_PAD.encode(public.e),
                "kty": "RSA",
                "n": URL_SAFE_NO_PAD.encode(public.n),
            })
        }
        Pair::P256(pair) => {
            let (x, y) = pair.public_key().as_ref().split_at(33);
            let x = x.get(1..).unwrap_or_default(); // the first byte marks an uncompressed point
            json!({
                "crv": "P-256",
                "kty": "EC",
                "x": URL_SAFE_NO_PAD.encode(x),
                "y": URL_SAFE_NO_PAD.encode(y),
            })
        }
        Pair::Ed25519(pair) => json!({
            "crv": "Ed25519",
            "kty": "OKP",
            "x": URL_SAFE_NO_PAD.encode(pair.public_key().as_ref()),
        }),
    }
}

fn thumbprint(members: &Value) -> String {
    // serde_json's map is ordered by key, which is the canonical form RFC 7638 section 3.3 requires
    URL_SAFE_NO_PAD.encode(ring::digest::digest(
        &ring::digest::SHA256,
        members.to_string().as_bytes(),
    ))
}
