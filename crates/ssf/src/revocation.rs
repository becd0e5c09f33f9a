//! Global Token Revocation (draft-parecki-oauth-global-token-revocation-06): the body of a request, and the
//! JWT that authenticates it, as Okta's Universal Logout sends it.
//!
//! Invariant: no security event, ID token or logout token is accepted as the JWT, because of its `typ`.
//!
//! Deliberately absent
//! - `sub` of the JWT. It names the application at the sender; `aud` already binds the JWT to this receiver.
//! - Replay protection. It needs memory that all replicas share: the caller stores `jti`.

use oidc::{AcceptedAlgorithms, UnverifiedToken, numeric_date};
use serde_json::{Map, Value};

use crate::strict_json::strict_object;
use crate::token::{CLOCK_TOLERANCE_SECS, MAX_TOKEN_ID_BYTES, is_for_one_of};
use crate::{EventSubject, SecurityEventError, SubjectIdentifier};

/// The `typ` of the JWT, in full.
const TYPE: &str = "application/global-token-revocation+jwt";
/// Longest lifetime of a JWT in seconds. Okta's live five minutes; the caller remembers each until it expires.
const MAX_LIFETIME_SECS: u64 = 3_600;

/// A valid JWT of a request, unless it was used before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationToken {
    /// Unique identifier of the token, among those of its transmitter.
    pub jti: String,
    /// After this time it is no longer valid, in seconds since the Unix epoch.
    pub valid_until: u64,
}

/// Parses a token of this type. Its claims are not verified.
///
/// # Errors
/// The text is not such a token.
pub(crate) fn parse(raw: &str) -> Result<UnverifiedToken<'_>, SecurityEventError> {
    let token = UnverifiedToken::parse(raw, &AcceptedAlgorithms::Auto)?;
    if token.has_type() && token.type_is(&[TYPE]) {
        return Ok(token);
    }
    Err(SecurityEventError::invalid(
        "typ",
        "is not global-token-revocation+jwt",
    ))
}

impl RevocationToken {
    /// Validates the claims of a token of `issuer`; `audiences` are the names of this receiver. Call it before
    /// the signature check, so that an invalid token costs no key fetch. `now` is in seconds since the Unix
    /// epoch.
    ///
    /// # Errors
    /// The first invalid claim.
    pub(crate) fn validate(
        claims: &Map<String, Value>,
        issuer: &str,
        audiences: &[String],
        now: u64,
    ) -> Result<Self, SecurityEventError> {
        let wrong = |part, fault| Err(SecurityEventError::invalid(part, fault));
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let instant = |name: &str| claims.get(name).and_then(numeric_date);
        let latest = now.saturating_add(CLOCK_TOLERANCE_SECS);
        if text("iss") != Some(issuer) {
            return wrong("iss", "is not the transmitter");
        }
        if !is_for_one_of(audiences, claims.get("aud")) {
            return wrong("aud", "does not name this receiver");
        }
        if claims.contains_key("nbf") && instant("nbf").is_none_or(|nbf| nbf > latest) {
            return wrong("nbf", "has not been reached");
        }
        if instant("iat").is_none_or(|iat| iat > latest) {
            return wrong("iat", "is absent or in the future");
        }
        let valid_until = instant("exp").map(|exp| exp.saturating_add(CLOCK_TOLERANCE_SECS));
        let Some(valid_until) = valid_until.filter(|until| *until > now) else {
            return wrong("exp", "is absent or in the past");
        };
        if valid_until > latest.saturating_add(CLOCK_TOLERANCE_SECS + MAX_LIFETIME_SECS) {
            return wrong("exp", "is more than an hour ahead");
        }
        match text("jti") {
            Some(jti) if !jti.is_empty() && jti.len() <= MAX_TOKEN_ID_BYTES => Ok(Self {
                jti: jti.to_owned(),
                valid_until,
            }),
            _ => wrong("jti", "is absent or too long"),
        }
    }
}

/// The user that the body of a request names, by one identifier or several (aliases), of which any may match.
///
/// # Errors
/// The body is malformed, or names no user.
pub fn revocation_subject(body: &str) -> Result<Vec<SubjectIdentifier>, SecurityEventError> {
    let request = strict_object(body.as_bytes());
    let request = request
        .ok_or_else(|| SecurityEventError::invalid("the body", "is no JSON object with unique names"))?;
    match EventSubject::of(request.get("sub_id"))? {
        EventSubject::Simple(identifiers) => Ok(identifiers),
        EventSubject::Complex { .. } => Err(SecurityEventError::invalid(
            "sub_id",
            "has the format complex, which is for events alone",
        )),
    }
}

#[cfg(test)]
#[path = "revocation_tests.rs"]
mod tests;
