//! The provider's verification keys (RFC 7517). Keys that do not serve signatures, or are too weak, never come in.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::JsonWebKey as _;
use openidconnect::core::CoreJsonWebKey;
use serde_json::{Map, Value};

use crate::SigningAlgorithm;
use crate::jws::Unverified;

/// More keys than any provider rotates through.
const MAX_KEYS: usize = 64;
/// Without a `kid` every fitting key is tried, but not without end.
const MAX_TRIES: usize = 8;
/// RFC 7518 section 3.3.
const LEAST_RSA_BITS: usize = 2048;

/// What became of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Verified,
    NoSuchKey,
    BadSignature,
}

struct Key {
    kid: Option<String>,
    key: CoreJsonWebKey,
}

/// The keys that may verify tokens of one algorithm.
pub(crate) struct KeySet {
    keys: Vec<Key>,
}

impl KeySet {
    /// Keeps the keys of a JWKS document that fit `algorithm`; those we do not understand are passed over.
    pub(crate) fn from_jwks(document: &Map<String, Value>, algorithm: SigningAlgorithm) -> Option<Self> {
        let members = document.get("keys")?.as_array()?;
        let fitting = members
            .iter()
            .take(MAX_KEYS)
            .filter_map(|member| usable(member, algorithm));
        Some(Self {
            keys: fitting.collect(),
        })
    }

    /// The client secret as the one key.
    pub(crate) fn symmetric(secret: &[u8]) -> Self {
        Self {
            keys: vec![Key {
                kid: None,
                key: CoreJsonWebKey::new_symmetric(secret.to_vec()),
            }],
        }
    }

    pub(crate) fn verify(&self, token: &Unverified<'_>, algorithm: SigningAlgorithm) -> Verdict {
        let fits = |key: &&Key| match (&token.kid, &key.kid) {
            (Some(wanted), Some(kid)) => wanted == kid,
            (None, _) | (_, None) => true,
        };
        let mut verdict = Verdict::NoSuchKey;
        for key in self.keys.iter().filter(fits).take(MAX_TRIES) {
            if key
                .key
                .verify_signature(&algorithm.core(), token.signed, &token.signature)
                .is_ok()
            {
                return Verdict::Verified;
            }
            verdict = Verdict::BadSignature;
        }
        verdict
    }
}

fn usable(member: &Value, algorithm: SigningAlgorithm) -> Option<Key> {
    let text = |name: &str| member.get(name).and_then(Value::as_str);
    let for_signatures = text("use").is_none_or(|usage| usage == "sig")
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
    if algorithm.key_type() == "RSA" && bits(text("n")?)? < LEAST_RSA_BITS {
        return None;
    }
    // members that the crate would stumble over and that were judged above are left out
    let mut members = member.as_object()?.clone();
    members.retain(|name, _| {
        matches!(
            name.as_str(),
            "kty" | "use" | "kid" | "n" | "e" | "crv" | "x" | "y"
        )
    });
    let key = serde_json::from_value(Value::Object(members)).ok()?;
    Some(Key {
        kid: text("kid").map(str::to_owned),
        key,
    })
}

fn bits(modulus: &str) -> Option<usize> {
    let bytes = URL_SAFE_NO_PAD.decode(modulus.trim_end_matches('=')).ok()?;
    let significant = bytes.iter().skip_while(|byte| **byte == 0);
    let (first, rest) = (significant.clone().next()?, significant.count() - 1);
    Some(rest * 8 + usize::try_from(8 - first.leading_zeros()).ok()?)
}
