//! The refresh grant, and how its answer changes the session.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use oidc::{GrantError, IdToken, PROTOCOL_CLAIMS, RefreshedTokens, TokenTarget};
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::api_grant::{api_token, show_unsaved};
use super::flight::{LeadError, LeadOutcome, LeaseExpiry, RefreshFlight, refresh_error};
use super::measures::FlightOutcome;
use super::pauses::Paused;
use super::ports::TokenRefreshError;
use crate::session::access::still_good;
use crate::session::change::ChangeKind;
use crate::session::claims::ClaimMembers;
use crate::session::id_token::claims_of;
use crate::session::{
    AccessToken, ApiTokenSource, Cause, Claims, RevocableToken, Scope, Session, StoredToken,
};

/// Pauses between two tries to save: the first, and the longest.
const FIRST_SAVE_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_SAVE_PAUSE: Duration = Duration::from_millis(500);

impl RefreshFlight {
    /// Requests the tokens from the provider and saves them before any caller sees them. A pending answer of an
    /// earlier request is validated first: until it may be replaced, no new request is sent.
    pub(super) async fn grant(&self, mut session: Session, held: &LeaseExpiry) -> LeadOutcome {
        let Some(provider) = self.refresher.providers.of(&session.issuer) else {
            // Not final: an operator may configure the provider again. A new sign-in helps at once.
            tracing::warn!(session = %session.handle, issuer = session.issuer, "the session's provider is not configured");
            return Err(TokenRefreshError::Rejected.into());
        };
        let now_ms = || self.refresher.session_store.now_ms();
        if let (None, Some(answer)) = (self.wanted.target(), session.tokens.pending.clone()) {
            match self.validate_pending(provider.as_ref(), &session, &answer).await {
                // Valid, but already expired.
                Some(Ok(validated)) if still_good(&validated, now_ms()).is_none() => session = validated,
                Some(outcome) => return outcome,
                None if answer.may_be_replaced(now_ms()) => {}
                None => return Err(not_validated()),
            }
        }
        let shown = match self.wanted.target() {
            // If the access token has expired since the caller's check, the next call refreshes it first.
            Some((_, ApiTokenSource::AccessToken)) => still_good(&session, now_ms())
                .map(|access| access.value.text())
                .ok_or(TokenRefreshError::ProviderUnavailable)?,
            Some((target, ApiTokenSource::IdToken(issuer))) => {
                let provider = provider.as_ref();
                return self
                    .grant_cross_app(provider, session, (target, issuer), held)
                    .await;
            }
            Some((_, ApiTokenSource::RefreshToken)) | None => {
                let refresh_token = session.tokens.refresh.as_ref().map(StoredToken::text);
                refresh_token.ok_or(TokenRefreshError::Refused)?
            }
        };
        self.check_lease(held)?;
        let (timer, now) = (self.refresher.measures.asking_provider(), now_ms() / 1_000);
        let answer = match self.wanted.target() {
            None => provider.refresh(shown.expose(), now).await,
            Some((target, source)) => {
                let scope = target.scopes.join(" ");
                let named = |text| Some(text).filter(|text: &&str| !text.is_empty());
                let named = TokenTarget {
                    audience: named(&target.audience),
                    resource: named(&target.resource),
                    scope: named(&scope),
                };
                provider.api_token(source, shown.expose(), &named, now).await
            }
        };
        timer.observe_duration();
        match (answer, self.wanted.target()) {
            (Ok(tokens), _) => self.validate_and_save(provider.as_ref(), session, tokens).await,
            (Err(error), None) => self.fail(session, error).await,
            (Err(error), Some((target, _))) => self.fail_for(session, target, "", error).await,
        }
    }

    /// A process that was suspended must not use a token that another replica may be using.
    pub(super) fn check_lease(&self, held: &LeaseExpiry) -> Result<(), LeadError> {
        if held.is_certain() {
            return Ok(());
        }
        tracing::warn!(session = %self.handle, "the lease of a refresh expired before the request to the provider");
        Err(LeadError::LeaseLost)
    }

