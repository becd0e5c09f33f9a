//! Security event tokens (RFC 8417) as OpenID Shared Signals Framework 1.0 section 4 profiles them.
//!
//! Invariants: no ID token, access token or logout token is accepted as one, nor vice versa: `typ` is
//! `secevent+jwt`, and `exp`, `sub` and `nonce` are absent. No `Debug` output has its subject.
//!
//! Deliberately absent
//! - Replay protection. It needs memory that all replicas share: the caller stores `jti`.
//! - A maximum age. A token reports a past event (RFC 8417 section 2.2), and a paused stream sends it later:
//!   the caller ignores sessions that started after `occurred_at`.
//! - Encrypted tokens: they come over TLS (RFC 8935 section 5.3).

use oidc::{AcceptedAlgorithms, UnverifiedToken, numeric_date};
use serde_json::{Map, Value};

use crate::draft_subject::draft_subject;
use crate::{ErrorCode, EventSubject, SecurityEvent, SecurityEventError};

/// The `typ` of security event tokens, in full.
const TYPE: &str = "application/secevent+jwt";
/// Claims that make a token one of another kind: an ID token, an access token, a logout token.
const OTHER_KINDS: [&str; 3] = ["exp", "sub", "nonce"];
/// Callers store each `jti`, so its size is bounded; `txn` is logged.
pub(crate) const MAX_TOKEN_ID_BYTES: usize = 512;
/// Tolerance for clocks that differ, in seconds.
pub(crate) const CLOCK_TOLERANCE_SECS: u64 = 60;

/// A valid security event token, unless it was received before.
#[derive(Clone, Debug, PartialEq)]
pub struct SecurityEventToken {
    /// Unique identifier of the token, among those of its transmitter.
    pub jti: String,
    /// The same for all tokens with one cause; `None` if absent or malformed.
    pub txn: Option<String>,
    /// The time of the event, in seconds since the Unix epoch, at most the token's `iat`. The event does not
    /// apply to sessions that started later (RFC 8417 section 5.4).
    pub occurred_at: u64,
    /// The subject of the event.
    pub subject: EventSubject,
    /// The event.
    pub event: SecurityEvent,
}

/// Parses a token of this type. Its claims are not verified.
///
/// # Errors
/// The text is not such a token.
pub(crate) fn parse(raw: &str, drafts: bool) -> Result<UnverifiedToken<'_>, SecurityEventError> {
    let token = UnverifiedToken::parse(raw, &AcceptedAlgorithms::Auto)?;
    let is_typed = token.has_type() && token.type_is(&[TYPE]);
    if is_typed || drafts && token.type_is(&[TYPE, "application/jwt"]) {
        return Ok(token);
    }
    Err(SecurityEventError::invalid("typ", "is not secevent+jwt"))
}

impl SecurityEventToken {
    /// Validates the claims of a token of `issuer`; `audiences` are the names of this receiver. Call it before
    /// the signature check, so that an invalid token costs no key fetch. `drafts` also allows tokens of
    /// drafts of the standard. `now` is in seconds since the Unix epoch.
    ///
    /// # Errors
    /// The first invalid claim.
    pub(crate) fn validate(
        claims: &Map<String, Value>,
        issuer: &str,
        audiences: &[String],
        drafts: bool,
        now: u64,
    ) -> Result<Self, SecurityEventError> {
        let invalid = SecurityEventError::invalid;
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let instant = |name: &str| claims.get(name).and_then(numeric_date);
        let latest = now.saturating_add(CLOCK_TOLERANCE_SECS);
        if text("iss") != Some(issuer) {
            return Err(SecurityEventError::unknown_issuer());
        }
        if !is_for_one_of(audiences, claims.get("aud")) {
            return Err(SecurityEventError::Refused {
                code: ErrorCode::InvalidAudience,
                part: "aud",
                fault: "does not name this receiver",
            });
        }
        if let Some(claim) = OTHER_KINDS.into_iter().find(|claim| claims.contains_key(*claim)) {
            return Err(invalid(claim, "is not a claim of a security event"));
        }
        if claims.contains_key("nbf") && instant("nbf").is_none_or(|nbf| nbf > latest) {
            return Err(invalid("nbf", "has not been reached"));
        }
        let iat = instant("iat").filter(|iat| *iat <= latest);
        let iat = iat.ok_or_else(|| invalid("iat", "is absent or in the future"))?;
        let short = |text: &&str| !text.is_empty() && text.len() <= MAX_TOKEN_ID_BYTES;
        let jti = text("jti").filter(short);
        let jti = jti.ok_or_else(|| invalid("jti", "is absent or too long"))?;
        let subject = match claims.get("sub_id") {
            None if drafts => EventSubject::of(draft_subject(claims.get("events")).as_ref())?,
            sub_id => EventSubject::of(sub_id)?,
        };
        let event = SecurityEvent::of(claims.get("events"))?;
        if event.stream.is_some() && !subject.is_stream() {
            return Err(invalid("sub_id", "of an event about a stream is not opaque"));
        }
        Ok(Self {
            jti: jti.to_owned(),
            txn: text("txn").filter(short).map(str::to_owned),
            occurred_at: event.timestamp.or(instant("toe")).unwrap_or(iat).min(iat),
            subject,
            event,
        })
    }
}

/// Whether `aud`, a string or a list of strings, names one of these (SSF 1.0 section 4.1.8).
pub(crate) fn is_for_one_of(audiences: &[String], aud: Option<&Value>) -> bool {
    let is_ours = |text: &str| audiences.iter().any(|ours| ours == text);
    match aud {
        Some(Value::String(one)) => is_ours(one),
        Some(Value::Array(all)) => {
            all.iter().all(Value::is_string) && all.iter().filter_map(Value::as_str).any(is_ours)
        }
        _ => false,
    }
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
