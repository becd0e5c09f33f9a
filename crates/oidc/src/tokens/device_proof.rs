//! Proofs of device-bound sessions (W3C Device Bound Session Credentials, section "DBSC Proof JWT Syntax"):
//! the browser has the key of its session.
//!
//! Deliberately absent: challenges. The caller that created the challenge checks a proof's `jti`.

use serde_json::Value;

use crate::tokens::jws::UnverifiedToken;
use crate::tokens::proof::{self, ProofError, required_members};
use crate::{AcceptedAlgorithms, SigningAlgorithm};

/// The `typ` of proofs, in full.
const TYPE: &str = "application/dbsc+jwt";
/// The algorithms that browsers may use. They receive these names at the registration.
const ALGORITHMS: [SigningAlgorithm; 2] = [SigningAlgorithm::Es256, SigningAlgorithm::Rs256];

/// A valid proof. The caller still has to check the challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceProof {
    /// The challenge in the proof.
    pub challenge: String,
    /// The public key (JWK) of the signature: from the proof at the registration, from the caller later.
    pub jwk: String,
}

/// Verifies the proof of a registration, which contains its key.
///
/// # Errors
/// Why the proof is invalid.
pub fn verify_registration(raw: &str) -> Result<DeviceProof, ProofError> {
    let proof = parse(raw)?;
    let jwk = proof.header.get("jwk").and_then(Value::as_object);
    let members = jwk.and_then(required_members).ok_or(ProofError::Key)?;
    verified(&proof, members)
}

/// Verifies the proof of a refresh with the registered key.
///
/// # Errors
/// Why the proof is invalid.
pub fn verify_refresh(raw: &str, jwk: &str) -> Result<DeviceProof, ProofError> {
    let proof = parse(raw)?;
    // It MUST be absent: with a key from the proof itself, any client could sign.
    if proof.header.get("jwk").is_some() {
        return Err(ProofError::Key);
    }
    let members = serde_json::from_str(jwk).map_err(|_| ProofError::Key)?;
    verified(&proof, members)
}

/// The challenge of an unverified proof. It may only serve to reject the proof.
#[must_use]
pub fn unverified_challenge(raw: &str) -> Option<String> {
    let claims = parse(raw).ok()?.claims().ok()?;
    claims.get("jti")?.as_str().map(str::to_owned)
}

fn parse(raw: &str) -> Result<UnverifiedToken<'_>, ProofError> {
    proof::parse(raw, &AcceptedAlgorithms::Named(ALGORITHMS.to_vec()), TYPE)
}

fn verified(proof: &UnverifiedToken<'_>, jwk: Value) -> Result<DeviceProof, ProofError> {
    let text = jwk.to_string();
    let claims = proof.claims().map_err(|_| ProofError::Malformed)?;
    let challenge = claims.get("jti").and_then(Value::as_str);
    let challenge = challenge.filter(|jti| !jti.is_empty());
    let challenge = challenge.ok_or(ProofError::TokenId)?.to_owned();
    proof::verify(proof, jwk)?;
    Ok(DeviceProof { challenge, jwk: text })
}

#[cfg(test)]
#[path = "device_proof_tests.rs"]
mod tests;
