//! Parses and verifies proofs that clients sign with their own key (RFC 9449 section 4.3, W3C Device Bound
//! Session Credentials).

use serde_json::{Map, Value};

use crate::tokens::jws::UnverifiedToken;
use crate::tokens::provider_key::ProviderKey;
use crate::{AcceptedAlgorithms, IdTokenError};

/// Longest proof accepted, in bytes: twice the size of one with a 4096-bit RSA key.
pub(crate) const MAX_PROOF_BYTES: usize = 4 * 1024;

/// A proof was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// Not a compact JWS, too long, or not strict JSON inside.
    #[error("the proof is malformed")]
    Malformed,
    /// The header has `crit` or a wrong `typ`.
    #[error("typ of the proof is not the expected one")]
    Type,
    /// `alg` is not allowed for proofs.
    #[error("the proof is signed with an algorithm that is not allowed")]
    Algorithm,
    /// `jwk` is missing, unusable or private, or present although the key is known.
    #[error("the proof's key cannot be used")]
    Key,
    /// The signature does not verify by the key.
    #[error("the proof's signature does not verify")]
    Signature,
    /// `htm` is another method.
    #[error("htm is not the request's method")]
    Method,
    /// `htu` is another address.
    #[error("htu is not the request's address")]
    Address,
    /// `iat` is absent, or too far from now.
    #[error("iat of the proof is too far from now")]
    IssuedAt,
    /// `jti` is absent, empty or too long.
    #[error("jti of the proof is absent")]
    TokenId,
    /// `ath` is not the hash of the access token.
    #[error("ath is not the hash of the access token")]
    TokenHash,
    /// The token is bound to another key.
    #[error("the access token is bound to another key")]
    OtherKey,
}

/// Parses a proof with this full `typ` without verifying it.
pub(crate) fn parse<'a>(
    raw: &'a str,
    accepted: &AcceptedAlgorithms,
    typ: &str,
) -> Result<UnverifiedToken<'a>, ProofError> {
    if raw.len() > MAX_PROOF_BYTES {
        return Err(ProofError::Malformed);
    }
    let proof = UnverifiedToken::parse(raw, accepted).map_err(|error| match error {
        IdTokenError::Algorithm => ProofError::Algorithm,
        IdTokenError::Header => ProofError::Type,
        _ => ProofError::Malformed,
    })?;
    if proof.typ.is_none() || !proof.type_is(&[typ]) {
        return Err(ProofError::Type);
    }
    Ok(proof)
}

/// Verifies the signature of a proof with the key of these members.
pub(crate) fn verify(proof: &UnverifiedToken<'_>, members: Value) -> Result<(), ProofError> {
    let key: ProviderKey = serde_json::from_value(members).map_err(|_| ProofError::Key)?;
    if !key.fits(proof.algorithm) {
        return Err(ProofError::Key);
    }
    if key.verifies(proof.algorithm, proof.signed, &proof.signature) {
        Ok(())
    } else {
        Err(ProofError::Signature)
    }
}

/// The required members of a public key, as in its thumbprint (RFC 7638 section 3.2, RFC 8037 section 2).
pub(crate) fn required_members(jwk: &Map<String, Value>) -> Option<Value> {
    let names: &[&str] = match jwk.get("kty")?.as_str()? {
        "RSA" => &["e", "kty", "n"],
        "EC" => &["crv", "kty", "x", "y"],
        "OKP" => &["crv", "kty", "x"],
        _ => return None,
    };
    let member = |name: &&str| {
        let value = jwk.get(*name)?.as_str()?;
        Some(((*name).to_owned(), Value::from(value)))
    };
    let members: Option<Map<String, Value>> = names.iter().map(member).collect();
    members.map(Value::Object)
}
