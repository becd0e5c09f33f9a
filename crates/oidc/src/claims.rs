//! Names of claims and the checks every kind of token shares.

use serde_json::{Map, Value};

use crate::json::seconds;
use crate::{IdTokenError, ProviderSettings};

/// Claims that serve the protocol and are left out of a session's user by default.
pub const PROTOCOL_CLAIMS: [&str; 11] = [
    "aud",
    "iss",
    "iat",
    "exp",
    "nbf",
    "nonce",
    "azp",
    "auth_time",
    "s_hash",
    "at_hash",
    "c_hash",
];

/// `iat` older than this is no fresh login's (behaviour: "nor a day old").
const OLDEST_IAT_SECS: u64 = 86_400;
/// OpenID Connect Core 2: a subject has at most 255 characters.
const MAX_SUBJECT_BYTES: usize = 255;

/// The checks of claims that every signed token of the provider shares.
pub(crate) struct ClaimChecks<'a> {
    pub(crate) claims: &'a Map<String, Value>,
    pub(crate) now: u64,
    pub(crate) tolerance_secs: u64,
}

impl ClaimChecks<'_> {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.claims.get(name).and_then(Value::as_str)
    }

    pub(crate) fn instant(&self, name: &str) -> Option<u64> {
        self.claims.get(name).and_then(seconds)
    }

    pub(crate) fn issuer(&self, issuer: &str) -> Result<(), IdTokenError> {
        if self.text("iss") == Some(issuer) {
            Ok(())
        } else {
            Err(IdTokenError::Issuer)
        }
    }

    /// The token's issuer, if it is this provider's. With many tenants it is the tenant's own, and a `tid` claim names the same
    /// tenant; `tid_required` tells whether a token without one is refused.
    pub(crate) fn issuer_of(
        &self,
        settings: &ProviderSettings,
        tid_required: bool,
    ) -> Result<&str, IdTokenError> {
        let Some(tenants) = &settings.tenants else {
            self.issuer(&settings.issuer)?;
            return Ok(self.text("iss").unwrap_or_default());
        };
        let issuer = self.text("iss").ok_or(IdTokenError::Issuer)?;
        let tenant = tenants.tenant(issuer).ok_or(IdTokenError::Issuer)?;
        match self.claims.get("tid") {
            Some(tid) if tid != tenant => Err(IdTokenError::Issuer),
            None if tid_required => Err(IdTokenError::Issuer),
            _ => Ok(issuer),
        }
    }

    /// `aud` is this client and nobody else; `azp`, when present, is this client.
    pub(crate) fn audience(&self, client_id: &str) -> Result<(), IdTokenError> {
        let only_us = match self.claims.get("aud") {
            Some(Value::String(one)) => one == client_id,
            Some(Value::Array(all)) => !all.is_empty() && all.iter().all(|one| one == client_id),
            _ => false,
        };
        if !only_us {
            return Err(IdTokenError::Audience);
        }
        match self.claims.get("azp") {
            None => Ok(()),
            Some(Value::String(azp)) if azp == client_id => Ok(()),
            Some(_) => Err(IdTokenError::AuthorizedParty),
        }
    }

    /// `exp` and `nbf` with tolerance: at exactly the tolerance the token still counts.
    pub(crate) fn validity(&self) -> Result<u64, IdTokenError> {
        let exp = self.instant("exp").ok_or(IdTokenError::Expired)?;
        if self.now > exp.saturating_add(self.tolerance_secs) {
            return Err(IdTokenError::Expired);
        }
        self.not_before()?;
        Ok(exp)
    }

    /// `nbf`, where there is one, with tolerance.
    pub(crate) fn not_before(&self) -> Result<(), IdTokenError> {
        if self.claims.contains_key("nbf") {
            let nbf = self.instant("nbf").ok_or(IdTokenError::NotYetValid)?;
            if nbf > self.now.saturating_add(self.tolerance_secs) {
                return Err(IdTokenError::NotYetValid);
            }
        }
        Ok(())
    }

    pub(crate) fn issued_at(&self) -> Result<u64, IdTokenError> {
        let iat = self.instant("iat").ok_or(IdTokenError::IssuedAt)?;
        let from_the_future = iat > self.now.saturating_add(self.tolerance_secs);
        if from_the_future || self.now.saturating_sub(iat) >= OLDEST_IAT_SECS {
            return Err(IdTokenError::IssuedAt);
        }
        Ok(iat)
    }

    pub(crate) fn subject(&self) -> Result<&str, IdTokenError> {
        self.text("sub")
            .filter(|sub| !sub.is_empty() && sub.len() <= MAX_SUBJECT_BYTES)
            // No header can carry them: an upstream would get the request without a subject.
            .filter(|sub| !sub.chars().any(char::is_control))
            .ok_or(IdTokenError::Subject)
    }

    /// `auth_time` against the clock, and against the `max_age` requested (OpenID Connect Core 3.1.3.7, 13). Where none was
    /// requested it may be absent, and what is no time counts as absent.
    pub(crate) fn authentication(&self, max_age: Option<u64>) -> Result<Option<u64>, IdTokenError> {
        let auth_time = self.instant("auth_time");
        if auth_time.is_some_and(|at| at > self.now.saturating_add(self.tolerance_secs)) {
            return Err(IdTokenError::AuthTime);
        }
        let Some(max_age) = max_age else {
            return Ok(auth_time);
        };
        let at = auth_time.ok_or(IdTokenError::NoAuthTime)?;
        if self.now > at.saturating_add(max_age).saturating_add(self.tolerance_secs) {
            return Err(IdTokenError::AuthTime);
        }
        Ok(auth_time)
    }

    /// `org_…` is compared with `org_id`, anything else with `org_name` without regard to case.
    pub(crate) fn organization(&self, wanted: Option<&str>) -> Result<(), IdTokenError> {
        let fits = match wanted {
            None => true,
            Some(id) if id.starts_with("org_") => self.text("org_id") == Some(id),
            Some(name) => self
                .text("org_name")
                .is_some_and(|claim| claim.to_lowercase() == name.to_lowercase()),
        };
        if fits {
            Ok(())
        } else {
            Err(IdTokenError::Organization)
        }
    }
}
