//! Proofs that clients send with a bound access token (RFC 9449 sections 4.3 and 7.1).
//!
//! Deliberately absent: replay protection. It needs memory: the caller stores each proof's `jti` for twice
//! [`PROOF_WINDOW_SECS`]. Also absent: our own nonces, because `jti` identifies a replay.

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use url::Url;

use crate::AcceptedAlgorithms;
use crate::client::client_key::thumbprint;
use crate::json::numeric_date;
use crate::tokens::proof::{self, ProofError, required_members};

/// Allowed difference between a proof's time and ours, in seconds: transit and clock differences.
pub const PROOF_WINDOW_SECS: u64 = 60;
/// Longest `jti` in bytes.
const MAX_TOKEN_ID_BYTES: usize = 512;
/// The `typ` of proofs, in full.
const TYPE: &str = "application/dpop+jwt";
/// Members of private and of symmetric keys (RFC 7518 sections 6.2.2, 6.3.2 and 6.4.1).
const SECRET_MEMBERS: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// The request that a proof must match.
#[derive(Clone, Copy)]
pub struct ExpectedProof<'a> {
    /// The method of the request.
    pub method: &'a str,
    /// The URL of the request; query and fragment are ignored.
    pub url: &'a Url,
    /// The access token of the request.
    pub access_token: &'a str,
    /// The thumbprint of the key the token is bound to.
    pub thumbprint: &'a str,
}

/// A valid proof. The caller still has to check for replays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedProof {
    /// Its unique identifier.
    pub jti: String,
}

/// Verifies a proof; `now` in seconds since the Unix epoch.
///
/// # Errors
/// Why the proof is invalid.
pub fn verify_proof(raw: &str, expected: &ExpectedProof<'_>, now: u64) -> Result<VerifiedProof, ProofError> {
    let proof = proof::parse(raw, &AcceptedAlgorithms::Auto, TYPE)?;
    let jwk = proof
        .header
        .get("jwk")
        .and_then(Value::as_object)
        .ok_or(ProofError::Key)?;
    if SECRET_MEMBERS.iter().any(|secret| jwk.contains_key(*secret)) {
        return Err(ProofError::Key);
    }
    let required = required_members(jwk).ok_or(ProofError::Key)?;
    if thumbprint(&required) != expected.thumbprint {
        return Err(ProofError::OtherKey);
    }
    let claims = proof.claims().map_err(|_| ProofError::Malformed)?;
    let jti = check_claims(&claims, expected, now)?;
    // Last, so that an invalid proof costs no verification.
    proof::verify(&proof, required)?;
    Ok(VerifiedProof { jti })
}

/// Checks the claims against the request. Returns the proof's identifier.
fn check_claims(
    claims: &Map<String, Value>,
    expected: &ExpectedProof<'_>,
    now: u64,
) -> Result<String, ProofError> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("htm") != Some(expected.method) {
        return Err(ProofError::Method);
    }
    let htu = text("htu").and_then(|htu| Url::parse(htu).ok());
    if htu.is_none_or(|htu| bare(&htu) != bare(expected.url)) {
        return Err(ProofError::Address);
    }
    let iat = claims
        .get("iat")
        .and_then(numeric_date)
        .ok_or(ProofError::IssuedAt)?;
    if now.abs_diff(iat) > PROOF_WINDOW_SECS {
        return Err(ProofError::IssuedAt);
    }
    let hash = digest::digest(&digest::SHA256, expected.access_token.as_bytes());
    if text("ath") != Some(&URL_SAFE_NO_PAD.encode(hash)) {
        return Err(ProofError::TokenHash);
    }
    let jti = text("jti").filter(|jti| !jti.is_empty() && jti.len() <= MAX_TOKEN_ID_BYTES);
    jti.map(str::to_owned).ok_or(ProofError::TokenId)
}

/// A URL without query and fragment, normalised by the parser (RFC 9449 section 4.3, step 9).
fn bare(url: &Url) -> &str {
    &url[..url::Position::AfterPath]
}

#[cfg(test)]
#[path = "dpop_proof_tests.rs"]
mod tests;
