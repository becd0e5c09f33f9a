//! The grant of a token for one API: a token exchange (RFC 8693), or a refresh that names the API (RFC 8707).
//!
//! Invariants
//! - A refresh that names an API rotates the refresh token as any other: it takes the same lease, and its
//!   outcome is saved only if no other use of the token was saved meanwhile.
//! - A token is stored only in the session: if the session ends during the request, the token is revoked.
//! - These tokens never exceed the size limit of a session. A token that does not fit is only returned.

use oidc::{GrantError, RefreshedTokens};

use super::flight::{LeadError, LeadOutcome, RefreshFlight};
use super::grant::access_token;
use super::measures::FlightOutcome;
use super::ports::TokenRefreshError;
use crate::session::{ApiTarget, ApiToken, Scope, Session};

impl RefreshFlight {
    /// Returns the outcome of a failed grant for an API. `server` is the issuer of the API's own authorization server
    /// if that one failed, and empty if the provider did.
    pub(super) async fn fail_for(
        &self,
        session: Session,
        target: &ApiTarget,
        server: &str,
        error: GrantError,
    ) -> LeadOutcome {
        let by_exchange = !self.wanted.rotates();
        let (outcome, meaning) = match &error {
            GrantError::Refused(refusal) if refusal.is_about_target() => {
                (FlightOutcome::Target, TokenRefreshError::TargetRefused)
            }
            GrantError::Refused(refusal) if refusal.is_about_scope() && !target.scopes.is_empty() => {
                (FlightOutcome::Target, TokenRefreshError::ScopeRefused)
            }
            GrantError::Refused(refusal)
                if by_exchange && server.is_empty() && refusal.is_about_subject_token() =>
            {
                (FlightOutcome::Rejected, TokenRefreshError::SubjectRefused)
            }
            GrantError::Refused(_) if by_exchange => {
                (FlightOutcome::Rejected, TokenRefreshError::ExchangeRefused)
            }
            GrantError::Unusable(_) if by_exchange => {
                (FlightOutcome::Unusable, TokenRefreshError::ExchangeRefused)
            }
            // The session's own refreshes may still work, and a new sign-in would get the same refusal.
            GrantError::Refused(refusal) if !refusal.is_final() => {
                (FlightOutcome::Rejected, TokenRefreshError::TargetRefused)
            }
            GrantError::Unusable(_) => (FlightOutcome::Unusable, TokenRefreshError::TargetRefused),
            // The session's own refreshes do not depend on that server.
            GrantError::Transient(_) if !server.is_empty() => {
                (FlightOutcome::Transient, TokenRefreshError::ProviderUnavailable)
            }
            GrantError::Refused(_) | GrantError::Transient(_) => return self.fail(session, error).await,
        };
        tracing::warn!(
            session = %session.handle,
            issuer = session.issuer,
            audience = target.audience,
            resource = target.resource,
            by_exchange,
            server,
            error = &error as &dyn std::error::Error,
            "no token is issued for this API"
        );
        Err(LeadError::Concluded(outcome, Err(meaning)))
    }

    /// Adds a token to a session. Drops the oldest others if the session would be too large, and skips the
    /// token if that is not enough. Always drops the earlier one for the same target.
    pub(super) fn put_bounded(&self, session: &mut Session, token: ApiToken, now_ms: u64) {
        session.tokens.api.remove(&token.target);
        let before = session.tokens.api.clone();
        session.tokens.api.put(token, now_ms);
        while !self.refresher.fits(session) {
            if !session.tokens.api.drop_oldest() {
                session.tokens.api = before;
                return;
            }
        }
    }
}

/// Adds a token that did not fit to the copy that the caller receives.
pub(super) fn show_unsaved(session: &mut Session, token: ApiToken, now_ms: u64) {
    let held = session.tokens.api.get(&token.target);
    if held.is_none_or(|held| held.access.value != token.access.value) {
        tracing::warn!(session = %session.handle, "a session has no room for the token of an API: each call requests one");
        session.tokens.api.put(token, now_ms);
    }
}

/// The token of an answer, for the next version of the session.
pub(super) fn api_token(
    session: &Session,
    target: &ApiTarget,
    server: &str,
    tokens: &RefreshedTokens,
) -> ApiToken {
    let scope = match &tokens.scope {
        Some(scope) => Scope::parse(scope),
        // The requested scope is granted (RFC 6749, section 5.1).
        None => Scope::parse(&target.scopes.join(" ")),
    };
    ApiToken {
        target: target.clone(),
        access: access_token(tokens),
        scope,
        version: session.version.saturating_add(1),
        server: server.to_owned(),
    }
}
