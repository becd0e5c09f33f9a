//! The provider's key set (RFC 7517 section 5), and the choice of keys for a token. Keys that fit no
//! algorithm are dropped. A key never verifies a signature of an algorithm that it does not fit.

use serde::Deserialize as _;
use serde_json::{Map, Value};

use crate::SigningAlgorithm;
use crate::tokens::jws::UnverifiedToken;
use crate::tokens::provider_key::ProviderKey;

/// Without a `kid`, all fitting keys are tried, up to this bound: any client can send a logout token.
/// Providers with several keys must name them (OpenID Connect Core 10.1).
const MAX_TRIES: usize = 32;

/// The result of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignatureVerdict {
    Verified,
    /// No key of the set verifies the token or has the name it gives: its key may not be published yet.
    NoSuchKey,
    /// The key that the token names does not verify it.
    BadSignature,
}

/// The keys that may verify tokens; the limit on answers bounds their number.
#[derive(Debug)]
pub(crate) struct KeySet(Vec<ProviderKey>);

impl KeySet {
    /// Keeps keys that fit a public-key algorithm, never a shared secret. Other members are ignored. `None`
    /// if the document has no list.
    pub(crate) fn new(document: &Map<String, Value>) -> Option<Self> {
        let listed = document.get("keys")?.as_array()?.iter();
        let keys = listed.filter_map(|key| ProviderKey::deserialize(key).ok());
        let fits = |key: &ProviderKey| SigningAlgorithm::PUBLIC_KEY.iter().any(|one| key.fits(*one));
        Some(Self(keys.filter(fits).collect()))
    }

    /// The number of keys that verify signatures of an algorithm.
    pub(crate) fn fitting(&self, algorithm: SigningAlgorithm) -> usize {
        self.0.iter().filter(|key| key.fits(algorithm)).count()
    }

    /// Tries the keys with the token's `kid`, then those without a name; all keys if the token names none.
    pub(crate) fn verify(&self, token: &UnverifiedToken<'_>) -> SignatureVerdict {
        let fitting = || self.0.iter().filter(|key| key.fits(token.algorithm));
        let named = || fitting().filter(|key| key.kid.is_some() && key.kid == token.kid);
        let others = fitting().filter(|key| token.kid.is_none() || key.kid.is_none());
        let mut tried = named().chain(others).take(MAX_TRIES);
        if tried.any(|key| key.verifies(token.algorithm, token.signed, &token.signature)) {
            SignatureVerdict::Verified
        } else if named().count() > 0 {
            SignatureVerdict::BadSignature
        } else {
            SignatureVerdict::NoSuchKey
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{EcdsaKeyPair, KeyPair as _};
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::json;

    use super::*;
    use crate::AcceptedAlgorithms;

    /// The generator of P-521 (FIPS 186-4, appendix D.1.2.5).
    const P521_X: &str =
        "AMaFjga3BATpzZ4-y2YjlbRCnGSBOQU_tSH4KK9ga009uqFLXnfv51ko_h3BJ6L_qN4zSLPBhWpCm_l-fjHC5b1m";
    const P521_Y: &str =
        "ARg5KWp4mjvABFyKX7QsfRvZmPVESVebRGgXr70XJz5mLJfucple9CZAxVC5AT-tB2E1PHCGonLCQIi-lHaf0WZQ";

    fn key_set(key: &Value) -> KeySet {
        let published = json!({ "keys": [key] });
        KeySet::new(published.as_object().expect("a document")).expect("a key set")
    }

    fn keys(algorithm: SigningAlgorithm) -> KeySet {
        let x = URL_SAFE_NO_PAD.encode([0x58; 32]);
        // The generators of the two curves (FIPS 186-4, appendix D.1.2).
        let point = |curve, x: &str, y: &str| json!({ "kty": "EC", "crv": curve, "x": x, "y": y });
        let key = match algorithm.key_type() {
            "OKP" => json!({ "kty": "OKP", "crv": "Ed25519", "x": x }),
            "RSA" => {
                json!({ "kty": "RSA", "n": URL_SAFE_NO_PAD.encode([0xbf; 256]), "e": "AQAB" })
            }
            _ if algorithm == SigningAlgorithm::Es256 => point(
                "P-256",
                "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY",
                "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU",
            ),
            _ if algorithm == SigningAlgorithm::Es512 => point("P-521", P521_X, P521_Y),
            _ => point(
                "P-384",
                "qofKIr6LBTeOscce8yCtdG4dO2KLp5uYWfdB4IJUKjhVAvJdv1UpbDpUXjhydgq3",
                "NhfeSpYmLG9dnpi_kpLcKfj0Hb0omhR86doxE7XwuMAKYLHOHX6BnXpDHXyQ6g5f",
            ),
        };
        key_set(&key)
    }

    #[test]
    fn a_signature_of_any_length_is_refused_and_nothing_worse() {
        for algorithm in SigningAlgorithm::PUBLIC_KEY {
            let (name, accepted) = (algorithm.name(), AcceptedAlgorithms::Named(vec![algorithm]));
            let header = URL_SAFE_NO_PAD.encode(format!("{{\"alg\":\"{name}\"}}"));
            for length in [
                0, 1, 31, 32, 33, 48, 63, 64, 65, 96, 131, 132, 133, 255, 256, 257, 8_192,
            ] {
                let signature = URL_SAFE_NO_PAD.encode(vec![7; length]);
                let raw = format!("{header}.e30.{signature}");
                let token = UnverifiedToken::parse(&raw, &accepted).expect("a token");
                let verdict = keys(algorithm).verify(&token);
                assert_eq!(verdict, SignatureVerdict::NoSuchKey, "{name} {length}");
            }
        }
    }

    #[test]
    fn a_coordinate_without_the_zeros_in_front_is_the_same_number() {
        let random = aws_lc_rs::rand::SystemRandom::new();
        let algorithm = &aws_lc_rs::signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        for zero in [0, 1] {
            let pair = loop {
                let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
                let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref()).expect("the key");
                // 4, x, y
                if pair.public_key().as_ref()[1 + 32 * zero] == 0 {
                    break pair;
                }
            };
            let point = &pair.public_key().as_ref()[1..];
            let bare = |number: &[u8]| {
                let zeros = number.iter().take_while(|byte| **byte == 0).count();
                URL_SAFE_NO_PAD.encode(&number[zeros..])
            };
            let signed = format!("{}.e30", URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256"}"#));
            let signature = pair.sign(&random, signed.as_bytes()).expect("a signature");
            let raw = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
            let token = UnverifiedToken::parse(&raw, &AcceptedAlgorithms::Auto).expect("a token");
            let verdict = |x: String, y: String| {
                let key = json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y });
                key_set(&key).verify(&token)
            };
            let (x, y) = (bare(&point[..32]), bare(&point[32..]));
            assert_eq!(verdict(x.clone(), y.clone()), SignatureVerdict::Verified);
            // A coordinate that is too long is invalid.
            let long = URL_SAFE_NO_PAD.encode([&[1], &point[..32]].concat());
            assert_eq!(verdict(long, y), SignatureVerdict::NoSuchKey);
        }
    }
}
