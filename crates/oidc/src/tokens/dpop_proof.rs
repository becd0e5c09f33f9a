//! Proofs that clients show together with a bound access token (RFC 9449 sections 4.3 and 7.1).
//!
//! Deliberately absent: the guard against replays. It needs memory, so the caller keeps the `jti` of each proof for twice
//! [`PROOF_WINDOW_SECS`]. And nonces of ours: a replay is told by its `jti`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::JsonWebKey as _;
use ring::digest;
use serde_json::{Map, Value};
use url::Url;

use crate::client::client_key::thumbprint;
use crate::json::numeric_date;
use crate::tokens::jws::UnverifiedToken;
use crate::tokens::provider_key::ProviderKey;
use crate::{AcceptedAlgorithms, IdTokenError};

/// How far the time a proof was made may be from ours, in seconds, either way: its way here and clocks that differ.
pub const PROOF_WINDOW_SECS: u64 = 60;
/// Longest proof looked at, in bytes: one with an RSA key of 4096 bits has half of it.
const MAX_PROOF_BYTES: usize = 4 * 1024;
/// Longest `jti` in bytes.
const MAX_TOKEN_ID_BYTES: usize = 512;
/// The `typ` of proofs, in full.
const TYPE: &str = "application/dpop+jwt";
/// Members of private and of symmetric keys (RFC 7518 sections 6.2.2, 6.3.2 and 6.4.1).
const SECRET_MEMBERS: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// What a proof has to be about.
#[derive(Clone, Copy)]
pub struct ExpectedProof<'a> {
    /// The method of the request.
    pub method: &'a str,
    /// The address of the request; query and fragment play no part.
    pub url: &'a Url,
    /// The access token it comes with.
    pub access_token: &'a str,
    /// The thumbprint of the key the token is bound to.
    pub thumbprint: &'a str,
}

/// A proof that holds, unless it was seen before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedProof {
    /// Its unique identifier.
    pub jti: String,
}

/// A proof was refused (RFC 9449 section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DpopProofError {
    /// Not a compact JWS, too long, or not strict JSON inside.
    #[error("the proof is malformed")]
    Malformed,
    /// The header has `crit`, or `typ` is not `dpop+jwt`.
    #[error("typ of the proof is not dpop+jwt")]
    Type,
    /// `alg` is none that proofs may be signed with.
    #[error("the proof is signed with an algorithm that is not allowed")]
    Algorithm,
    /// `jwk` is absent, unusable, or holds a private key.
    #[error("the proof holds no usable public key")]
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

/// Verifies a proof; `now` in seconds since the Unix epoch.
///
/// # Errors
/// Why it proves nothing.
pub fn verify_proof(
    raw: &str,
    expected: &ExpectedProof<'_>,
    now: u64,
) -> Result<VerifiedProof, DpopProofError> {
    use DpopProofError as Refused;
    if raw.len() > MAX_PROOF_BYTES {
        return Err(Refused::Malformed);
    }
    let proof = UnverifiedToken::parse(raw, &AcceptedAlgorithms::Auto).map_err(|error| match error {
        IdTokenError::Algorithm => Refused::Algorithm,
        IdTokenError::Header => Refused::Type,
        _ => Refused::Malformed,
    })?;
    if proof.typ.is_none() || !proof.type_is(&[TYPE]) {
        return Err(Refused::Type);
    }
    let jwk = proof
        .header("jwk")
        .and_then(Value::as_object)
        .ok_or(Refused::Key)?;
    if SECRET_MEMBERS.iter().any(|secret| jwk.contains_key(*secret)) {
        return Err(Refused::Key);
    }
    let required = required_members(jwk).ok_or(Refused::Key)?;
    if thumbprint(&required) != expected.thumbprint {
        return Err(Refused::OtherKey);
    }
    let claims = proof.claims().map_err(|_| Refused::Malformed)?;
    let jti = judge(&claims, expected, now)?;
    let key: ProviderKey = serde_json::from_value(required).map_err(|_| Refused::Key)?;
    if !key.fits(proof.algorithm) {
        return Err(Refused::Key);
    }
    // Last, so that only a proof that would count costs its verification.
    key.verify_signature(&proof.algorithm, proof.signed, &proof.signature)
        .map_err(|_| Refused::Signature)?;
    Ok(VerifiedProof { jti })
}

/// What the claims say, against the request; gives the proof's identifier.
fn judge(
    claims: &Map<String, Value>,
    expected: &ExpectedProof<'_>,
    now: u64,
) -> Result<String, DpopProofError> {
    use DpopProofError as Refused;
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("htm") != Some(expected.method) {
        return Err(Refused::Method);
    }
    let htu = text("htu").and_then(|htu| Url::parse(htu).ok());
    if htu.is_none_or(|htu| bare(&htu) != bare(expected.url)) {
        return Err(Refused::Address);
    }
    let iat = claims
        .get("iat")
        .and_then(numeric_date)
        .ok_or(Refused::IssuedAt)?;
    if now.abs_diff(iat) > PROOF_WINDOW_SECS {
        return Err(Refused::IssuedAt);
    }
    let hash = digest::digest(&digest::SHA256, expected.access_token.as_bytes());
    if text("ath") != Some(&URL_SAFE_NO_PAD.encode(hash)) {
        return Err(Refused::TokenHash);
    }
    let jti = text("jti").filter(|jti| !jti.is_empty() && jti.len() <= MAX_TOKEN_ID_BYTES);
    jti.map(str::to_owned).ok_or(Refused::TokenId)
}

/// An address without query and fragment, as URL parsers normalise it (RFC 9449 section 4.3, step 9).
fn bare(url: &Url) -> &str {
    &url[..url::Position::AfterPath]
}

/// The members a public key is made of, which its thumbprint covers (RFC 7638 section 3.2, RFC 8037 section 2).
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

#[cfg(test)]
#[path = "dpop_proof_tests.rs"]
mod tests;
