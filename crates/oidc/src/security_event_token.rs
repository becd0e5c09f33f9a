//! Security event tokens (RFC 8417) as OpenID Shared Signals Framework 1.0 section 4 profiles them.
//!
//! Invariants: no ID token, access token or logout token passes for one, whatever it says, nor the other way round: its `typ` is
//! `secevent+jwt`, and it has neither `exp` nor `sub` nor `nonce`. What it is about is in no `Debug` output.
//!
//! Deliberately absent
//! - The guard against replays. It needs memory all replicas share, and a transmitter may send a token again, which then MUST be
//!   answered as it was before (RFC 8935 section 2): the caller keeps `iss` and `jti`.
//! - An age at which a token counts no more. It tells of what has been (RFC 8417 section 2.2), and a stream that was paused hands
//!   out later what it held: the caller leaves alone what is younger than [`SecurityEventToken::occurred_at`].
//! - Encrypted tokens: they come over TLS (RFC 8935 section 5.3).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use crate::claims::ClaimChecks;
use crate::draft_subject::draft_subject;
use crate::jws::{MAX_TOKEN_BYTES, Unverified};
use crate::nested_json::nested_object;
use crate::{AcceptedAlgorithms, EventSubject, SecurityEvent, SecurityEventError};

/// Longest security event token looked at, in bytes.
pub const MAX_SECURITY_EVENT_BYTES: usize = MAX_TOKEN_BYTES;
/// The `typ` of security event tokens, in full.
const TYPE: &str = "application/secevent+jwt";
/// What makes a token one of another kind: an ID token, an access token, a logout token.
const OTHER_KINDS: [&str; 3] = ["exp", "sub", "nonce"];
/// Callers remember each `jti`, so its size is bounded; and `txn` is logged.
const MAX_TOKEN_ID_BYTES: usize = 512;

/// A security event token that holds, unless it was seen before.
#[derive(Clone, PartialEq)]
pub struct SecurityEventToken {
    /// Issuer: the transmitter.
    pub iss: String,
    /// Unique identifier of the token, within what the issuer sends.
    pub jti: String,
    /// When it was issued, in seconds since the Unix epoch.
    pub iat: u64,
    /// What it has in common with other tokens that have the same cause; `None` where that is no text, or too long.
    pub txn: Option<String>,
    /// When the event was, in seconds since the Unix epoch; `None` where it is not told.
    pub toe: Option<u64>,
    /// Whom or what it is about.
    pub subject: EventSubject,
    /// What has happened.
    pub event: SecurityEvent,
}

/// What a token has to be for.
#[derive(Clone, Copy)]
pub(crate) struct ExpectedEvent<'a> {
    /// The transmitter.
    pub(crate) issuer: &'a str,
    /// Names of this receiver.
    pub(crate) audiences: &'a [String],
    /// Tolerance for clocks that differ, in seconds.
    pub(crate) tolerance_secs: u64,
    /// Whether it may be one of a draft of the standard.
    pub(crate) drafts: bool,
}

/// Parses a token that says it is one; nothing of it is verified.
///
/// # Errors
/// It is none.
pub(crate) fn parse<'a>(
    raw: &'a str,
    accepted: &AcceptedAlgorithms,
    drafts: bool,
) -> Result<Unverified<'a>, SecurityEventError> {
    let token = Unverified::parse(raw, accepted)?;
    if drafts && token.type_is(&[TYPE, "application/jwt"]) {
        return Ok(token);
    }
    // Absent is not enough (SSF 1.0 section 4.1.1).
    if token.typ.is_none() || !token.type_is(&[TYPE]) {
        return Err(SecurityEventError::Type);
    }
    Ok(token)
}

/// The claims of a token, strict however deep; nothing may be done by them, but a refusal, before the signature verified.
///
/// # Errors
/// They are malformed.
pub(crate) fn claims(token: &Unverified<'_>) -> Result<Map<String, Value>, SecurityEventError> {
    let bytes = URL_SAFE_NO_PAD.decode(token.payload).ok();
    bytes
        .and_then(|bytes| nested_object(&bytes))
        .ok_or(SecurityEventError::Malformed)
}

impl SecurityEventToken {
    /// Validates the claims; `now` in seconds since the Unix epoch.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn validate(
        claims: &Map<String, Value>,
        expected: &ExpectedEvent<'_>,
        now: u64,
    ) -> Result<Self, SecurityEventError> {
        let checks = ClaimChecks {
            claims,
            now,
            tolerance_secs: expected.tolerance_secs,
        };
        checks.issuer(expected.issuer)?;
        if !is_for_one_of(expected.audiences, claims.get("aud")) {
            return Err(SecurityEventError::Audience);
        }
        if let Some(claim) = OTHER_KINDS.into_iter().find(|claim| claims.contains_key(*claim)) {
            return Err(SecurityEventError::OtherKind { claim });
        }
        checks.not_before()?;
        let latest = now.saturating_add(expected.tolerance_secs);
        let iat = checks.instant("iat").filter(|iat| *iat <= latest);
        let iat = iat.ok_or(SecurityEventError::IssuedAt)?;
        let short = |text: &&str| !text.is_empty() && text.len() <= MAX_TOKEN_ID_BYTES;
        let jti = checks.text("jti").filter(short);
        let jti = jti.ok_or(SecurityEventError::TokenId)?.to_owned();
        let subject = match claims.get("sub_id") {
            None if expected.drafts => EventSubject::of(draft_subject(claims.get("events")).as_ref())?,
            told => EventSubject::of(told)?,
        };
        let event = SecurityEvent::of(claims.get("events"))?;
        let token = Self {
            iss: expected.issuer.to_owned(),
            jti,
            iat,
            txn: checks.text("txn").filter(short).map(str::to_owned),
            toe: checks.instant("toe"),
            subject,
            event,
        };
        if token.event.is_about_stream() && token.stream_id().is_none() {
            return Err(SecurityEventError::StreamSubject);
        }
        Ok(token)
    }

    /// When the event was, in seconds since the Unix epoch, as far as it is told, and no later than the token was issued: what
    /// began afterwards is not meant (RFC 8417 section 5.4).
    #[must_use]
    pub fn occurred_at(&self) -> u64 {
        let told = self.event.timestamp.or(self.toe);
        told.map_or(self.iat, |at| at.min(self.iat))
    }

    /// The stream that an event about a stream is about (SSF 1.0 sections 8.1.4.1 and 8.1.5); `None` for all other events.
    #[must_use]
    pub fn stream_id(&self) -> Option<&str> {
        match &self.subject {
            EventSubject::Simple(subject) if self.event.is_about_stream() => subject.opaque(),
            EventSubject::Simple(_) | EventSubject::Complex(_) | EventSubject::Critical(_) => None,
        }
    }
}

impl fmt::Debug for SecurityEventToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecurityEventToken")
            .field("iss", &self.iss)
            .field("jti", &self.jti)
            .field("iat", &self.iat)
            .field("event", &self.event)
            .finish_non_exhaustive()
    }
}

/// Whether `aud` names one of these: a text, or a list of texts of which one is enough, since all are names of the same receiver
/// (SSF 1.0 section 4.1.8).
fn is_for_one_of(audiences: &[String], aud: Option<&Value>) -> bool {
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
#[path = "security_event_token_tests.rs"]
mod tests;
