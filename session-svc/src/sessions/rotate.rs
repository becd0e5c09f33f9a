//! Rotating the cookie of a session, and ending the session if a copy of the cookie is used.

use super::{OfflineTokens, Sessions, SessionsError};
use crate::session::change::ChangeKind;
use crate::session::cookie_generation::GenerationVerdict;
use crate::session::{Cause, CookieGeneration, Handle, ReceivedGeneration, Session};
use crate::store::StoreError;

impl Sessions {
    /// Checks the received generation of a session's cookie. A newly valid generation is stored. A copied
    /// cookie ends the session, and the call returns `Missing`.
    pub(crate) async fn rotate_cookie(
        &self,
        handle: Handle,
        shown: &ReceivedGeneration,
        grace_ms: u64,
    ) -> Result<Session, SessionsError> {
        let session = self.session_store.load(handle).await?;
        let now_ms = self.session_store.now_ms();
        let mut is_copy = false;
        let edit = |session: &mut Session| {
            let first = || CookieGeneration::first(session.created_at_ms);
            let counts = session.cookie_generation.clone().unwrap_or_else(first);
            let judged = counts.judge(shown, now_ms, grace_ms);
            is_copy = judged == GenerationVerdict::Copy;
            match judged {
                GenerationVerdict::Good | GenerationVerdict::Copy => false,
                GenerationVerdict::First(next) => {
                    session.cookie_generation = Some(next);
                    true
                }
            }
        };
        let edited = self
            .session_store
            .edit(session.clone(), ChangeKind::Changed, None, edit)
            .await;
        let session = match edited {
            Ok((session, _)) => session,
            // A full store locks out no user: a later use stores the generation.
            Err(SessionsError::Store(StoreError::Full)) => {
                tracing::warn!(session = %handle, "the store is full: the newest cookie of a session is not recorded");
                return Ok(session);
            }
            Err(error) => return Err(error),
        };
        if !is_copy {
            return Ok(session);
        }
        tracing::warn!(session = %handle, "a copy of a session's cookie was used: the session ends");
        if let Err(error) = self
            .session_store
            .note_theft(&session.issuer, &session.subject)
            .await
        {
            tracing::warn!(session = %handle, error = &error as &dyn std::error::Error, "a theft could not be noted: the user is not told");
        }
        self.end_session(handle, Cause::Theft, OfflineTokens::Revoke)
            .await?;
        Err(SessionsError::Missing)
    }
}