    /// Handles a failed grant; saves a final refusal.
    pub(super) async fn fail(&self, session: Session, error: GrantError) -> LeadOutcome {
        if let GrantError::Refused(refusal) = &error
            && refusal.is_final()
        {
            tracing::info!(session = %session.handle, refusal = refusal.code(), "the provider refused the refresh token");
            return self.save_refusal(session).await;
        }
        tracing::warn!(session = %session.handle, issuer = session.issuer, error = &error as &dyn std::error::Error, "the provider gave no new tokens");
        let (outcome, meaning, pauses) = match &error {
            GrantError::Refused(_) => (FlightOutcome::Rejected, TokenRefreshError::Rejected, true),
            GrantError::Unusable(_) => (FlightOutcome::Unusable, TokenRefreshError::Rejected, true),
            GrantError::Transient(error) => {
                let meaning = TokenRefreshError::ProviderUnavailable;
                (FlightOutcome::Transient, meaning, error.is_unknown_refusal())
            }
        };
        if pauses {
            let now_ms = self.refresher.session_store.now_ms();
            let pauses = &self.refresher.pauses;
            pauses.begin(&session, Paused::Refresh, meaning, now_ms);
        }
        Err(LeadError::Concluded(outcome, Err(meaning)))
    }

    /// Saves that the refresh token was refused, unless another outcome was saved meanwhile.
    async fn save_refusal(&self, session: Session) -> LeadOutcome {
        let (session, is_ours) = self
            .save_outcome(session, ChangeKind::Changed, needs_sign_in)
            .await?;
        if is_ours && self.refresher.revalidates {
            // Saved first: the refresh token is not used again even if the ending fails.
            self.refresher
                .end_at_last(&session, Cause::Refused, Vec::new())
                .await?;
        }
        let outcome = if is_ours {
            FlightOutcome::Refused
        } else {
            FlightOutcome::Superseded
        };
        let refused = || Err(TokenRefreshError::Refused);
        let result = self.wanted.outcome_in(session).unwrap_or_else(refused);
        Err(LeadError::Concluded(outcome, result.map(Arc::new)))
    }

    /// Saves an answer received at `received_ms` with its ID token's claims. Ends the session if its new
    /// `sid` was logged out since. The returned session has its API token even if the stored one has no space
    /// for it.
    pub(super) async fn save_tokens(
        &self,
        session: Session,
        tokens: &RefreshedTokens,
        id_token: Option<&IdToken>,
        received_ms: u64,
    ) -> LeadOutcome {
        let now_ms = self.refresher.session_store.now_ms();
        let sid_before = session.provider_sid.clone();
        let target = self.wanted.target().map(|(target, _)| target);
        let edit = |session: &mut Session| {
            match target {
                None => apply(session, tokens, now_ms),
                Some(_) if self.wanted.rotates() => rotate_alone(session, tokens),
                Some(_) => {}
            }
            if let Some(id_token) = id_token {
                apply_id_token(session, tokens, id_token);
            }
            if let Some(target) = target {
                let token = api_token(session, target, self.wanted.server(), tokens);
                self.put_bounded(session, token, now_ms);
            }
        };
        let mut session = self
            .save_answer(session, ChangeKind::Refreshed, tokens, edit)
            .await?;
        let session_store = &self.refresher.session_store;
        if !session.is_valid(session_store.lifetime(), session_store.now_ms()) {
            // The ID token says that the provider's session has expired.
            return Err(TokenRefreshError::Missing.into());
        }
        if let Some(target) = target {
            let token = api_token(&session, target, self.wanted.server(), tokens);
            show_unsaved(&mut session, token, now_ms);
        }
        if session.provider_sid != sid_before {
            session = self.refresher.unless_logged_out(session, received_ms).await?;
        }
        Ok(session)
    }

