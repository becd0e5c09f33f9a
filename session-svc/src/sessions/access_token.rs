//! Handing out an access token that works.

use super::{Sessions, SessionsError};
use crate::refresh::ports::WaitingCaller;
use crate::session::access::{Decision, decide, is_due_revalidation, still_good};
use crate::session::{AccessToken, Scope, Session, TokenRefusal};

/// A token that was handed out.
#[derive(Clone, Debug)]
pub struct GrantedToken {
    /// The token.
    pub access: AccessToken,
    /// Its scope.
    pub scope: Scope,
}

impl Sessions {
    /// Hands out an access token that carries the scopes required, of a session that was read in this call, refreshing it
    /// first where that is needed.
    pub async fn access_token(
        &self,
        session: Session,
        scopes: &[String],
        force_refresh: bool,
        waiting_caller: WaitingCaller<'_>,
    ) -> Result<GrantedToken, SessionsError> {
        match decide(&session, scopes, force_refresh, self.keeper.now_ms()) {
            Decision::Serve(access) => {
                self.revalidate(&session, waiting_caller.caller);
                Ok(GrantedToken {
                    access,
                    scope: session.values.tokens.scope,
                })
            }
            Decision::Refuse(refusal) => Err(SessionsError::Refused(refusal)),
            Decision::Refresh => {
                self.refreshed(session, scopes, force_refresh, waiting_caller)
                    .await
            }
        }
    }

    /// Has the tokens of a session refreshed in the background whose last grant is too old.
    pub(super) fn revalidate(&self, session: &Session, caller: &str) {
        if self.revalidation_is_due(session) {
            self.refresher.refresh_later(session.clone(), caller);
        }
    }

    /// Whether the provider is to be asked whether it still knows the session.
    pub(super) fn revalidation_is_due(&self, session: &Session) -> bool {
        is_due_revalidation(session, self.limits.revalidate_ms, self.keeper.now_ms())
    }

    async fn refreshed(
        &self,
        seen: Session,
        scopes: &[String],
        forced: bool,
        waiting_caller: WaitingCaller<'_>,
    ) -> Result<GrantedToken, SessionsError> {
        match self.refresher.refresh(seen.clone(), waiting_caller).await {
            // Served as it came, however short it lives: another refresh would give one just as short.
            Ok(session) => granted(session, scopes),
            Err(error) if error.keeps_tokens() && !forced => {
                let access = still_good(&seen, self.keeper.now_ms()).ok_or(error)?;
                Ok(GrantedToken {
                    access,
                    scope: seen.values.tokens.scope,
                })
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The token of a refreshed session, if its scope, which the provider may have narrowed, still suffices.
fn granted(session: Session, scopes: &[String]) -> Result<GrantedToken, SessionsError> {
    let tokens = session.values.tokens;
    if let Some(refusal) = tokens.scope.refusal(scopes) {
        return Err(SessionsError::Refused(refusal));
    }
    let refused = SessionsError::Refused(TokenRefusal::MissingAccessToken);
    Ok(GrantedToken {
        access: tokens.access.ok_or(refused)?,
        scope: tokens.scope,
    })
}
