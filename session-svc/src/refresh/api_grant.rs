//! The grant of a token for one API: a token exchange (RFC 8693), or a refresh that names the API (RFC 8707, section 2.2).
//!
//! Invariants
//! - A refresh that names an API rotates the refresh token as any other does: it is led under the same lease, and its
//!   outcome counts only while no other that used the token was saved.
//! - A token is kept only with the session: whoever ends the session while it is requested takes it back.
//! - A session grows by these tokens to the size a session may have and no further; what has no room is handed out and
//!   not kept.

use oidc::{GrantError, IdToken, RefreshedTokens, TokenTarget};
use tokio::time::{Instant, timeout};

use super::RefreshProvider;
use super::flight::{LeadOutcome, LeaseExpiry, RefreshFlight};
use super::grant::{Saved, access_token, apply_id_token, rotate};
use super::measures::FlightOutcome;
use super::ports::TokenRefreshError;
use super::validation::{UNSAVED_MAX, validate};
use crate::session::access::still_good;
use crate::session::change::ChangeKind;
use crate::session::{ApiTarget, ApiToken, ApiTokenSource, Scope, Session, StoredToken};

impl RefreshFlight {
    /// Requests a token for an API and saves it before anyone sees it.
    pub(super) async fn grant_for(
        &self,
        session: Session,
        target: &ApiTarget,
        source: ApiTokenSource,
        held: &LeaseExpiry,
    ) -> LeadOutcome {
        let provider = self.provider_of(&session)?;
        let shown = match source {
            ApiTokenSource::AccessToken => {
                still_good(&session, self.refresher.keeper.now_ms()).map(|access| access.value.text())
            }
            ApiTokenSource::RefreshToken => session.tokens.refresh.as_ref().map(StoredToken::text),
        };
        let Some(shown) = shown else {
            // It expired or went since the caller looked: the next call finds that first.
            self.record_outcome(FlightOutcome::Transient);
            return Err(TokenRefreshError::ProviderUnavailable.into());
        };
        self.check_lease(held)?;
        let scope = target.scopes().join(" ");
        let named = |text| Some(text).filter(|text: &&str| !text.is_empty());
        let named = TokenTarget {
            audience: named(target.audience()),
            resource: named(target.resource()),
            scope: named(&scope),
        };
        let sent_at = Instant::now();
        let (shown, now) = (shown.expose(), self.now_secs());
        let answer = provider.api_token(source, shown, &named, now).await;
        self.refresher.measures.provider_took(sent_at.elapsed());
        Ok(match answer {
            Ok(tokens) => {
                self.validate_and_keep(provider.as_ref(), session, target, tokens)
                    .await
            }
            Err(error) => self.refused_for(session, target, source, error).await,
        }?)
    }

    /// What a failed grant for an API means.
    async fn refused_for(
        &self,
        session: Session,
        target: &ApiTarget,
        source: ApiTokenSource,
        error: GrantError,
    ) -> Result<Session, TokenRefreshError> {
        let by_exchange = source == ApiTokenSource::AccessToken;
        let (outcome, meaning, hint) = match &error {
            GrantError::Refused(refusal) if refusal.is_about_target() => (
                FlightOutcome::Target,
                TokenRefreshError::TargetRefused,
                "it does not know this audience or resource, or not for this client",
            ),
            GrantError::Refused(refusal) if refusal.is_about_scope() && !target.scopes().is_empty() => (
                FlightOutcome::Target,
                TokenRefreshError::ScopeRefused,
                "it does not know a scope of the request, or not for this client",
            ),
            GrantError::Refused(refusal) if by_exchange && refusal.is_about_subject_token() => (
                FlightOutcome::Rejected,
                TokenRefreshError::SubjectRefused,
                "the session's access token may be dead there, before its time",
            ),
            GrantError::Refused(_) if by_exchange => (
                FlightOutcome::Rejected,
                TokenRefreshError::ExchangeRefused,
                "where it offers this client no token exchange, set OIDC_API_TOKENS=refresh",
            ),
            GrantError::Unusable(_) if by_exchange => (
                FlightOutcome::Unusable,
                TokenRefreshError::ExchangeRefused,
                "its answer to the exchange is of no use",
            ),
            // The session's own refreshes may work all the same, and another sign-in would meet the same refusal.
            GrantError::Refused(refusal) if !refusal.is_final() => (
                FlightOutcome::Rejected,
                TokenRefreshError::TargetRefused,
                "it refuses this client a refresh that names the API",
            ),
            GrantError::Unusable(_) => (
                FlightOutcome::Unusable,
                TokenRefreshError::TargetRefused,
                "its answer to the refresh that names the API is of no use",
            ),
            GrantError::Refused(_) | GrantError::Transient(_) => {
                return self.fail(session, error).await;
            }
        };
        tracing::warn!(
            { session = %session.handle, issuer = session.issuer, audience = target.audience(), resource = target.resource(),
            error = &error as &dyn std::error::Error },
            "the provider issues no token for this API: {hint}"
        );
        self.record_outcome(outcome);
        Err(meaning)
    }

