//! The refresh grant itself, and what its answer does to the session.

use std::time::Duration;

use chassis::secret::Secret;
use oidc::{IdToken, IdTokenError, PROTOCOL_CLAIMS, RefreshError, RefreshedTokens};
use tokio::time::{Instant, sleep};

use super::flight::{Flown, Held, renew_error, settled};
use super::measures::FlightOutcome;
use super::{Provider, Refresher};
use crate::session::change::Kind;
use crate::session::claims::Object;
use crate::session::{AccessToken, Scope, Session, State, Token};
use crate::sessions::claims_of;
use crate::sessions::keeper::Edit;
use crate::sessions::ports::RenewError;

/// Why a session ends whose refreshed ID token is not its own.
const MISMATCH: &str = "token_mismatch";

/// How long a save is tried while the store is out of reach.
pub(super) const MAX_SAVE: Duration = Duration::from_secs(30);

/// Pause between two tries to save.
pub(super) const SAVE_PAUSE: Duration = Duration::from_millis(100);

impl Refresher {
    /// Asks the provider for new tokens and saves them before anyone sees them.
    pub(super) async fn grant(&self, session: Session, held: &Held) -> Flown {
        let Some(refresh_token) = session.tokens.refresh.as_ref().map(Token::text) else {
            return Some(Err(RenewError::Refused));
        };
        let Some(provider) = self.providers.of(&session.issuer) else {
            // Nothing is lost: it may come back, and a sign-in helps at once.
            tracing::warn!(session = %session.handle, issuer = session.issuer, "the session's provider is not configured");
            self.measures.flight(FlightOutcome::Rejected);
            return Some(Err(RenewError::Refused));
        };
        // A process that stood still must not use a refresh token that somebody else may be using.
        if !held.is_certain() {
            tracing::warn!(session = %session.handle, "the lease of a refresh ran out before the provider was asked");
            return None;
        }
        let asked = Instant::now();
        let answer = provider.refresh(refresh_token.expose(), self.now_secs()).await;
        self.measures.provider_took(asked.elapsed());
        Some(match answer {
            Ok(tokens) => self.accept(provider.as_ref(), session, tokens).await,
            Err(error) => self.refused(session, error).await,
        })
    }

    async fn refused(&self, session: Session, error: RefreshError) -> Result<Session, RenewError> {
        let handle = session.handle;
        let (outcome, meaning) = match error {
            RefreshError::Refused(refusal) if refusal.is_final() => {
                tracing::info!(session = %handle, refusal = refusal.error(), "the provider refused the refresh token");
                return self.give_up(session).await;
            }
            RefreshError::Refused(refusal) => {
                tracing::warn!(session = %handle, issuer = session.issuer, refusal = refusal.error(), "the provider refused this client");
                (FlightOutcome::Rejected, RenewError::Refused)
            }
            RefreshError::Unusable(_) => {
                tracing::warn!(session = %handle, issuer = session.issuer, %error, "the refresh response is of no use");
                (FlightOutcome::Unusable, RenewError::Refused)
            }
            RefreshError::Transient(error) => {
                tracing::warn!(session = %handle, issuer = session.issuer, error = &error as &dyn std::error::Error, "the provider could not be asked");
                (FlightOutcome::Transient, RenewError::ProviderUnavailable)
            }
        };
        self.measures.flight(outcome);
        Err(meaning)
    }

    /// Writes down that the refresh token is worth nothing, unless somebody had more luck with it meanwhile.
    async fn give_up(&self, session: Session) -> Result<Session, RenewError> {
        let generation = session.tokens.generation;
        let (session, written) = self.save(session, Kind::Changed, needs_sign_in).await?;
        self.measures.flight(if written {
            FlightOutcome::Refused
        } else {
            FlightOutcome::Superseded
        });
        settled(session, generation).unwrap_or(Err(RenewError::Refused))
    }

    async fn accept(
        &self,
        provider: &dyn Provider,
        session: Session,
        tokens: RefreshedTokens,
    ) -> Result<Session, RenewError> {
        let handle = session.handle;
        let received_ms = self.keeper.now_ms();
        let id_token = match &tokens.id_token {
            None => None,
            Some(raw) => {
                let checked = provider.check(raw, &session.issuer, &session.subject, self.now_secs());
                match checked.await {
                    Ok(checked) => Some(checked),
                    Err(IdTokenError::Provider(error)) => {
                        // The keys are out of reach: the tokens count, for they came over TLS, the ID token does not.
                        tracing::warn!(session = %handle, %error, "a refreshed ID token could not be checked");
                        None
                    }
                    Err(error) => {
                        tracing::error!(session = %handle, %error, "a refreshed ID token is not this session's");
                        self.measures.flight(FlightOutcome::Mismatched);
                        return self.end_mismatched(session, &tokens).await;
                    }
                }
            }
        };
        let sid_before = session.provider_sid.clone();
        let kept = self.keep(session, &tokens, id_token.as_ref()).await?;
        if kept.provider_sid == sid_before {
            return Ok(kept);
        }
        self.unless_logged_out(kept, received_ms).await
    }

