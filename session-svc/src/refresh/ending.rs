//! The ending of one session: follow-up work is noted before the removal, and done after it.
//!
//! Invariant: revocations and events are completed even if this process dies or a store answer is lost.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Refresher;
use super::flight::refresh_error;
use super::ports::TokenRefreshError;
use crate::error::SessionsError;
use crate::session::change::SessionEnding;
use crate::session::{Cause, RevocableToken, Session, index};
use crate::session_store::{Removal, SessionStore};

/// How long to retry the ending of a session while the store is unavailable.
const MAX_ENDING: Duration = Duration::from_secs(30);

/// Pause between two tries to end one.
const ENDING_PAUSE: Duration = Duration::from_millis(100);

impl Refresher {
    /// Ends a session that was just read from `session_store`, and revokes these tokens. Retries the removal for
    /// `tried_for` while the store is unavailable.
    pub(crate) async fn end(
        &self,
        session_store: &SessionStore,
        ending: SessionEnding<'_>,
        tokens: Vec<RevocableToken>,
        tried_for: Duration,
    ) -> Result<Removal, SessionsError> {
        let SessionEnding { session, cause, .. } = ending;
        let now_ms = session_store.now_ms();
        let is_valid = session.is_valid(session_store.lifetime(), now_ms);
        let note_signal = async {
            if let Some(signals) = self.signals.as_ref().filter(|_| is_valid) {
                signals.note_ending(ending).await;
            }
        };
        let note_revocation = self.note(session_store, &session.issuer, tokens, Some(session.handle));
        let mark = session_store.mark_if_recent(session, cause);
        let (note, (), ()) = tokio::join!(note_revocation, mark, note_signal);
        let remove = || session_store.remove_seen(session.handle, Some(session), cause);
        let removed = retry(tried_for, remove).await?;
        if let Some(signals) = &self.signals {
            signals.wake();
        }
        if let Some((name, mut note)) = note {
            // A refresh may have changed the tokens since the read. Revoking the same tokens twice does no harm.
            if let Removal::Session(last) = &removed {
                let seen = session.tokens.revocable(now_ms);
                let last = last.tokens.revocable(now_ms).into_iter();
                note.tokens.extend(last.filter(|token| !seen.contains(token)));
            }
            self.revoke_later(name, note);
        }
        Ok(removed)
    }

    /// Ends a session with long retries: tokens granted to another user must not stay.
    pub(super) async fn end_at_last(
        &self,
        session: &Session,
        cause: Cause,
        tokens: Vec<RevocableToken>,
    ) -> Result<(), TokenRefreshError> {
        let ending = SessionEnding {
            session,
            cause,
            replaced_by: None,
        };
        let removed = self.end(&self.session_store, ending, tokens, MAX_ENDING).await;
        removed.map(|_removed| ()).map_err(refresh_error)
    }

    /// Returns a session that was saved with another `sid`. Ends it if that `sid` was logged out since the
    /// tokens were received. Such a logout finds no session by the new `sid` and leaves a mark (OpenID
    /// Connect Back-Channel Logout 1.0, section 2.7).
    pub(super) async fn unless_logged_out(
        &self,
        session: Session,
        received_ms: u64,
    ) -> Result<Session, TokenRefreshError> {
        let Some(sid) = session.provider_sid.as_deref() else {
            return Ok(session);
        };
        let lists = [index::by_provider_sid(&session.issuer, sid)];
        let is_ended = || {
            self.session_store
                .ended_since(&lists, &session.subject, received_ms)
        };
        if !retry(MAX_ENDING, is_ended).await.map_err(refresh_error)? {
            return Ok(session);
        }
        tracing::info!(session = %session.handle, "the provider ended the session a refresh moved to");
        // Offline tokens are for access without the user (Back-Channel Logout, section 2.7).
        let tokens = if session.tokens.scope.is_offline() {
            Vec::new()
        } else {
            session.tokens.revocable(self.session_store.now_ms())
        };
        self.end_at_last(&session, Cause::BackChannelLogout, tokens)
            .await?;
        Err(TokenRefreshError::Missing)
    }

    /// Revokes the tokens of a session that ended before it was stored: the ending may have found no record.
    pub(crate) async fn revoke_tokens(&self, session: &Session) {
        let tokens = session.tokens.revocable(self.session_store.now_ms());
        let note = self.note(&self.session_store, &session.issuer, tokens, Some(session.handle));
        if let Some((name, note)) = note.await {
            self.revoke_later(name, note);
        }
    }

    /// Notes and revokes tokens, if there are any, in a separate task.
    pub(super) fn revoke_in_background(&self, issuer: &str, tokens: Vec<RevocableToken>) {
        let (refresher, issuer) = (self.clone(), issuer.to_owned());
        self.work.spawn(async move {
            if let Some((name, note)) = refresher
                .note(&refresher.session_store, &issuer, tokens, None)
                .await
            {
                refresher.revoke_and_forget(name, note).await;
            }
        });
    }
}

/// Retries the work while the store is unavailable.
async fn retry<T, W>(tried_for: Duration, work: impl Fn() -> W) -> Result<T, SessionsError>
where
    W: Future<Output = Result<T, SessionsError>>,
{
    let deadline = Instant::now() + tried_for;
    loop {
        match work().await {
            Err(error) if error.may_pass() && Instant::now() < deadline => sleep(ENDING_PAUSE).await,
            outcome => return outcome,
        }
    }
}