    /// Keeps the token of an answer whose ID token, if it has one, is this session's. While that cannot be said the rotated
    /// refresh token alone is kept.
    async fn validate_and_keep(
        &self,
        provider: &dyn RefreshProvider,
        session: Session,
        target: &ApiTarget,
        tokens: RefreshedTokens,
    ) -> Result<Session, TokenRefreshError> {
        let Some(raw) = &tokens.id_token else {
            return self.keep(session, target, &tokens, None).await;
        };
        let now_ms = self.refresher.keeper.now_ms();
        let validated = validate(provider, &session, raw, &tokens.access_token, now_ms);
        match timeout(UNSAVED_MAX, validated).await {
            Ok(Ok(id_token)) => {
                let sid_before = session.provider_sid.clone();
                let kept = self.keep(session, target, &tokens, Some(&id_token)).await?;
                if kept.provider_sid == sid_before {
                    return Ok(kept);
                }
                self.refresher.unless_logged_out(kept, now_ms).await
            }
            Ok(Err(error)) if !error.is_undecided() => {
                self.end_mismatched(session, Some(&tokens), &error).await
            }
            Ok(Err(_)) | Err(_) => {
                let edit = |session: &mut Session| rotate_alone(session, &tokens);
                let saved = self
                    .save_answer(session, ChangeKind::Changed, &tokens, edit)
                    .await?;
                if !saved.is_ours {
                    return Ok(saved.session);
                }
                self.record_outcome(FlightOutcome::Unjudged);
                Err(TokenRefreshError::ProviderUnavailable)
            }
        }
    }

    /// Saves an answer. The session given has the token, also where there was no room to keep it.
    async fn keep(
        &self,
        session: Session,
        target: &ApiTarget,
        tokens: &RefreshedTokens,
        id_token: Option<&IdToken>,
    ) -> Result<Session, TokenRefreshError> {
        let now_ms = self.refresher.keeper.now_ms();
        let edit = |session: &mut Session| {
            if self.wanted.rotates() {
                rotate_alone(session, tokens);
            }
            if let Some(id_token) = id_token {
                apply_id_token(session, tokens, id_token);
            }
            let token = granted(session, target, tokens);
            self.put_bounded(session, token, now_ms);
        };
        let Saved { mut session, is_ours } = self
            .save_answer(session, ChangeKind::Refreshed, tokens, edit)
            .await?;
        if !is_ours {
            return Ok(session);
        }
        self.check_valid(&session)?;
        let token = granted(&session, target, tokens);
        let held = session.tokens.api.get(target);
        if held.is_none_or(|held| held.access.value != token.access.value) {
            tracing::warn!(session = %session.handle, "a session has no room for a token for an API: each call requests one");
            session.tokens.api.put(token, now_ms);
        }
        self.record_outcome(FlightOutcome::Refreshed);
        Ok(session)
    }

    /// Puts a token into a session, without the oldest others where the session would be too large; not at all where it would be
    /// too large all the same. The one before for the same target goes in any case.
    fn put_bounded(&self, session: &mut Session, token: ApiToken, now_ms: u64) {
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

/// The token of an answer, as the session holds it that is written next.
fn granted(session: &Session, target: &ApiTarget, tokens: &RefreshedTokens) -> ApiToken {
    let scope = match &tokens.scope {
        Some(scope) => Scope::parse(scope),
        // As requested (RFC 6749, section 5.1).
        None => Scope::parse(&target.scopes().join(" ")),
    };
    ApiToken {
        target: target.clone(),
        access: access_token(tokens),
        scope,
        version: session.version.saturating_add(1),
    }
}

/// Counts a grant that leaves the session's own access token as it was.
fn rotate_alone(session: &mut Session, tokens: &RefreshedTokens) {
    rotate(session, tokens);
    session.tokens.other_grants = session.tokens.other_grants.saturating_add(1);
}
