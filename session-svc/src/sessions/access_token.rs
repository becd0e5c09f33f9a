//! Returns a valid access token: the session's own, or one for a single API.

use super::{Sessions, SessionsError};
use crate::refresh::ports::{TokenRefreshError, WaitingCaller};
use crate::session::access::{Decision, decide, is_due_revalidation, still_good};
use crate::session::api_access::decide_api;
use crate::session::{ApiTarget, ApiToken, ApiTokenSource, GrantedToken, Session, TokenRefusal};

impl Sessions {
    /// Returns an access token with the required scopes. `session` was read in this call. Refreshes it first
    /// if necessary.
    pub async fn access_token(
        &self,
        session: Session,
        scopes: &[String],
        force_refresh: bool,
        waiting_caller: WaitingCaller<'_>,
    ) -> Result<GrantedToken, SessionsError> {
        if let Decision::Serve(granted) = decide(&session, scopes, force_refresh, self.now_ms())? {
            self.revalidate(&session, waiting_caller.caller);
            return Ok(granted);
        }
        match self.refresher.refresh(session.clone(), waiting_caller).await {
            // Returned as received, however short its lifetime: another refresh would give one just as short.
            // The provider may have narrowed its scope.
            Ok(refreshed) => {
                let tokens = refreshed.values.tokens;
                tokens.scope.check(scopes)?;
                Ok(GrantedToken {
                    access: tokens.access.ok_or(TokenRefusal::MissingAccessToken)?,
                    scope: tokens.scope,
                })
            }
            Err(error) if error.keeps_tokens() && !force_refresh => Ok(GrantedToken {
                access: still_good(&session, self.now_ms()).ok_or(error)?,
                scope: session.values.tokens.scope,
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Refreshes the tokens in the background if the last grant is too old.
    pub(super) fn revalidate(&self, session: &Session, caller: &str) {
        if self.revalidation_is_due(session) {
            self.refresher.refresh_later(session.clone(), caller);
        }
    }

    /// Whether the provider must confirm that the session still exists there.
    pub(super) fn revalidation_is_due(&self, session: &Session) -> bool {
        is_due_revalidation(session, self.limits.revalidate_ms, self.now_ms())
    }

    /// Returns an access token for an API with the scopes of the target: the cached one, or a newly requested
    /// one. The request may refresh the session's own token first. If the provider is unavailable, the cached
    /// token is returned until it expires.
    pub async fn api_token(
        &self,
        session: &Session,
        target: &ApiTarget,
        force: bool,
        waiting_caller: WaitingCaller<'_>,
    ) -> Result<GrantedToken, SessionsError> {
        let source = self.refresher.api_token_source(&session.issuer, target);
        let requested = match decide_api(session, target, &source, force, self.now_ms())? {
            Decision::Serve(granted) => return Ok(granted),
            Decision::Request => self.refresher.api_token(session, target, waiting_caller).await,
            Decision::Refresh => {
                self.refresh_and_request(session, target, &source, waiting_caller)
                    .await
            }
        };
        match requested {
            Ok(token) => Ok(token.to_granted()?),
            Err(TokenRefreshError::ScopeRefused) => {
                Err(TokenRefusal::InsufficientScope(target.scopes.clone()).into())
            }
            Err(error) if error.keeps_tokens() && !force => {
                let held = session.tokens.api.get(target);
                let held = held.filter(|held| self.now_ms() < held.access.expires_at_ms);
                Ok(held.ok_or(error)?.to_granted()?)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn refresh_and_request(
        &self,
        seen: &Session,
        target: &ApiTarget,
        source: &ApiTokenSource,
        waiting_caller: WaitingCaller<'_>,
    ) -> Result<ApiToken, TokenRefreshError> {
        // Otherwise each call would refresh: some providers return no ID token then.
        let by_id_token = matches!(source, ApiTokenSource::IdToken(_));
        if let Some(refused) = self.refresher.api_refusal(seen, target).filter(|_| by_id_token) {
            return Err(refused);
        }
        let is_usable = || !by_id_token && still_good(seen, self.now_ms()).is_some();
        let refreshed = match self.refresher.refresh(seen.clone(), waiting_caller).await {
            Err(error) if error.keeps_tokens() && is_usable() => seen.clone(),
            refreshed => refreshed?,
        };
        let before = seen.tokens.api.get(target).map_or(0, |held| held.version);
        match refreshed
            .tokens
            .api
            .get(target)
            .filter(|held| held.version > before)
        {
            // Another call has requested it meanwhile.
            Some(token) => Ok(token.clone()),
            None => self.refresher.api_token(&refreshed, target, waiting_caller).await,
        }
    }
}