    /// Saves an outcome with tokens. Drops a late one: callers have already seen another outcome.
    pub(super) async fn save_answer<F>(
        &self,
        session: Session,
        kind: ChangeKind,
        tokens: &RefreshedTokens,
        edit: F,
    ) -> LeadOutcome
    where
        F: Fn(&mut Session) + Send + Sync,
    {
        let (handle, issuer) = (session.handle, session.issuer.clone());
        let saved = self.save_outcome(session, kind, edit).await;
        let (session, is_ours) = saved.inspect_err(|error| {
            if *error == TokenRefreshError::Missing {
                // The session ended meanwhile: no caller will use these new tokens.
                let unused = self.unused(tokens);
                self.refresher.revoke_in_background(&issuer, unused);
            }
        })?;
        if is_ours {
            return Ok(session);
        }
        // Not revoked: that may revoke the whole grant, including the token in use.
        tracing::warn!(session = %handle, "tokens came after another outcome was saved and are discarded");
        let unavailable = || Err(TokenRefreshError::ProviderUnavailable);
        let result = self.wanted.outcome_in(session).unwrap_or_else(unavailable);
        Err(LeadError::Concluded(
            FlightOutcome::Superseded,
            result.map(Arc::new),
        ))
    }

    /// The tokens to revoke from an answer that no caller sees: a refresh token, and a token for an API.
    fn unused(&self, tokens: &RefreshedTokens) -> Vec<RevocableToken> {
        let revocable = |token: &String, is_access| RevocableToken {
            value: StoredToken::new(token.clone()),
            is_access,
            server: self.wanted.server().to_owned(),
        };
        let refresh = tokens.refresh_token.iter().map(|token| revocable(token, false));
        let api = self
            .wanted
            .target()
            .map(|_| revocable(&tokens.access_token, true));
        refresh.chain(api).collect()
    }