    /// Saves what the provider gave. Whoever comes late lets go of it: another outcome was seen already.
    async fn keep(
        &self,
        session: Session,
        tokens: &RefreshedTokens,
        id_token: Option<&IdToken>,
    ) -> Result<Session, RenewError> {
        let (handle, generation) = (session.handle, session.tokens.generation);
        let issuer = session.issuer.clone();
        let saved = self
            .save(session, Kind::Refreshed, |session| {
                apply(session, tokens, id_token);
            })
            .await;
        match saved {
            Ok((session, true)) => {
                self.measures.flight(FlightOutcome::Refreshed);
                Ok(session)
            }
            Ok((session, false)) => {
                // Not revoked: that may revoke the whole grant, and with it the token that is in use now.
                tracing::warn!(session = %handle, "tokens came after another outcome was saved and are let go");
                self.measures.flight(FlightOutcome::Superseded);
                settled(session, generation).unwrap_or(Err(RenewError::Internal))
            }
            Err(error) => {
                if let (RenewError::Missing, Some(rotated)) = (error, &tokens.refresh_token) {
                    // The session ended meanwhile: nobody will use what the provider just gave.
                    self.revoke_in_background(&issuer, Secret::new(rotated.clone()));
                }
                Err(error)
            }
        }
    }

    async fn end_mismatched(
        &self,
        session: Session,
        tokens: &RefreshedTokens,
    ) -> Result<Session, RenewError> {
        let last = tokens
            .refresh_token
            .clone()
            .map(Secret::new)
            .or_else(|| session.tokens.refresh.as_ref().map(Token::text));
        let removed = self.remove(&session, MISMATCH).await;
        if let Some(token) = last {
            self.revoke_in_background(&session.issuer, token);
        }
        removed?;
        Err(RenewError::Refused)
    }

    /// Ends a session, for as long as the store may need to come back: what was granted to somebody else is not kept.
    pub(super) async fn remove(&self, session: &Session, cause: &str) -> Result<(), RenewError> {
        let deadline = Instant::now() + MAX_SAVE;
        loop {
            let removed = async {
                self.keeper.mark_young(session).await?;
                self.keeper.remove(session.handle, cause).await
            };
            match removed.await.map_err(renew_error) {
                Ok(_) => return Ok(()),
                Err(RenewError::StoreUnavailable) if Instant::now() < deadline => sleep(SAVE_PAUSE).await,
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes an edit unless the tokens have moved on, for as long as the store may need to come back. Tells whether
    /// the session as it is now has this edit.
    async fn save<F>(&self, session: Session, kind: Kind, edit: F) -> Result<(Session, bool), RenewError>
    where
        F: Fn(&mut Session) + Send + Sync,
    {
        let generation = session.tokens.generation;
        let deadline = Instant::now() + MAX_SAVE;
        // A write whose answer was lost may have been done: then the tokens found are the ones to be saved.
        let mut unanswered = None;
        loop {
            let mut edited = None;
            let written = self.keeper.edit(session.clone(), kind, None, |session| {
                if session.tokens.generation != generation {
                    return Ok(Edit::Leave);
                }
                edit(session);
                edited = Some(session.tokens.clone());
                Ok(Edit::Write)
            });
            match written.await.map_err(renew_error) {
                Ok((session, written)) => {
                    let ours = written || unanswered.is_some_and(|tokens| session.tokens == tokens);
                    return Ok((session, ours));
                }
                Err(RenewError::StoreUnavailable) if Instant::now() < deadline => {
                    unanswered = edited.or(unanswered);
                    sleep(SAVE_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn now_secs(&self) -> u64 {
        self.keeper.now_ms() / 1_000
    }
}

/// The provider refused the refresh token for good: it is not kept, and not tried again. The generation moves on, so
/// that tokens which come late from somebody who used the token as well do not undo what was said.
fn needs_sign_in(session: &mut Session) {
    session.state = State::NeedsSignIn;
    session.tokens.refresh = None;
    session.tokens.generation = session.tokens.generation.saturating_add(1);
}

/// Takes over what the answer says; what it does not say stays.
fn apply(session: &mut Session, answer: &RefreshedTokens, id_token: Option<&IdToken>) {
    let tokens = &mut session.tokens;
    tokens.access = Some(AccessToken {
        value: Token::new(answer.access_token.clone()),
        token_type: answer.token_type.clone(),
        expires_at_ms: answer.expires_at.saturating_mul(1_000),
    });
    if let Some(scope) = &answer.scope {
        tokens.scope = Scope::parse(scope);
    }
    if let Some(rotated) = &answer.refresh_token {
        tokens.refresh = Some(Token::new(rotated.clone()));
    }
    tokens.generation = tokens.generation.saturating_add(1);
    session.state = State::Active;
    if let Some(id_token) = id_token {
        if let Some(sid) = &id_token.sid {
            session.move_to_sid(sid);
        }
        let before = session
            .tokens
            .id_token
            .as_ref()
            .and_then(|raw| claims_of(raw.text().expose()));
        // Claims that cannot be read stay as they are: nobody loses tokens over them.
        if let Ok(user) = session.user.object() {
            session.user = merged(user.into_owned(), before.as_ref(), &id_token.claims).into();
        }
        // The hint is replaced only where one is kept.
        if let (Some(kept), Some(raw)) = (&mut session.tokens.id_token, &answer.id_token) {
            *kept = Token::new(raw.clone());
        }
    }
}

/// Brings claims up to date: those the session has, and those the ID token before did not have. A claim that was in
/// the ID token and is not in the session was left out on purpose and stays out.
fn merged(mut user: Object, before: Option<&Object>, now: &Object) -> Object {
    for (name, value) in now {
        if PROTOCOL_CLAIMS.contains(&name.as_str()) {
            continue;
        }
        let is_new = before.is_some_and(|before| !before.contains_key(name));
        if is_new || user.contains_key(name) {
            user.insert(name.clone(), value.clone());
        }
    }
    user
}
