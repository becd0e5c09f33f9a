//! Sessions that a refresh moved to another session of the provider (`sid` of the refreshed ID token).
//!
//! A logout that names the new `sid` may be handled after the provider gave it and before it is saved: it finds no
//! session by it and leaves a mark. So whoever saves another `sid` looks for that mark afterwards (OpenID Connect
//! Back-Channel Logout 1.0, section 2.7).

use tokio::time::{Instant, sleep};

use super::Refresher;
use super::flight::refresh_error;
use super::validation::{ENDING_PAUSE, MAX_ENDING};
use crate::session::{Cause, Session};
use crate::sessions::ports::TokenRefreshError;

impl Refresher {
    /// Gives a session that was saved with another `sid`, or ends it if that `sid` was logged out since the tokens were
    /// received.
    pub(super) async fn unless_logged_out(
        &self,
        session: Session,
        received_ms: u64,
    ) -> Result<Session, TokenRefreshError> {
        let Some(sid) = session.provider_sid.as_deref() else {
            return Ok(session);
        };
        let deadline = Instant::now() + MAX_ENDING;
        let ended = loop {
            let found = self
                .keeper
                .sid_ended_since(&session.issuer, &session.subject, sid, received_ms)
                .await;
            match found.map_err(refresh_error) {
                Ok(ended) => break ended,
                Err(TokenRefreshError::StoreUnavailable | TokenRefreshError::UnknownKey(_))
                    if Instant::now() < deadline =>
                {
                    sleep(ENDING_PAUSE).await
                }
                Err(error) => return Err(error),
            }
        };
        if !ended {
            return Ok(session);
        }
        tracing::info!(session = %session.handle, "the provider ended the session a refresh moved to");
        self.remove(&session, Cause::BackChannelLogout).await?;
        // Access while nobody is there is what offline tokens are for (Back-Channel Logout, section 2.7).
        if !session.tokens.scope.is_offline() {
            let tokens = session.tokens.revocable(self.keeper.now_ms());
            self.revoke_in_background(&session.issuer, tokens);
        }
        Err(TokenRefreshError::Missing)
    }
}
