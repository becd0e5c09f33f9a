//! Names of claims, and checks for all kinds of tokens.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::json::numeric_date;
use crate::{IdTokenError, ProviderSettings};

/// Protocol claims, which a session's user does not include by default.
pub const PROTOCOL_CLAIMS: [&str; 16] = [
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
    "jti",
    "sid",
    "typ",
    "scope",
    "client_id",
];

/// Members that refer to further claims (OpenID Connect Core 5.6.2). They are not claims about the user, and
/// may hold an access token.
const CLAIM_REFERENCES: [&str; 2] = ["_claim_names", "_claim_sources"];
/// Suffixes of the names of claims that hold a token.
const TOKEN_NAMES: [&str; 2] = ["access_token", "refresh_token"];

/// The JSON text of a claim for a session's user, without members, at any depth, that hold a token. `None` if
/// the claim is a token, null, or a reference to other claims.
#[must_use]
pub fn user_claim<'a>(name: &str, json: &'a str) -> Option<Cow<'a, str>> {
    let holds_token = |name: &str| TOKEN_NAMES.iter().any(|end| name.ends_with(end));
    if json == "null" || CLAIM_REFERENCES.contains(&name) || holds_token(name) {
        return None;
    }
    if !TOKEN_NAMES.iter().any(|end| json.contains(end)) && !json.contains('\\') {
        return Some(Cow::Borrowed(json));
    }
    let given: Value = serde_json::from_str(json).ok()?;
    let mut kept = given.clone();
    remove_members(&mut kept, &holds_token);
    // Without removals the text, and its numbers, stay unchanged.
    Some(if kept == given {
        Cow::Borrowed(json)
    } else {
        Cow::Owned(kept.to_string())
    })
}

/// Removes the members whose name is unwanted.
fn remove_members(value: &mut Value, is_unwanted: &impl Fn(&str) -> bool) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !is_unwanted(name));
            members
                .values_mut()
                .for_each(|value| remove_members(value, is_unwanted));
        }
        Value::Array(all) => all
            .iter_mut()
            .for_each(|value| remove_members(value, is_unwanted)),
        _ => {}
    }
}

/// A token with an older `iat` is not from a fresh login.
const OLDEST_IAT_SECS: u64 = 86_400;
/// OpenID Connect Core 2: a subject has at most 255 characters.
const MAX_SUBJECT_BYTES: usize = 255;

/// The claim checks of all signed tokens of the provider.
pub(crate) struct ClaimChecks<'a> {
    pub(crate) claims: &'a Map<String, Value>,
    pub(crate) now: u64,
    pub(crate) tolerance_secs: u64,
}

impl<'a> ClaimChecks<'a> {
    pub(crate) fn new(claims: &'a Map<String, Value>, settings: &ProviderSettings, now: u64) -> Self {
        Self {
            claims,
            now,
            tolerance_secs: settings.clock_tolerance_secs,
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.claims.get(name).and_then(Value::as_str)
    }

    pub(crate) fn instant(&self, name: &str) -> Option<u64> {
        self.claims.get(name).and_then(numeric_date)
    }

    pub(crate) fn issuer(&self, issuer: &str) -> Result<(), IdTokenError> {
        if self.text("iss") == Some(issuer) {
            Ok(())
        } else {
            Err(IdTokenError::Issuer)
        }
    }

    /// The token's issuer, if it is this provider's. With many tenants it is the tenant's, and `tid` must
    /// match. `tid_required` rejects tokens without `tid`.
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

    /// `aud` names this client, and `azp`, when present, is this client. Further audiences count if `azp`
    /// names this client, or if the operator trusts each of them (OpenID Connect Core 3.1.3.7, steps 3 to 5).
    pub(crate) fn audience(&self, settings: &ProviderSettings) -> Result<(), IdTokenError> {
        let client_id = settings.client_id.as_str();
        let audiences = match self.claims.get("aud") {
            Some(one @ Value::String(_)) => std::slice::from_ref(one),
            Some(Value::Array(all)) => all.as_slice(),
            _ => &[],
        };
        if !audiences.iter().any(|one| one == client_id) {
            return Err(IdTokenError::Audience);
        }
        match self.claims.get("azp") {
            Some(Value::String(azp)) if azp == client_id => return Ok(()),
            None | Some(Value::Null) => {}
            Some(_) => return Err(IdTokenError::AuthorizedParty),
        }
        let is_trusted = |one: &Value| {
            let mut trusted = settings.trusted_audiences.iter();
            one == client_id || trusted.any(|name| one == name.as_str())
        };
        if audiences.iter().all(is_trusted) {
            Ok(())
        } else {
            Err(IdTokenError::Audience)
        }
    }

    /// Checks `exp` and `nbf`: exactly at the tolerance, the token is still valid.
    pub(crate) fn validity(&self) -> Result<u64, IdTokenError> {
        let exp = self.instant("exp").ok_or(IdTokenError::Expired)?;
        if self.now > exp.saturating_add(self.tolerance_secs) {
            return Err(IdTokenError::Expired);
        }
        self.not_before()?;
        Ok(exp)
    }

    /// [`Self::validity`] for a token that may lack `exp`.
    pub(crate) fn validity_if_limited(&self) -> Result<(), IdTokenError> {
        if self.claims.contains_key("exp") {
            self.validity().map(drop)
        } else {
            self.not_before()
        }
    }

    /// Checks `nbf`, if present, with tolerance.
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
            // Headers cannot carry them: an upstream would receive the request without a subject.
            .filter(|sub| !sub.chars().any(char::is_control))
            .ok_or(IdTokenError::Subject)
    }

    /// Checks `auth_time` against the clock and the requested `max_age` (OpenID Connect Core 3.1.3.7, 13).
    /// Without `max_age` it may be absent or malformed.
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

    /// `org_…` is compared with `org_id`, other values with `org_name`, ignoring case.
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

#[cfg(test)]
mod tests {
    use super::user_claim;

    #[test]
    fn no_token_and_no_reference_becomes_part_of_the_user() {
        for name in [
            "_claim_names",
            "_claim_sources",
            "access_token",
            "idp_refresh_token",
        ] {
            assert_eq!(user_claim(name, "{}"), None, "{name}");
        }
        assert_eq!(user_claim("middle_name", "null"), None);
        for (json, kept) in [
            (r#"{"a":1.10}"#, r#"{"a":1.10}"#),
            (r#""access_token""#, r#""access_token""#),
            (
                r#"{"idp":[{"x_access_token":"t","id":1}]}"#,
                r#"{"idp":[{"id":1}]}"#,
            ),
            (
                r#"{"access\u005ftoken":"t","b":{"refresh_token":2}}"#,
                r#"{"b":{}}"#,
            ),
        ] {
            assert_eq!(user_claim("identities", json).as_deref(), Some(kept));
        }
    }
}
