//! The refresh grant itself, and what its answer does to the session.

use std::time::Duration;

use chassis::secret::Secret;
use oidc::{IdToken, IdTokenError, PROTOCOL_CLAIMS, RefreshError, RefreshedTokens};
use tokio::time::{Instant, sleep};

use super::Refresher;
use super::flight::renew_error;
use crate::session::change::Kind;
use crate::session::{AccessToken, Claims, Scope, Session, State};
use crate::sessions::claims_of;
use crate::sessions::keeper::Edit;
use crate::sessions::ports::RenewError;

/// Why a session ends whose refreshed ID token is not its own.
const MISMATCH: &str = "token_mismatch";

/// How long a save is tried while the store is out of reach.
const MAX_SAVE: Duration = Duration::from_secs(30);

/// Pause between two tries to save.
const SAVE_PAUSE: Duration = Duration::from_millis(100);

impl Refresher {
    /// Asks the provider for new tokens and saves them before anyone sees them.
    pub(super) async fn grant(&self, session: Session) -> Result<Session, RenewError> {
        let Some(refresh_token) = session.tokens.refresh.clone() else {
            return Err(RenewError::Refused);
        };
        let handle = session.handle;
        match self
            .provider
            .refresh(refresh_token.expose(), self.now_secs())
            .await
        {
            Ok(tokens) => self.accept(session, tokens).await,
            Err(RefreshError::Refused(refusal)) if refusal.is_final() => {
                tracing::info!(session = %handle, refusal = refusal.error(), "the provider refused the refresh token");
                self.save(session, Kind::Changed, refused).await?;
                Err(RenewError::Refused)
            }
            Err(RefreshError::Refused(refusal)) => {
                tracing::warn!(session = %handle, refusal = refusal.error(), "the provider refused this client");
                Err(RenewError::Refused)
            }
            Err(error @ RefreshError::Unusable(_)) => {
                tracing::warn!(session = %handle, %error, "the refresh response is of no use");
                Err(RenewError::Refused)
            }
            Err(RefreshError::Transient(error)) => {
                tracing::warn!(session = %handle, error = &error as &dyn std::error::Error, "the provider could not be asked");
                Err(RenewError::ProviderUnavailable)
            }
        }
    }

    async fn accept(&self, session: Session, tokens: RefreshedTokens) -> Result<Session, RenewError> {
        let handle = session.handle;
        let id_token = match &tokens.id_token {
            None => None,
            Some(raw) => {
                let checked = self
                    .provider
                    .check(raw, &session.issuer, &session.subject, self.now_secs());
                match checked.await {
                    Ok(checked) => Some(checked),
                    Err(IdTokenError::Provider(error)) => {
                        // The keys are out of reach: the tokens count, for they came over TLS, the ID token does not.
                        tracing::warn!(session = %handle, %error, "a refreshed ID token could not be checked");
                        None
                    }
                    Err(error) => {
                        tracing::error!(session = %handle, %error, "a refreshed ID token is not this session's");
                        return self.end_mismatched(session, &tokens).await;
                    }
                }
            }
        };
        let rotated = tokens.refresh_token.clone();
        let saved = self
            .save(session, Kind::Refreshed, |session| {
                apply(session, &tokens, id_token.as_ref())
            })
            .await;
        if let (Err(RenewError::Missing), Some(rotated)) = (&saved, rotated) {
            // The session ended meanwhile: nobody will use what the provider just gave.
            self.revoke_in_background(Secret::new(rotated));
        }
        saved
    }

    async fn end_mismatched(
        &self,
        session: Session,
        tokens: &RefreshedTokens,
    ) -> Result<Session, RenewError> {
        let removed = self.keeper.remove(session.handle, MISMATCH).await;
        let last = tokens
            .refresh_token
            .clone()
            .map(Secret::new)
            .or(session.tokens.refresh);
        if let Some(token) = last {
            self.revoke_in_background(token);
        }
        removed.map_err(renew_error)?;
        Err(RenewError::Refused)
    }

    /// Writes an edit unless the tokens have moved on, for as long as the store may need to come back.
    async fn save<F>(&self, session: Session, kind: Kind, edit: F) -> Result<Session, RenewError>
    where
        F: Fn(&mut Session) + Send + Sync,
    {
        let generation = session.tokens.generation;
        let deadline = Instant::now() + MAX_SAVE;
        loop {
            let written = self.keeper.edit(session.clone(), kind, None, |session| {
                if session.tokens.generation != generation {
                    return Ok(Edit::Leave);
                }
                edit(session);
                Ok(Edit::Write)
            });
            match written.await.map_err(renew_error) {
                Ok((session, _)) => return Ok(session),
                Err(RenewError::StoreUnavailable) if Instant::now() < deadline => sleep(SAVE_PAUSE).await,
                Err(error) => return Err(error),
            }
        }
    }

    fn now_secs(&self) -> u64 {
        self.keeper.now_ms() / 1_000
    }
}

/// The provider refused the refresh token for good: it is not kept, and not tried again.
fn refused(session: &mut Session) {
    session.state = State::NeedsSignIn;
    session.tokens.refresh = None;
}

/// Takes over what the answer says; what it does not say stays.
fn apply(session: &mut Session, answer: &RefreshedTokens, id_token: Option<&IdToken>) {
    let tokens = &mut session.tokens;
    tokens.access = Some(AccessToken {
        value: Secret::new(answer.access_token.clone()),
        token_type: answer.token_type.clone(),
        expires_at_ms: answer.expires_at.saturating_mul(1_000),
    });
    if let Some(scope) = &answer.scope {
        tokens.scope = Scope::parse(scope);
    }
    if let Some(rotated) = &answer.refresh_token {
        tokens.refresh = Some(Secret::new(rotated.clone()));
    }
    tokens.generation = tokens.generation.saturating_add(1);
    session.state = State::Active;
    if let Some(id_token) = id_token {
        let before = session
            .tokens
            .id_token
            .as_ref()
            .and_then(|raw| claims_of(raw.expose()));
        merge(&mut session.user, before.as_ref(), &id_token.claims);
        // The hint is replaced only where one is kept.
        if let (Some(kept), Some(raw)) = (&mut session.tokens.id_token, &answer.id_token) {
            *kept = Secret::new(raw.clone());
        }
    }
}

/// Brings claims up to date: those the session has, and those the ID token before did not have. A claim that was in
/// the ID token and is not in the session was left out on purpose and stays out.
fn merge(user: &mut Claims, before: Option<&Claims>, now: &Claims) {
    for (name, value) in now {
        if PROTOCOL_CLAIMS.contains(&name.as_str()) {
            continue;
        }
        let is_new = before.is_some_and(|before| !before.contains_key(name));
        if is_new || user.contains_key(name) {
            user.insert(name.clone(), value.clone());
        }
    }
}