    /// Saves an outcome as an edit, unless another use of the refresh token was saved before. Returns the
    /// current session, and whether it has the outcome. Retries as long as the session lives: outages can be
    /// long.
    async fn save_outcome<F>(
        &self,
        session: Session,
        kind: ChangeKind,
        edit: F,
    ) -> Result<(Session, bool), TokenRefreshError>
    where
        F: Fn(&mut Session) + Send + Sync,
    {
        let session_store = &self.refresher.session_store;
        let _unsaved = self.refresher.measures.unsaved();
        let generation = session.tokens.generation;
        let mut pause = FIRST_SAVE_PAUSE;
        // After a lost answer the write may have succeeded: then the stored tokens are the ones to save.
        let mut unanswered = None;
        loop {
            let mut edited = None;
            let written = session_store.edit(session.clone(), kind, None, |session| {
                if self.wanted.rotates() && session.tokens.generation != generation {
                    return false;
                }
                edit(session);
                edited = Some(session.tokens.clone());
                true
            });
            match written.await.map_err(refresh_error) {
                Ok((session, written)) => {
                    self.entry.set_store_away(false);
                    let is_ours = written || unanswered.is_some_and(|tokens| session.tokens == tokens);
                    return Ok((session, is_ours));
                }
                // Another replica sealed the session with a newer key, which this replica receives soon.
                Err(TokenRefreshError::StoreUnavailable | TokenRefreshError::UnknownKey(_))
                    if session.is_valid(session_store.lifetime(), session_store.now_ms()) =>
                {
                    if unanswered.is_none() {
                        tracing::warn!(session = %session.handle, "the outcome of a refresh cannot be saved yet");
                        self.entry.set_store_away(true);
                    }
                    unanswered = edited.or(unanswered);
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_SAVE_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// The ID token cannot be validated now: the answer stays pending.
pub(super) fn not_validated() -> LeadError {
    LeadError::Concluded(
        FlightOutcome::IdTokenNotVerified,
        Err(TokenRefreshError::ProviderUnavailable),
    )
}

/// The provider finally refused the refresh token: remove it and do not retry. The generation advances, so
/// that late tokens from another use of the refresh token do not undo the refusal.
fn needs_sign_in(session: &mut Session) {
    session.needs_sign_in = true;
    session.tokens.refresh = None;
    session.tokens.pending = None;
    session.tokens.generation = session.tokens.generation.saturating_add(1);
}

/// The access token of an answer.
pub(super) fn access_token(answer: &RefreshedTokens) -> AccessToken {
    AccessToken {
        value: StoredToken::new(answer.access_token.clone()),
        token_type: answer.token_type.clone(),
        expires_at_ms: answer.expires_at.saturating_mul(1_000),
        lifetime_ms: AccessToken::kept_lifetime_ms(answer.lifetime_secs),
    }
}

/// Stores the rotated refresh token, if the answer has one. The generation advances, so that a late outcome
/// of the earlier token is not saved.
pub(super) fn rotate(session: &mut Session, answer: &RefreshedTokens) {
    if let Some(rotated) = &answer.refresh_token {
        session.tokens.refresh = Some(StoredToken::new(rotated.clone()));
    }
    session.tokens.generation = session.tokens.generation.saturating_add(1);
}

/// Stores the values of the answer; missing ones stay unchanged.
fn apply(session: &mut Session, answer: &RefreshedTokens, now_ms: u64) {
    rotate(session, answer);
    let tokens = &mut session.tokens;
    tokens.access = Some(access_token(answer));
    if let Some(scope) = &answer.scope {
        tokens.scope = Scope::parse(scope);
    }
    tokens.other_grants = 0;
    tokens.pending = None;
    tokens.granted_at_ms = now_ms;
    session.needs_sign_in = false;
}

/// Counts a grant that leaves the session's own access token unchanged.
pub(super) fn rotate_alone(session: &mut Session, answer: &RefreshedTokens) {
    rotate(session, answer);
    session.tokens.other_grants = session.tokens.other_grants.saturating_add(1);
}

/// Stores the claims of the ID token of an answer.
fn apply_id_token(session: &mut Session, answer: &RefreshedTokens, id_token: &IdToken) {
    if let Some(sid) = &id_token.sid {
        session.move_to_sid(sid);
    }
    // The provider may shorten the stored limit, but never extend it.
    let over_at_ms = id_token.session_expiry.map(|secs| secs.saturating_mul(1_000));
    session.not_after_ms = session.not_after_ms.into_iter().chain(over_at_ms).min();
    let before = session
        .tokens
        .id_token
        .as_ref()
        .and_then(|raw| claims_of::<ClaimMembers>(raw.text().expose()));
    let now = answer.id_token.as_deref().and_then(claims_of::<ClaimMembers>);
    // An ID token older than a security event must not undo the event's changes.
    let issued_at_ms = id_token.iat.saturating_mul(1_000);
    let mut now = now.unwrap_or_default();
    now.retain(|name, _| {
        let told_at_ms = session.claims_told.get(name);
        told_at_ms.is_none_or(|told_at_ms| issued_at_ms >= *told_at_ms)
    });
    // Unreadable claims stay unchanged; the tokens are saved anyway.
    if let Ok(user) = merged(&session.user, before.as_ref(), now) {
        session.user = user;
    }
    // A stored ID token, the hint of a logout, is replaced. None is added.
    if let (Some(kept), Some(raw)) = (&mut session.tokens.id_token, &answer.id_token) {
        *kept = StoredToken::new(raw.clone());
    }
}

/// Claims that describe one sign-in. The session keeps its own: a refreshed ID token may describe another.
const SIGN_IN_CLAIMS: [&str; 2] = ["acr", "amr"];

/// Updates claims that the session has, and adds those that the earlier ID token did not have. A claim of the
/// earlier ID token that the session lacks was left out on purpose and stays out.
fn merged(
    user: &Claims,
    before: Option<&ClaimMembers>,
    now: ClaimMembers,
) -> Result<Claims, serde_json::Error> {
    let mut user = user.members()?;
    for (name, value) in now {
        if PROTOCOL_CLAIMS.contains(&name.as_str()) || SIGN_IN_CLAIMS.contains(&name.as_str()) {
            continue;
        }
        let Some(value) = user_claim(&name, value) else {
            continue;
        };
        let is_new = before.is_some_and(|before| !before.contains_key(&name));
        if is_new || user.contains_key(&name) {
            user.insert(name, value);
        }
    }
    Claims::of_members(user)
}

/// Filters and converts a claim for the user's claims; `None` if it must not become one.
fn user_claim(name: &str, value: Box<RawValue>) -> Option<Box<RawValue>> {
    match oidc::user_claim(name, value.get())? {
        Cow::Borrowed(_) => Some(value),
        Cow::Owned(text) => RawValue::from_string(text).ok(),
    }
}
