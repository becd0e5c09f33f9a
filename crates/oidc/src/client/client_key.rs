//! This client's private keys and their `private_key_jwt` assertions (RFC 7523, OpenID Connect Core 9).
//!
//! Keys are PKCS#8 PEM. The kind of key sets the algorithm: P-256 ES256, P-384 ES384, P-521 ES512, Ed25519
//! EdDSA. RSA uses what the provider's metadata list, RS256 by default.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RsaKeyPair,
    RsaPublicKeyComponents,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::SigningAlgorithm;

/// Lifetime of an assertion in seconds. It covers the duration of a request and clock differences.
const ASSERTION_LIFETIME_SECS: u64 = 60;
/// Shorter RSA keys are insecure.
const LEAST_RSA_MODULUS_BYTES: usize = 256;

/// A private key that authenticates this client.
#[derive(Clone)]
pub struct ClientKey {
    pair: Arc<Pair>,
    key_id: String,
    algorithm: SigningAlgorithm,
}

enum Pair {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    P521(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// The text is not a PKCS#8 PEM key of a supported kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a PEM private key in PKCS#8 (RSA of at least 2048 bits, P-256, P-384, P-521 or Ed25519)")]
pub struct UnusableKey;

/// The assertion could not be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key could not sign")]
pub struct SigningFailed;

impl Pair {
    /// Parses a key of any supported kind; an RSA key only if it is long enough.
    fn from_pkcs8(der: &[u8]) -> Option<Self> {
        if let Ok(rsa) = RsaKeyPair::from_pkcs8(der) {
            return (rsa.public_modulus_len() >= LEAST_RSA_MODULUS_BYTES).then_some(Self::Rsa(rsa));
        }
        let ec = |algorithm: &'static EcdsaSigningAlgorithm| EcdsaKeyPair::from_pkcs8(algorithm, der).ok();
        let p256 = ec(&signature::ECDSA_P256_SHA256_FIXED_SIGNING).map(Self::P256);
        p256.or_else(|| ec(&signature::ECDSA_P384_SHA384_FIXED_SIGNING).map(Self::P384))
            .or_else(|| ec(&signature::ECDSA_P521_SHA512_FIXED_SIGNING).map(Self::P521))
            .or_else(|| {
                let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok()?;
                Some(Self::Ed25519(key))
            })
    }

    fn usual_algorithm(&self) -> SigningAlgorithm {
        match self {
            Self::Rsa(_) => SigningAlgorithm::Rs256,
            Self::P256(_) => SigningAlgorithm::Es256,
            Self::P384(_) => SigningAlgorithm::Es384,
            Self::P521(_) => SigningAlgorithm::Es512,
            Self::Ed25519(_) => SigningAlgorithm::EdDsa,
        }
    }
}

impl ClientKey {
    /// Reads the first private key of a PEM text.
    pub fn from_pem(pem: &str) -> Result<Self, UnusableKey> {
        let der = private_key_der(pem).ok_or(UnusableKey)?;
        let pair = Pair::from_pkcs8(&der).ok_or(UnusableKey)?;
        let key_id = thumbprint(&public_members(&pair));
        Ok(Self {
            algorithm: pair.usual_algorithm(),
            pair: Arc::new(pair),
            key_id,
        })
    }

    /// The key with another algorithm; `None` if its kind does not support it.
    fn signing_with(&self, algorithm: SigningAlgorithm) -> Option<Self> {
        let signs =
            algorithm == self.algorithm || matches!(*self.pair, Pair::Rsa(_)) && algorithm.rsa().is_some();
        signs.then(|| Self {
            algorithm,
            ..self.clone()
        })
    }

    /// The key with the strongest algorithm of its kind in the metadata, or with its own if they list none.
    fn by_listed<T: AsRef<str>>(&self, listed: &[T]) -> Self {
        const STRONGEST_FIRST: [SigningAlgorithm; 6] = [
            SigningAlgorithm::Ps256,
            SigningAlgorithm::Ps384,
            SigningAlgorithm::Ps512,
            SigningAlgorithm::Rs256,
            SigningAlgorithm::Rs384,
            SigningAlgorithm::Rs512,
        ];
        let is_listed =
            |algorithm: SigningAlgorithm| listed.iter().any(|name| name.as_ref() == algorithm.name());
        let mut listed = STRONGEST_FIRST.into_iter().filter(|one| is_listed(*one));
        let other = listed.find_map(|algorithm| self.signing_with(algorithm));
        other.unwrap_or_else(|| self.clone())
    }

    /// The algorithm it signs with.
    pub fn algorithm(&self) -> SigningAlgorithm {
        self.algorithm
    }

    /// The public half as a JSON Web Key.
    fn public_jwk(&self) -> Value {
        let mut key = self.public_members();
        key["use"] = json!("sig");
        // The algorithm of an RSA key depends on the metadata, which may change after publication.
        if !matches!(*self.pair, Pair::Rsa(_)) {
            key["alg"] = json!(self.algorithm.name());
        }
        key["kid"] = json!(self.key_id);
        key
    }

    /// The required members of the public key.
    pub(crate) fn public_members(&self) -> Value {
        public_members(&self.pair)
    }

    /// The key's thumbprint (RFC 7638), which is its `kid` too.
    pub fn thumbprint(&self) -> &str {
        &self.key_id
    }

    /// Signs an assertion of this client for `audience`; `token_id` must be unique.
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

    /// Signs a compact JWS and adds `alg` to the header.
    ///
    /// # Errors
    /// The operating system returned no random bytes.
    pub fn sign(&self, mut header: Value, claims: &Value) -> Result<String, SigningFailed> {
        header["alg"] = json!(self.algorithm.name());
        let mut token = URL_SAFE_NO_PAD.encode(header.to_string());
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(claims.to_string()));
        let random = SystemRandom::new();
        let signature = match self.pair.as_ref() {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                let (_, encoding) = self.algorithm.rsa().ok_or(SigningFailed)?;
                pair.sign(encoding, &random, token.as_bytes(), &mut signature)
                    .map_err(|_| SigningFailed)?;
                signature
            }
            Pair::P256(pair) | Pair::P384(pair) | Pair::P521(pair) => pair
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
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientKey")
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}

/// Keys during a rotation: the first signs, all are published.
#[derive(Clone, Debug)]
pub struct ClientKeys {
    first: ClientKey,
    others: Vec<ClientKey>,
}

impl ClientKeys {
    /// Creates a set whose first key signs.
    pub fn new(first: ClientKey, others: Vec<ClientKey>) -> Self {
        Self { first, others }
    }

    /// The key that signs.
    pub fn signing(&self) -> &ClientKey {
        &self.first
    }

    /// The signing key, with an algorithm from the provider's metadata.
    pub fn signing_by<T: AsRef<str>>(&self, listed: &[T]) -> ClientKey {
        self.first.by_listed(listed)
    }

    /// The same keys. The first signs with an algorithm from the provider's metadata.
    pub(crate) fn by_listed<T: AsRef<str>>(&self, listed: &[T]) -> Self {
        Self::new(self.first.by_listed(listed), self.others.clone())
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

/// The required members of the public key, which the thumbprint covers (RFC 7638).
fn public_members(pair: &Pair) -> Value {
    match pair {
        Pair::Rsa(pair) => {
            let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public_key());
            json!({
                "e": URL_SAFE_NO_PAD.encode(public.e),
                "kty": "RSA",
                "n": URL_SAFE_NO_PAD.encode(public.n),
            })
        }
        Pair::P256(pair) => point_members("P-256", pair.public_key().as_ref()),
        Pair::P384(pair) => point_members("P-384", pair.public_key().as_ref()),
        Pair::P521(pair) => point_members("P-521", pair.public_key().as_ref()),
        Pair::Ed25519(pair) => json!({
            "crv": "Ed25519",
            "kty": "OKP",
            "x": URL_SAFE_NO_PAD.encode(pair.public_key().as_ref()),
        }),
    }
}

/// The members of an uncompressed point: a marker byte, then two coordinates of equal length.
fn point_members(curve: &str, point: &[u8]) -> Value {
    let coordinates = point.get(1..).unwrap_or_default();
    let (x, y) = coordinates.split_at(coordinates.len() / 2);
    json!({
        "crv": curve,
        "kty": "EC",
        "x": URL_SAFE_NO_PAD.encode(x),
        "y": URL_SAFE_NO_PAD.encode(y),
    })
}

/// The thumbprint of a public key's required members (RFC 7638).
pub(crate) fn thumbprint(members: &Value) -> String {
    // serde_json's map is ordered by key, which is the canonical form RFC 7638 section 3.3 requires
    URL_SAFE_NO_PAD.encode(aws_lc_rs::digest::digest(
        &aws_lc_rs::digest::SHA256,
        members.to_string().as_bytes(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AcceptedAlgorithms;
    use crate::tokens::jws::UnverifiedToken;
    use crate::tokens::key_set::{KeySet, SignatureVerdict};

    fn pem(der: &[u8]) -> String {
        let text = STANDARD.encode(der);
        format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
    }

    #[test]
    fn a_key_of_each_curve_signs_what_its_published_half_verifies() {
        let random = SystemRandom::new();
        let ec = |algorithm| {
            EcdsaKeyPair::generate_pkcs8(algorithm, &random)
                .expect("a key")
                .as_ref()
                .to_vec()
        };
        let keys = [
            ("ES256", ec(&signature::ECDSA_P256_SHA256_FIXED_SIGNING)),
            ("ES384", ec(&signature::ECDSA_P384_SHA384_FIXED_SIGNING)),
            ("ES512", ec(&signature::ECDSA_P521_SHA512_FIXED_SIGNING)),
        ];
        for (name, der) in keys {
            let key = ClientKey::from_pem(&pem(&der)).expect("a usable key");
            let raw = key
                .sign(json!({ "kid": key.thumbprint() }), &json!({}))
                .expect("signed");
            let token = UnverifiedToken::parse(&raw, &AcceptedAlgorithms::Auto).expect("a token");
            assert_eq!(token.algorithm.name(), name);
            let published = ClientKeys::new(key, Vec::new()).public_jwks();
            let keys = KeySet::new(published.as_object().expect("a document")).expect("a key set");
            assert_eq!(keys.verify(&token), SignatureVerdict::Verified, "{name}");
            let (header, rest) = raw.split_once('.').expect("a header");
            let (_, signature) = rest.split_once('.').expect("a signature");
            let forged = format!("{header}.eyJhIjoxfQ.{signature}");
            let forged = UnverifiedToken::parse(&forged, &AcceptedAlgorithms::Auto).expect("a token");
            assert_eq!(keys.verify(&forged), SignatureVerdict::BadSignature, "{name}");
        }
    }

    #[test]
    fn an_rsa_key_signs_with_the_algorithm_it_is_told_and_others_with_their_own() {
        let rsa = include_str!("../../../../dev/scripted-provider/keys/rsa-0.pem");
        let rsa = ClientKey::from_pem(rsa).expect("a usable key");
        assert_eq!(rsa.algorithm(), SigningAlgorithm::Rs256);
        for name in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"] {
            let key = rsa
                .signing_with(name.parse().expect("an algorithm"))
                .expect("RSA");
            let raw = key
                .sign(json!({ "kid": key.thumbprint() }), &json!({}))
                .expect("signed");
            let token = UnverifiedToken::parse(&raw, &AcceptedAlgorithms::Auto).expect("a token");
            assert_eq!(token.algorithm.name(), name);
            let published = ClientKeys::new(key, Vec::new()).public_jwks();
            let keys = KeySet::new(published.as_object().expect("a document")).expect("a key set");
            assert_eq!(keys.verify(&token), SignatureVerdict::Verified, "{name}");
        }
        for name in ["ES256", "EdDSA", "HS256"] {
            let algorithm = name.parse().expect("an algorithm");
            assert!(rsa.signing_with(algorithm).is_none(), "{name}");
        }
    }

    #[test]
    fn a_key_signs_with_the_best_algorithm_that_the_metadata_list() {
        let rsa = include_str!("../../../../dev/scripted-provider/keys/rsa-0.pem");
        let rsa = ClientKey::from_pem(rsa).expect("a usable key");
        let der =
            EcdsaKeyPair::generate_pkcs8(&signature::ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let ec = ClientKey::from_pem(&pem(der.expect("a key").as_ref())).expect("a usable key");
        for (key, listed, best) in [
            (&rsa, &["RS256", "PS256", "ES256"][..], "PS256"),
            (&rsa, &["PS512", "RS512"], "PS512"),
            (&rsa, &["RS512", "RS256"], "RS256"),
            (&rsa, &["ES256"], "RS256"),
            (&rsa, &[], "RS256"),
            (&ec, &["PS256", "RS256"], "ES256"),
        ] {
            let keys = ClientKeys::new(key.clone(), Vec::new());
            let signing = keys.signing_by(listed);
            let raw = signing.sign(json!({}), &json!({})).expect("signed");
            let token = UnverifiedToken::parse(&raw, &AcceptedAlgorithms::Auto).expect("a token");
            assert_eq!(token.algorithm.name(), best, "{listed:?}");
            let published = keys.public_jwks();
            let alg = &published["keys"][0]["alg"];
            assert!(alg.is_null() || alg == best, "{listed:?} {published}");
        }
    }
}
