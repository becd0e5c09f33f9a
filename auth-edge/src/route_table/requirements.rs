//! The requirements of a route for a session, and their check.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use session_proto::v1::Session;

use super::allow::AllowList;
use super::claims::ClaimRequirement;
use super::decision::DecisionRule;
use super::principal::Principal;
use super::unmet_requirement::UnmetRequirement;
use crate::http::errors::HttpError;
use crate::providers::IdentityProviders;
use crate::sessions::cookies::SessionId;
use crate::sessions::{CachedSession, TokenFor};

/// Separates these hashes from all other hashes of a session ID.
const LABEL: &[u8] = b"vestibule lacking v1";
/// Bytes of a key of unmet requirements: enough to rule out collisions.
const KEY_BYTES: usize = 16;

/// The client is in a network that may not pass.
const WRONG_NETWORK: HttpError = HttpError::Forbidden {
    code: "wrong_network",
    words: "This address cannot be opened from your network.",
};

/// The requirements of a guard besides a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requirements {
    /// Attach the access token for the upstream.
    pub(crate) access_token: bool,
    /// A usable access token is required.
    pub(crate) require_token: bool,
    /// The kind of access token: the session's own, or one for an API.
    pub(crate) token: TokenFor,
    /// The oldest sign-in allowed, in seconds.
    pub(crate) max_age_secs: Option<u64>,
    /// The accepted authentication context classes.
    pub(crate) acr: Vec<String>,
    /// Member of this organization: `org_…` by id, anything else by name.
    pub(crate) organization: Option<String>,
    /// The id of the required provider.
    pub(crate) connection: Option<String>,
    /// The required claims.
    pub(crate) claims: Vec<ClaimRequirement>,
    /// The session is bound to a device, and the request comes from it.
    pub(crate) device_bound: bool,
    /// The users and networks that may pass; `None` for all.
    pub(crate) allow: Option<Arc<AllowList>>,
    /// The decision point that has to permit each request.
    pub(crate) decision: Option<Arc<DecisionRule>>,
}

impl Requirements {
    /// Checks a principal. An authentication at an unknown time counts as too old.
    ///
    /// # Errors
    /// The unmet requirement.
    pub(crate) fn check(&self, who: Principal<'_>, now_ms: u64) -> Result<(), UnmetRequirement> {
        if let Some(max_age_secs) = self.max_age_secs {
            let is_young = |at_ms| now_ms.saturating_sub(at_ms) <= max_age_secs.saturating_mul(1000);
            if !who.authenticated_at_ms.is_some_and(is_young) {
                return Err(UnmetRequirement::StepUp);
            }
        }
        let text = |name: &str| who.claims.get(name).and_then(Value::as_str);
        if self.lacks_class(who) {
            return Err(UnmetRequirement::StepUp);
        }
        let in_organization = |required: &String| {
            if required.starts_with("org_") {
                text("org_id") == Some(required)
            } else {
                text("org_name").is_some_and(|name| name.to_lowercase() == required.to_lowercase())
            }
        };
        if !self.organization.as_ref().is_none_or(in_organization) {
            return Err(UnmetRequirement::Organization);
        }
        let unmet = self.claims.iter().filter(|required| !required.is_met(who.claims));
        let excluded = self.allow.as_ref().and_then(|list| list.unmet_claim(who.claims));
        let claims: Vec<String> = unmet
            .map(|required| required.claim.to_string())
            .chain(excluded)
            .collect();
        if claims.is_empty() {
            return Ok(());
        }
        Err(UnmetRequirement::NotBySignIn(HttpError::MissingClaims {
            claims,
            message: None,
        }))
    }

    /// Checks the network of a client, which needs no session.
    ///
    /// # Errors
    /// The network may not pass.
    pub(crate) fn check_network(&self, client: IpAddr) -> Result<(), HttpError> {
        match &self.allow {
            Some(list) if !list.admits_network(client) => Err(WRONG_NETWORK),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether a principal's authentication has none of the required classes.
    pub(crate) fn lacks_class(&self, who: Principal<'_>) -> bool {
        let acr = who.claims.get("acr").and_then(Value::as_str);
        !self.acr.is_empty() && !self.acr.iter().any(|required| acr == Some(required))
    }

    /// Checks that a session needs no sign-in, meets the requirements, and is of the route's provider.
    ///
    /// # Errors
    /// The unmet requirement.
    pub(crate) fn check_all(
        &self,
        session: &CachedSession,
        now_ms: u64,
        providers: &IdentityProviders,
    ) -> Result<(), UnmetRequirement> {
        if session.sign_in_demand.is_some() {
            return Err(UnmetRequirement::StepUp);
        }
        self.check(session.into(), now_ms)?;
        self.check_connection(&session.issuer, providers)
    }

    /// These requirements for a session with a `sign_in_demand`: also requires a new authentication.
    #[must_use]
    pub(crate) fn with_sign_in_demand(&self, session: Option<&Session>) -> Cow<'_, Self> {
        let Some(demand) = session.and_then(|session| session.sign_in_demand.as_ref()) else {
            return Cow::Borrowed(self);
        };
        let mut all = self.clone();
        all.max_age_secs = Some(0);
        if !demand.acr.is_empty() {
            all.acr = vec![demand.acr.clone()];
        }
        Cow::Owned(all)
    }

    /// Checks that this issuer of a session or token is the route's provider.
    ///
    /// # Errors
    /// It is another provider.
    pub(crate) fn check_connection(
        &self,
        issuer: &str,
        providers: &IdentityProviders,
    ) -> Result<(), UnmetRequirement> {
        let Some(required) = &self.connection else {
            return Ok(());
        };
        match providers.of_session(issuer) {
            Some(provider) if provider.id == *required => Ok(()),
            Some(_) | None => Err(UnmetRequirement::Connection),
        }
    }

    /// A key that lets the browser remember these requirements as unmet by this session. Other sessions or
    /// requirements have other keys.
    #[must_use]
    pub(crate) fn unmet_key(&self, id: &SessionId) -> String {
        let demands = format!(
            "{:?}",
            (
                &self.max_age_secs,
                &self.acr,
                &self.organization,
                &self.connection
            )
        );
        let hashed = [LABEL, &id.to_bytes(), demands.as_bytes()].concat();
        let hash = digest::digest(&digest::SHA256, &hashed);
        URL_SAFE_NO_PAD.encode(hash.as_ref().split_at(KEY_BYTES).0)
    }

    /// Whether the edge needs an access token from the session service.
    #[must_use]
    pub(crate) fn needs_token(&self) -> bool {
        self.access_token || self.require_token || self.token != TokenFor::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_holds_for_one_session_and_one_set_of_requirements() {
        let id = |byte| SessionId::from_bytes([byte; 16]);
        let requirements = |max_age_secs, acr: &[&str]| Requirements {
            max_age_secs,
            acr: acr.iter().map(|class| (*class).to_owned()).collect(),
            ..Requirements::default()
        };
        let of = |byte, requirements: Requirements| requirements.unmet_key(&id(byte));
        let first = of(1, requirements(Some(60), &["gold"]));
        assert_eq!(first, of(1, requirements(Some(60), &["gold"])));
        for other in [
            of(2, requirements(Some(60), &["gold"])),
            of(1, requirements(Some(61), &["gold"])),
            of(1, requirements(None, &["gold"])),
            of(1, requirements(Some(60), &["silver"])),
            of(1, requirements(Some(60), &["gold", "silver"])),
        ] {
            assert_ne!(first, other);
        }
    }
}

#[cfg(test)]
#[path = "requirements_tests.rs"]
mod demands;
