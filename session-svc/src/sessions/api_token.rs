//! Handing out an access token for one API.

use super::access_token::GrantedToken;
use super::{Sessions, SessionsError};
use crate::refresh::ports::{TokenRefreshError, WaitingCaller};
use crate::session::access::still_good;
use crate::session::api_access::{ApiDecision, decide_api};
use crate::session::{ApiTarget, ApiToken, Session, TokenRefusal};

impl Sessions {
    /// Hands out an access token for an API with the scopes of the target: the one held by a session that was read in this call,
    /// or one that is requested from the provider, for which the session's own may have to be refreshed first.
    pub async fn api_token(
        &self,
        session: &Session,
        target: &ApiTarget,
        force: bool,
        waiting_caller: WaitingCaller<'_>,
    ) -> Result<GrantedToken, SessionsError> {
        let source = self.refresher.api_token_source(&session.issuer);
        let refreshes_first = match decide_api(session, target, source, force, self.keeper.now_ms()) {
            ApiDecision::Serve(token) => return granted(token),
            ApiDecision::Refuse(refusal) => return Err(SessionsError::Refused(refusal)),
            ApiDecision::Request => false,
            ApiDecision::RefreshThenRequest => true,
        };
        match self
            .requested(session, target, refreshes_first, waiting_caller)
            .await
        {
            Ok(token) => granted(token),
            Err(TokenRefreshError::ScopeRefused) => Err(SessionsError::Refused(
                TokenRefusal::InsufficientScope(target.scopes().to_vec()),
            )),
            Err(error) if error.keeps_tokens() && !force => {
                granted(self.still_held(session, target).ok_or(error)?)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Has a token requested, for which the session's own may have to be refreshed first. While the provider is away the one
    /// before is shown, if that has really not expired.
    async fn requested(
        &self,
        seen: &Session,
        target: &ApiTarget,
        refreshes_first: bool,
        waiting_caller: WaitingCaller<'_>,
    ) -> Result<ApiToken, TokenRefreshError> {
        if !refreshes_first {
            return self.refresher.api_token(seen, target, waiting_caller).await;
        }
        match self.refresher.refresh(seen.clone(), waiting_caller).await {
            Ok(refreshed) => {
                let held = |session: &Session| session.tokens.api.get(target).cloned();
                let before = held(seen).map_or(0, |held| held.version);
                match held(&refreshed).filter(|held| held.version > before) {
                    // Another call has requested it meanwhile.
                    Some(token) => Ok(token),
                    None => self.refresher.api_token(&refreshed, target, waiting_caller).await,
                }
            }
            Err(error) if error.keeps_tokens() && still_good(seen, self.keeper.now_ms()).is_some() => {
                self.refresher.api_token(seen, target, waiting_caller).await
            }
            Err(error) => Err(error),
        }
    }

    /// The token held, if it has really not expired: what a caller inside the margin gets when the provider is down.
    fn still_held(&self, session: &Session, target: &ApiTarget) -> Option<ApiToken> {
        let held = session.tokens.api.get(target)?;
        (self.keeper.now_ms() < held.access.expires_at_ms).then(|| held.clone())
    }
}

/// A token, if the provider has granted all that was required.
fn granted(token: ApiToken) -> Result<GrantedToken, SessionsError> {
    match token.refusal() {
        Some(refusal) => Err(SessionsError::Refused(refusal)),
        None => Ok(GrantedToken {
            access: token.access,
            scope: token.scope,
        }),
    }
}
