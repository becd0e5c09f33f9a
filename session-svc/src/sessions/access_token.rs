//! Handing out an access token that works.

use tokio::time::Instant;

use super::ports::{Asking, RenewError};
use super::{Sessions, SessionsError};
use crate::session::access::{Ask, Decision, Refusal, decide, is_due_ahead, still_good};
use crate::session::{AccessToken, Handle, Scope, Session};

/// A token that was handed out.
#[derive(Clone, Debug)]
pub struct Granted {
    /// The token.
    pub access: AccessToken,
    /// Its scope.
    pub scope: Scope,
}

impl Sessions {
    /// Hands out an access token that carries the scopes asked for, refreshing it first where that is needed. `caller` is
    /// who asks, for the record of the refresh.
    pub async fn access_token(
        &self,
        handle: Handle,
        scopes: &[String],
        force_refresh: bool,
        caller: &str,
    ) -> Result<Granted, SessionsError> {
        let since = Instant::now();
        let session = self.keeper.load(handle).await?;
        let ask = Ask {
            scopes,
            force_refresh,
            margin_ms: self.limits.token_expiry_margin_ms,
        };
        match decide(&session, ask, self.keeper.now_ms()) {
            Decision::Serve(access) => {
                self.refresh_ahead(&session, caller);
                Ok(Granted {
                    access,
                    scope: session.tokens.scope,
                })
            }
            Decision::Refuse(refusal) => Err(SessionsError::Refused(refusal)),
            Decision::Refresh => {
                let asking = Asking { caller, since };
                self.renewed(session, scopes, force_refresh, asking).await
            }
        }
    }

    /// Has tokens refreshed in the background that will soon count as expired.
    pub(super) fn refresh_ahead(&self, session: &Session, caller: &str) {
        if self.refresh_is_due(session) {
            self.renew.refresh_later(session.clone(), caller);
        }
    }

    /// Whether tokens will so soon count as expired that they are refreshed ahead.
    pub(super) fn refresh_is_due(&self, session: &Session) -> bool {
        let (margin_ms, ahead_ms) = (self.limits.token_expiry_margin_ms, self.limits.refresh_ahead_ms);
        is_due_ahead(session, margin_ms, ahead_ms, self.keeper.now_ms())
    }

    async fn renewed(
        &self,
        seen: Session,
        scopes: &[String],
        forced: bool,
        asking: Asking<'_>,
    ) -> Result<Granted, SessionsError> {
        match self.renew.refreshed(seen.clone(), asking).await {
            // Served as it came, however short it lives: asking again would give another just as short.
            Ok(session) => granted(session, scopes),
            Err(error @ (RenewError::ProviderUnavailable | RenewError::StoreUnavailable)) if !forced => {
                let access = still_good(&seen, self.keeper.now_ms()).ok_or(error)?;
                Ok(Granted {
                    access,
                    scope: seen.tokens.scope,
                })
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The token of a refreshed session, if its scope, which the provider may have narrowed, still suffices.
fn granted(session: Session, scopes: &[String]) -> Result<Granted, SessionsError> {
    let missing: Vec<String> = session
        .tokens
        .scope
        .missing(scopes)
        .into_iter()
        .map(str::to_owned)
        .collect();
    if !missing.is_empty() {
        return Err(SessionsError::Refused(Refusal::InsufficientScope(missing)));
    }
    let access = session
        .tokens
        .access
        .ok_or(SessionsError::Refused(Refusal::MissingAccessToken))?;
    Ok(Granted {
        access,
        scope: session.tokens.scope,
    })
}
