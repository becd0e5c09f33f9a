//! Validating the ID token of a refresh, at once or later (OpenID Connect Core, section 12.2).
//!
//! Its claims are validated at once, and a token of another person or sign-in ends the session. The key for
//! its signature may be missing: the provider's key set lags behind, or is unavailable. The answer is then
//! *pending*: stored and sealed with the session. Its refresh token is valid from then on. Its access token
//! is not handed out, and a call that needs one validates the answer again.
//!
//! Invariants
//! - No pending answer is dropped because of a missing key.
//! - No other grant is requested before the access token of a pending answer has expired.

use std::time::Duration;

use oidc::{ExpectedRefreshedIdToken, IdToken, IdTokenError, RefreshedTokens};
use tokio::time::{Instant, sleep, timeout};

use super::RefreshProvider;
use super::flight::{LeadError, LeadOutcome, RefreshFlight};
use super::grant::{access_token, not_validated, rotate, rotate_alone};
use super::measures::FlightOutcome;
use super::ports::TokenRefreshError;
use crate::session::change::ChangeKind;
use crate::session::claims::Object;
use crate::session::id_token::claims_of;
use crate::session::{Cause, PendingAnswer, Scope, Session, StoredToken};

/// How long an unsaved answer waits for the provider's keys: it holds the only copy of the refresh token.
pub(super) const UNSAVED_MAX: Duration = Duration::from_millis(500);

/// How long a newly pending answer is validated again while callers wait: keys often arrive a moment late.
const RETRIES_MAX: Duration = Duration::from_secs(3);

/// Pause before each try, a little longer than the minimum time between two fetches of the provider's keys.
const RETRY_PAUSE: Duration = Duration::from_millis(1_100);

/// Minimum time an answer stays pending before another one is requested, in milliseconds.
const PENDING_MIN_MS: u64 = 60_000;

impl RefreshFlight {
    /// Saves an answer's tokens if its ID token is this session's, and ends the session if it is not. If
    /// undecided, saves the rotated refresh token. The answer is then pending unless it is for an API.
    pub(super) async fn validate_and_save(
        &self,
        provider: &dyn RefreshProvider,
        session: Session,
        tokens: RefreshedTokens,
    ) -> LeadOutcome {
        let now_ms = self.refresher.session_store.now_ms();
        let Some(raw) = &tokens.id_token else {
            return self.save_tokens(session, &tokens, None, now_ms).await;
        };
        let validated = validate(provider, &session, raw, &tokens.access_token, now_ms);
        match timeout(UNSAVED_MAX, validated).await {
            Ok(Ok(id_token)) => self.save_tokens(session, &tokens, Some(&id_token), now_ms).await,
            Ok(Err(error)) if !error.is_undecided() => {
                self.end_mismatched(session, Some(&tokens), &error).await
            }
            Ok(Err(_)) | Err(_) => {
                let is_for_api = self.wanted.target().is_some();
                let answer = pending_answer(&tokens, raw, now_ms);
                let edit = |session: &mut Session| match is_for_api {
                    false => set_pending(session, &tokens, &answer),
                    true => rotate_alone(session, &tokens),
                };
                let session = self
                    .save_answer(session, ChangeKind::Changed, &tokens, edit)
                    .await?;
                if is_for_api {
                    return Err(not_validated());
                }
                self.retry_pending(provider, session, &answer).await
            }
        }
    }

    async fn retry_pending(
        &self,
        provider: &dyn RefreshProvider,
        session: Session,
        answer: &PendingAnswer,
    ) -> LeadOutcome {
        let began = Instant::now();
        while began.elapsed() < RETRIES_MAX {
            sleep(RETRY_PAUSE).await;
            if let Some(outcome) = self.validate_pending(provider, &session, answer).await {
                return outcome;
            }
        }
        Err(not_validated())
    }

    /// Validates the pending answer of a session and saves its tokens; `None` if that is not possible yet.
    pub(super) async fn validate_pending(
        &self,
        provider: &dyn RefreshProvider,
        session: &Session,
        answer: &PendingAnswer,
    ) -> Option<LeadOutcome> {
        let tokens = answer.refreshed();
        let raw = tokens.id_token.as_deref()?;
        let validated = validate(
            provider,
            session,
            raw,
            &tokens.access_token,
            answer.answered_at_ms,
        );
        match validated.await {
            Ok(id_token) => {
                let received_ms = answer.answered_at_ms;
                let saved = self.save_tokens(session.clone(), &tokens, Some(&id_token), received_ms);
                Some(saved.await)
            }
            Err(error) if error.is_undecided() => {
                tracing::warn!(session = %session.handle, issuer = session.issuer, error = &error as &dyn std::error::Error, "a refreshed ID token cannot be validated yet");
                None
            }
            Err(error) => Some(self.end_mismatched(session.clone(), None, &error).await),
        }
    }

