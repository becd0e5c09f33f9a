//! Proofs of device-bound sessions (W3C Device Bound Session Credentials, section "DBSC Proof JWT Syntax"): a browser holds the key its session was
//! registered with.
//!
//! Deliberately absent: what a challenge is. Whoever made it judges the `jti` of a proof, before or after.

use serde_json::Value;

use crate::tokens::jws::UnverifiedToken;
use crate::tokens::proof::{self, ProofError, required_members};
use crate::{AcceptedAlgorithms, SigningAlgorithm};

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

/// Verifies the proof of a registration, which brings its key along.
///
/// # Errors
/// Why it proves nothing.
pub fn verify_registration(raw: &str) -> Result<DeviceProof, ProofError> {
    let proof = parse(raw)?;
    let jwk = proof.header.get("jwk").and_then(Value::as_object);
    let members = jwk.and_then(required_members).ok_or(ProofError::Key)?;
    verified(&proof, members)
}

/// Verifies the proof of a refresh by the key of the registration.
///
/// # Errors
/// Why it proves nothing.
pub fn verify_refresh(raw: &str, jwk: &str) -> Result<DeviceProof, ProofError> {
    let proof = parse(raw)?;
    // It MUST not be present: who trusts the key that comes with a proof trusts everybody.
    if proof.header.get("jwk").is_some() {
        return Err(ProofError::Key);
    }
    let members = serde_json::from_str(jwk).map_err(|_| ProofError::Key)?;
    verified(&proof, members)
}

/// The challenge that a proof claims to answer, before anything of it is verified: good for refusing it, and for nothing else.
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
