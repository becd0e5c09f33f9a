//! The provider's verification keys (RFC 7517). Keys that do not serve signatures, or are too weak, never come in.
//!
//! RSA, which nearly every provider signs with, is verified by `ring`, several times faster than by `openidconnect`, and so is
//! HMAC, where `openidconnect` panics over a signature of another length. It verifies the others.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::JsonWebKey as _;
use openidconnect::core::CoreJsonWebKey;
use ring::hmac;
use ring::signature::RsaPublicKeyComponents;
use serde_json::{Map, Value};

use crate::SigningAlgorithm;
use crate::jws::Unverified;

/// Without a `kid` every fitting key is tried, but not without end: anybody can send a logout token. Providers that publish
/// several keys have to name them (OpenID Connect Core 10.1).
const MAX_TRIES: usize = 32;
/// RFC 7518 section 3.3.
const LEAST_RSA_BITS: usize = 2048;

/// What became of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Verified,
    /// No key of the set verifies the token, and none has the name the token gives: its key may not be published yet.
    NoSuchKey,
    /// The key the token names does not verify it.
    BadSignature,
}

struct Key {
    kid: Option<String>,
    key: Public,
}

/// What verifies.
enum Public {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    Secret(hmac::Key),
    Other(Box<CoreJsonWebKey>),
}

impl Public {
    fn verifies(&self, token: &Unverified<'_>, algorithm: SigningAlgorithm) -> bool {
        match self {
            Self::Rsa(key) => algorithm
                .rsa()
                .is_some_and(|how| key.verify(how, token.signed, &token.signature).is_ok()),
            Self::Secret(key) => {
                algorithm.is_symmetric() && hmac::verify(key, token.signed, &token.signature).is_ok()
            }
            Self::Other(key) => key
                .verify_signature(&algorithm.core(), token.signed, &token.signature)
                .is_ok(),
        }
    }
}

/// The keys that may verify tokens of one algorithm, as many as fit into an answer of the provider.
pub(crate) struct KeySet {
    keys: Vec<Key>,
}

impl KeySet {
    /// Keeps the keys of a JWKS document that fit `algorithm`; those we do not understand are passed over.
    pub(crate) fn from_jwks(document: &Map<String, Value>, algorithm: SigningAlgorithm) -> Option<Self> {
        let members = document.get("keys")?.as_array()?;
        let fitting = members.iter().filter_map(|member| usable(member, algorithm));
        Some(Self {
            keys: fitting.collect(),
        })
    }

    /// The client secret as the one key.
    pub(crate) fn symmetric(secret: &[u8]) -> Self {
        Self {
            keys: vec![Key {
                kid: None,
                key: Public::Secret(hmac::Key::new(hmac::HMAC_SHA256, secret)),
            }],
        }
    }

    /// Tries the keys of the token's `kid` first, then those without a name; all of them for a token that names none.
    pub(crate) fn verify(&self, token: &Unverified<'_>, algorithm: SigningAlgorithm) -> Verdict {
        let is_named = |key: &&Key| key.kid.is_some() && key.kid == token.kid;
        let may_be = |key: &&Key| token.kid.is_none() || key.kid.is_none();
        let named = self.keys.iter().filter(is_named);
        let others = self.keys.iter().filter(may_be);
        let mut tried = named.clone().chain(others).take(MAX_TRIES);
        if tried.any(|key| key.key.verifies(token, algorithm)) {
            Verdict::Verified
        } else if named.count() > 0 {
            Verdict::BadSignature
        } else {
            Verdict::NoSuchKey
        }
    }
}

fn usable(member: &Value, algorithm: SigningAlgorithm) -> Option<Key> {
    let text = |name: &str| member.get(name).and_then(Value::as_str);
    let for_signatures = member.get("use").is_none_or(|usage| usage == "sig")
        && member.get("kid").is_none_or(Value::is_string)
        && member
            .get("alg")
            .is_none_or(|alg| alg.as_str() == Some(algorithm.name()))
        && member.get("key_ops").is_none_or(|operations| {
            operations
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one == "verify"))
        });
    if !for_signatures || text("kty") != Some(algorithm.key_type()) || text("crv") != algorithm.curve() {
        return None;
    }
    let kid = text("kid").map(str::to_owned);
    if algorithm.rsa().is_some() {
        let (n, e) = (number(text("n")?)?, number(text("e")?)?);
        let strong = bits(&n) >= LEAST_RSA_BITS;
        let key = Public::Rsa(RsaPublicKeyComponents { n, e });
        return strong.then_some(Key { kid, key });
    }
    // members that the crate would stumble over and that were judged above are left out
    let mut members = member.as_object()?.clone();
    members.retain(|name, _| matches!(name.as_str(), "kty" | "use" | "kid" | "crv" | "x" | "y"));
    if let Some(bytes) = algorithm.coordinate_bytes() {
        for name in ["x", "y"] {
            members.insert(name.to_owned(), Value::String(coordinate(text(name)?, bytes)?));
        }
    }
    let key = serde_json::from_value(Value::Object(members)).ok()?;
    Some(Key {
        kid,
        key: Public::Other(Box::new(key)),
    })
}

