//! Logout tokens (OpenID Connect Back-Channel Logout 1.0 sections 2.4 and 2.6).
//!
//! Deliberately absent: replay protection. It needs memory that replicas share: the caller stores `jti` until
//! `exp`.

use serde_json::{Map, Value};

use crate::tokens::claims::ClaimChecks;
use crate::tokens::jws::UnverifiedToken;
use crate::{IdTokenError, ProviderSettings};

/// A validated logout token; at least one of `sub` and `sid` is present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogoutToken {
    /// Issuer.
    pub iss: String,
    /// The subject whose sessions end.
    pub sub: Option<String>,
    /// The provider session that ends.
    pub sid: Option<String>,
    /// Unique identifier of the token.
    pub jti: String,
    /// When it was issued, in seconds since the Unix epoch.
    pub iat: u64,
    /// When it expires, in seconds since the Unix epoch.
    pub exp: u64,
}

/// The `typ` of logout tokens, in full.
const TYPE: &str = "application/logout+jwt";
const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";
/// A logout is recent; an older token is a replay.
const OLDEST_IAT_SECS: u64 = 300;
/// Callers store each `jti`, so its size is bounded.
const MAX_TOKEN_ID_BYTES: usize = 512;

impl LogoutToken {
    /// Whether `typ` is `logout+jwt`, `JWT` or absent, in any case, with or without `application/` (RFC 7515,
    /// section 4.1.9). Most providers send `JWT` or none (Back-Channel Logout 1.0, 2.4), so `events` decides.
    pub(crate) fn has_right_type(token: &UnverifiedToken<'_>) -> bool {
        token.type_is(&[TYPE, "application/jwt"])
    }

    /// Validates the claims of a token with verified signature and `typ`.
    pub(crate) fn validate(
        claims: &Map<String, Value>,
        settings: &ProviderSettings,
        now: u64,
    ) -> Result<Self, IdTokenError> {
        let checks = ClaimChecks::new(claims, settings, now);
        let iss = checks.issuer_of(settings, false)?.to_owned();
        checks.audience(settings)?;
        let exp = checks.validity()?;
        let iat = checks.issued_at()?;
        if now.saturating_sub(iat) > OLDEST_IAT_SECS {
            return Err(IdTokenError::IssuedAt);
        }
        let jti = checks
            .text("jti")
            .filter(|jti| !jti.is_empty() && jti.len() <= MAX_TOKEN_ID_BYTES)
            .ok_or(IdTokenError::TokenId)?;
        if !claims
            .get("events")
            .and_then(|events| events.get(EVENT))
            .is_some_and(Value::is_object)
        {
            return Err(IdTokenError::Events);
        }
        if claims.contains_key("nonce") {
            return Err(IdTokenError::Nonce);
        }
        let sub = if claims.contains_key("sub") {
            Some(checks.subject()?.to_owned())
        } else {
            None
        };
        let sid = match claims.get("sid") {
            None => None,
            Some(Value::String(sid)) if !sid.is_empty() => Some(sid.clone()),
            Some(_) => return Err(IdTokenError::Nobody),
        };
        if sub.is_none() && sid.is_none() {
            return Err(IdTokenError::Nobody);
        }
        Ok(Self {
            iss,
            sub,
            sid,
            jti: jti.to_owned(),
            iat,
            exp,
        })
    }
}
