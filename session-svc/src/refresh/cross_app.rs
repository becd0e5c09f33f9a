//! The grant of a token by an API's own authorization server, for an assertion of the provider (ID-JAG).
//!
//! Invariants
//! - The provider receives the ID token, the server the assertion, and neither the other's.
//! - An expired ID token is not sent: a refresh or a new sign-in brings another.

use oidc::CrossAppError;

use super::RefreshProvider;
use super::flight::{LeadOutcome, LeaseExpiry, RefreshFlight};
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
        // The file may have lost the server since the call began.
        let server = self.refresher.providers.api_servers().of(issuer);
        let server = server.ok_or(TokenRefreshError::TargetRefused)?;
        let party = provider.relying_party();
        let party = party.ok_or(TokenRefreshError::ExchangeRefused)?;
        self.check_lease(held)?;
        let timer = self.refresher.measures.asking_provider();
        let scope = target.scopes.join(" ");
        let wanted = server.token_target(target, &scope);
        let answer = party.cross_app_token(&server.client, id_token.expose(), &wanted, now_ms / 1_000);
        let answer = answer.await;
        timer.observe_duration();
        match answer {
            Ok(tokens) => self.save_tokens(session, &tokens, None, now_ms).await,
            Err(CrossAppError::Provider(error)) => self.fail_for(session, target, "", error).await,
            Err(CrossAppError::Server(error)) => self.fail_for(session, target, issuer, error).await,
        }
    }
}
