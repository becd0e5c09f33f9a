//! Proofs of device-bound sessions (W3C Device Bound Session Credentials, section "DBSC Proof JWT Syntax"): a browser holds the key its session was
//! registered with.
//!
//! Deliberately absent: what a challenge is. Whoever made it judges the `jti` of a proof, before or after.

use openidconnect::JsonWebKey as _;
use serde_json::Value;

use crate::tokens::dpop_proof::required_members;
use crate::tokens::jws::UnverifiedToken;
use crate::tokens::provider_key::ProviderKey;
use crate::{AcceptedAlgorithms, IdTokenError, SigningAlgorithm};

/// Longest proof looked at, in bytes: one with an RSA key of 4096 bits has half of it.
const MAX_PROOF_BYTES: usize = 4 * 1024;
/// The `typ` of proofs, in full.
const TYPE: &str = "application/dbsc+jwt";
/// What browsers may sign with; they are told by the same names.
const ALGORITHMS: [SigningAlgorithm; 2] = [SigningAlgorithm::Es256, SigningAlgorithm::Rs256];

/// A proof that holds, for whoever made its challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceProof {
    /// The challenge it repeats.
    pub challenge: String,
    /// The text of the public key (JWK) it is signed with: its own at the registration, the one that was given otherwise.
    pub jwk: String,
}

/// A proof was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceProofError {
    /// Not a compact JWS, too long, or not strict JSON inside.
    #[error("the proof is malformed")]
    Malformed,
    /// The header has `crit`, or `typ` is not `dbsc+jwt`.
    #[error("typ of the proof is not dbsc+jwt")]
    Type,
    /// `alg` is neither ES256 nor RS256.
    #[error("the proof is signed with an algorithm that is not allowed")]
    Algorithm,
    /// The key is absent, unusable, or another's.
    #[error("the proof's key cannot be used")]
    Key,
    /// The signature does not verify by the key.
    #[error("the proof's signature does not verify")]
    Signature,
    /// `jti` is absent.
    #[error("jti of the proof is absent")]
    Challenge,
}

/// Verifies the proof of a registration, which brings its key along.
///
/// # Errors
/// Why it proves nothing.
pub fn verify_registration(raw: &str) -> Result<DeviceProof, DeviceProofError> {
    let proof = parse(raw)?;
    let jwk = proof.header("jwk").and_then(Value::as_object);
    let members = jwk.and_then(required_members).ok_or(DeviceProofError::Key)?;
    verified(&proof, members)
}

/// Verifies the proof of a refresh by the key of the registration.
///
/// # Errors
/// Why it proves nothing.
pub fn verify_refresh(raw: &str, jwk: &str) -> Result<DeviceProof, DeviceProofError> {
    let proof = parse(raw)?;
    // It MUST not be present: who trusts the key that comes with a proof trusts everybody.
    if proof.header("jwk").is_some() {
        return Err(DeviceProofError::Key);
    }
    let members = serde_json::from_str(jwk).map_err(|_| DeviceProofError::Key)?;
    verified(&proof, members)
}

/// The challenge that a proof claims to answer, before anything of it is verified: good for refusing it, and for nothing else.
#[must_use]
pub fn unverified_challenge(raw: &str) -> Option<String> {
    let claims = parse(raw).ok()?.claims().ok()?;
    claims.get("jti")?.as_str().map(str::to_owned)
}

fn parse(raw: &str) -> Result<UnverifiedToken<'_>, DeviceProofError> {
    if raw.len() > MAX_PROOF_BYTES {
        return Err(DeviceProofError::Malformed);
    }
    let allowed = AcceptedAlgorithms::Named(ALGORITHMS.to_vec());
    let proof = UnverifiedToken::parse(raw, &allowed).map_err(|error| match error {
        IdTokenError::Algorithm => DeviceProofError::Algorithm,
        IdTokenError::Header => DeviceProofError::Type,
        _ => DeviceProofError::Malformed,
    })?;
    if proof.typ.is_none() || !proof.type_is(&[TYPE]) {
        return Err(DeviceProofError::Type);
    }
    Ok(proof)
}

fn verified(proof: &UnverifiedToken<'_>, jwk: Value) -> Result<DeviceProof, DeviceProofError> {
    let text = jwk.to_string();
    let key: ProviderKey = serde_json::from_value(jwk).map_err(|_| DeviceProofError::Key)?;
    if !key.fits(proof.algorithm) {
        return Err(DeviceProofError::Key);
    }
    let claims = proof.claims().map_err(|_| DeviceProofError::Malformed)?;
    let challenge = claims
        .get("jti")
        .and_then(Value::as_str)
        .filter(|jti| !jti.is_empty());
    let challenge = challenge.ok_or(DeviceProofError::Challenge)?.to_owned();
    key.verify_signature(&proof.algorithm, proof.signed, &proof.signature)
        .map_err(|_| DeviceProofError::Signature)?;
    Ok(DeviceProof { challenge, jwk: text })
}

#[cfg(test)]
#[path = "device_proof_tests.rs"]
mod tests;
