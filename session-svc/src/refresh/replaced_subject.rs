//! An access token that the provider does not take for an exchange, though it has not expired: revoked there, or forgotten.
//!
//! Invariant: who calls again and again costs no refresh each time: where the token of such a refresh is not taken either, there is
//! none for [`PAUSE`].

use std::time::Duration;

use super::Refresher;
use crate::session::{Name, Session, SessionState, index};
use crate::sessions::ports::{TokenRefresh as _, TokenRefreshError, WaitingCaller};
use crate::store::RememberedName;

/// Separates these names from all others.
const REPLACED: &str = "replaced subject token";

/// How long it is remembered which token was replaced, by all replicas: where exchanges fail for another reason, this bounds the
/// refreshes to one a minute.
const PAUSE: Duration = Duration::from_secs(60);

impl Refresher {
    /// The session with another access token than the one seen.
    ///
    /// # Errors
    /// [`TokenRefreshError::SubjectRefused`] where there is none that could help; whatever keeps a refresh from succeeding.
    pub(super) async fn replace_subject(
        &self,
        seen: &Session,
        waiting_caller: WaitingCaller<'_>,
    ) -> Result<Session, TokenRefreshError> {
        if seen.state == SessionState::NeedsSignIn {
            return Err(TokenRefreshError::Refused);
        }
        if seen.tokens.refresh.is_none() {
            return Err(TokenRefreshError::SubjectRefused);
        }
        let generation = seen.tokens.access_generation().to_be_bytes();
        let store = self.keeper.store();
        let remembered = store.remember(name_of(seen), &generation, PAUSE).await;
        match remembered.map_err(|_| TokenRefreshError::StoreUnavailable)? {
            Some(replaced) if replaced != generation => Err(TokenRefreshError::SubjectRefused),
            // All who saw this token wait for one refresh.
            Some(_) | None => self.refresh(seen.clone(), waiting_caller).await,
        }
    }
}

fn name_of(session: &Session) -> RememberedName {
    let name: Name = index::hashed(&[REPLACED.as_bytes(), session.handle.as_bytes()]);
    RememberedName::Named(name)
}