    /// Ends a session that received another user's token, and revokes its tokens, including the latest
    /// refresh token.
    pub(super) async fn end_mismatched(
        &self,
        session: Session,
        answer: Option<&RefreshedTokens>,
        error: &IdTokenError,
    ) -> LeadOutcome {
        tracing::error!(session = %session.handle, error = error as &dyn std::error::Error, "a refreshed ID token does not belong to this session");
        let rotated = answer.and_then(|answer| answer.refresh_token.as_deref());
        let tokens = session
            .tokens
            .revocable_with(rotated, self.refresher.session_store.now_ms());
        let ended = self
            .refresher
            .end_at_last(&session, Cause::TokenMismatch, tokens.clone());
        if let Err(error) = ended.await {
            // Revoke them here: the note of a failed ending is dropped.
            self.refresher.revoke_in_background(&session.issuer, tokens);
            return Err(error.into());
        }
        Err(LeadError::Concluded(
            FlightOutcome::Mismatched,
            Err(TokenRefreshError::Refused),
        ))
    }
}

/// Validates an answer's ID token as of `answered_at_ms` against the session's sign-in, with the nonce of the
/// stored ID token. A different `auth_time` ends nothing: it belongs to another browser's sign-in.
pub(super) async fn validate(
    provider: &dyn RefreshProvider,
    session: &Session,
    raw: &str,
    access_token: &str,
    answered_at_ms: u64,
) -> Result<IdToken, IdTokenError> {
    let kept = session.tokens.id_token.as_ref().map(StoredToken::text);
    let original = kept.as_ref().and_then(|kept| claims_of::<Object>(kept.expose()));
    let original = original.unwrap_or_default();
    let expected = ExpectedRefreshedIdToken {
        iss: &session.issuer,
        sub: &session.subject,
        nonce: original.get("nonce").and_then(serde_json::Value::as_str),
        access_token,
    };
    let id_token = provider.validate(raw, &expected, answered_at_ms / 1_000).await?;
    // The stored ID token is the latest, so each new time is logged once.
    let known = match kept {
        Some(_) => original.get("auth_time").and_then(serde_json::Value::as_u64),
        None => session.authenticated_at_ms.map(|at_ms| at_ms / 1_000),
    };
    if id_token.auth_time.is_some() && id_token.auth_time != known {
        tracing::info!(session = %session.handle, "a refreshed ID token has another auth_time: the session keeps that of its sign-in");
    }
    Ok(id_token)
}

fn pending_answer(tokens: &RefreshedTokens, id_token: &str, answered_at_ms: u64) -> PendingAnswer {
    PendingAnswer {
        access: access_token(tokens),
        scope: tokens.scope.as_deref().map(Scope::parse),
        id_token: StoredToken::new(id_token.to_owned()),
        answered_at_ms,
    }
}

/// Makes an answer the session's pending one. The generation advances, so that other outcomes of this grant
/// are not saved.
fn set_pending(session: &mut Session, tokens: &RefreshedTokens, answer: &PendingAnswer) {
    rotate(session, tokens);
    session.tokens.pending = Some(Box::new(answer.clone()));
}

impl PendingAnswer {
    /// Whether another answer may replace this one, because its access token would be of no use any more.
    pub(super) fn may_be_replaced(&self, now_ms: u64) -> bool {
        let least = self.answered_at_ms.saturating_add(PENDING_MIN_MS);
        now_ms >= self.access.expires_at_ms.max(least)
    }

    /// The answer without the refresh token, which the session has already.
    fn refreshed(&self) -> RefreshedTokens {
        RefreshedTokens {
            access_token: self.access.value.text().expose().clone(),
            token_type: self.access.token_type.clone(),
            scope: self.scope.as_ref().map(Scope::text),
            expires_at: self.access.expires_at_ms / 1_000,
            lifetime_secs: self.access.expires_at_ms.saturating_sub(self.answered_at_ms) / 1_000,
            refresh_token: None,
            id_token: Some(self.id_token.text().expose().clone()),
        }
    }
}
