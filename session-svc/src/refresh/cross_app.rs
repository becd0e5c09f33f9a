//! The grant of a token by an API's own authorization server, for an assertion of the provider (ID-JAG).
//!
//! Invariants
//! - The provider receives the ID token, the server the assertion, and neither the other's.
//! - An expired ID token is not sent: a refresh or a new sign-in brings another.

use oidc::{CrossAppError, GrantError, OAuthError};

use super::RefreshProvider;
use super::flight::{LeadError, LeadOutcome, LeaseExpiry, RefreshFlight};
use super::measures::FlightOutcome;
use super::ports::TokenRefreshError;
use crate::session::{ApiTarget, Session, StoredToken, id_token};

impl RefreshFlight {
    /// Requests and saves a token of the server with this issuer.
    pub(super) async fn grant_cross_app(
        &self,
        provider: &dyn RefreshProvider,
        session: Session,
        (target, issuer): (&ApiTarget, &str),
        held: &LeaseExpiry,
    ) -> LeadOutcome {
        let now_ms = self.refresher.session_store.now_ms();
        let is_valid = |token: &&StoredToken| id_token::is_valid_at(token, now_ms);
        let id_token = session.tokens.id_token.as_ref().filter(is_valid);
        let id_token = id_token.ok_or(TokenRefreshError::IdTokenExpired)?.text();
        // Removed from the file since the caller asked.
        let server = self.refresher.providers.api_servers().of(issuer);
        let server = server.ok_or(TokenRefreshError::TargetRefused)?;
        self.check_lease(held)?;
        let timer = self.refresher.measures.asking_provider();
        let scope = target.scopes.join(" ");
        let wanted = server.token_target(target, &scope);
        let answer = provider.cross_app_token(&server.client, id_token.expose(), &wanted, now_ms / 1_000);
        let answer = answer.await;
        timer.observe_duration();
        match answer {
            Ok(tokens) => self.save_tokens(session, &tokens, None, now_ms).await,
            Err(error) => Err(reject(&session, target, issuer, &error)),
        }
    }
}

/// The outcome of a failed grant. Errors of the server never pause or end the session's own refreshes.
fn reject(session: &Session, target: &ApiTarget, server: &str, error: &CrossAppError) -> LeadError {
    let refused = |refusal: &OAuthError, otherwise| match refusal {
        refusal if refusal.is_about_target() => (FlightOutcome::Target, TokenRefreshError::TargetRefused),
        refusal if refusal.is_about_scope() && !target.scopes.is_empty() => {
            (FlightOutcome::Target, TokenRefreshError::ScopeRefused)
        }
        _ => (FlightOutcome::Rejected, otherwise),
    };
    let (outcome, meaning) = match error {
        CrossAppError::Provider(GrantError::Refused(refusal)) if refusal.is_about_subject_token() => {
            refused(refusal, TokenRefreshError::SubjectRefused)
        }
        CrossAppError::Provider(GrantError::Refused(refusal))
        | CrossAppError::Server(GrantError::Refused(refusal)) => {
            refused(refusal, TokenRefreshError::ExchangeRefused)
        }
        CrossAppError::Provider(GrantError::Unusable(_)) | CrossAppError::Server(GrantError::Unusable(_)) => {
            (FlightOutcome::Unusable, TokenRefreshError::ExchangeRefused)
        }
        CrossAppError::Provider(GrantError::Transient(cause))
        | CrossAppError::Server(GrantError::Transient(cause)) => {
            let meaning = match cause.is_unknown_refusal() {
                true => TokenRefreshError::ExchangeRefused,
                false => TokenRefreshError::ProviderUnavailable,
            };
            (FlightOutcome::Transient, meaning)
        }
    };
    tracing::warn!(
        session = %session.handle,
        issuer = session.issuer,
        server,
        audience = target.audience,
        resource = target.resource,
        error = error as &dyn std::error::Error,
        "the API's authorization server gives no token for the session's user"
    );
    LeadError::Concluded(outcome, Err(meaning))
}