/// The bytes of a number in base64url, without zeros in front (RFC 7518, section 2).
fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros..).map(<[u8]>::to_vec)
}

/// A coordinate as long as those of its curve are (RFC 7518, section 6.2.1.2). Some providers leave out the zeros in front, which one
/// key in 128 has: nobody could sign in there until it is replaced.
fn coordinate(text: &str, bytes: usize) -> Option<String> {
    let number = number(text)?;
    let zeros = vec![0; bytes.checked_sub(number.len())?];
    Some(URL_SAFE_NO_PAD.encode([zeros, number].concat()))
}

/// How many bits a number without zeros in front has.
fn bits(number: &[u8]) -> usize {
    let first = number.first().map_or(0, |byte| byte.leading_zeros());
    (number.len() * 8).saturating_sub(usize::try_from(first).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use ring::signature::{EcdsaKeyPair, KeyPair as _};
    use serde_json::json;

    use super::*;

    fn keys(algorithm: SigningAlgorithm) -> KeySet {
        let x = URL_SAFE_NO_PAD.encode([0x58; 32]);
        // The generators of the two curves (FIPS 186-4, appendix D.1.2).
        let point = |curve, x: &str, y: &str| json!({ "kty": "EC", "crv": curve, "x": x, "y": y });
        let key = match algorithm.key_type() {
            "oct" => return KeySet::symmetric(&[7; 32]),
            "OKP" => json!({ "kty": "OKP", "crv": "Ed25519", "x": x }),
            "RSA" => json!({ "kty": "RSA", "n": URL_SAFE_NO_PAD.encode([0xbf; 256]), "e": "AQAB" }),
            _ if algorithm == SigningAlgorithm::Es256 => point(
                "P-256",
                "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY",
                "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU",
            ),
            _ => point(
                "P-384",
                "qofKIr6LBTeOscce8yCtdG4dO2KLp5uYWfdB4IJUKjhVAvJdv1UpbDpUXjhydgq3",
                "NhfeSpYmLG9dnpi_kpLcKfj0Hb0omhR86doxE7XwuMAKYLHOHX6BnXpDHXyQ6g5f",
            ),
        };
        let document = json!({ "keys": [key] });
        let document = document.as_object().expect("an object");
        KeySet::from_jwks(document, algorithm).expect("a key set")
    }

    #[test]
    fn a_signature_of_any_length_is_refused_and_nothing_worse() {
        for name in ["RS256", "RS512", "PS256", "ES256", "ES384", "EdDSA", "HS256"] {
            let algorithm: SigningAlgorithm = name.parse().expect("an algorithm");
            let header = URL_SAFE_NO_PAD.encode(format!("{{\"alg\":\"{name}\"}}"));
            for length in [0, 1, 31, 32, 33, 48, 63, 64, 65, 96, 255, 256, 257, 8_192] {
                let signature = URL_SAFE_NO_PAD.encode(vec![7; length]);
                let raw = format!("{header}.e30.{signature}");
                let token = Unverified::parse(&raw, algorithm).expect("a token");
                let verdict = keys(algorithm).verify(&token, algorithm);
                assert_eq!(verdict, Verdict::NoSuchKey, "{name} {length}");
            }
        }
    }

    #[test]
    fn a_coordinate_without_the_zeros_in_front_is_the_same_number() {
        let random = ring::rand::SystemRandom::new();
        let algorithm = &ring::signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        for zero in [0, 1] {
            let pair = loop {
                let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
                let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).expect("the key");
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
            let token = Unverified::parse(&raw, SigningAlgorithm::Es256).expect("a token");
            let verdict = |x: String, y: String| {
                let document = json!({ "keys": [{ "kty": "EC", "crv": "P-256", "x": x, "y": y }] });
                let keys =
                    KeySet::from_jwks(document.as_object().expect("an object"), SigningAlgorithm::Es256);
                keys.map(|keys| keys.verify(&token, SigningAlgorithm::Es256))
            };
            let (x, y) = (bare(&point[..32]), bare(&point[32..]));
            assert_eq!(
                verdict(x.clone(), y.clone()).expect("a key set"),
                Verdict::Verified
            );
            // One that is too long is none.
            let long = URL_SAFE_NO_PAD.encode([&[1], &point[..32]].concat());
            assert_ne!(verdict(long, y), Some(Verdict::Verified));
        }
    }
}
