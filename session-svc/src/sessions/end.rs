//! Ending sessions.
//!
//! Invariants: an ended session is removed before the call is answered; its tokens are noted before and
//! revoked later. An ending also reaches a session that is just being created (see `endings`). Ending needs
//! no read and no free space: unreadable records are removed, and writes to a full store are retried.

use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::permits::permit;
use super::{Sessions, SessionsError};
use crate::session::change::SessionEnding;
use crate::session::index::IndexKey;
use crate::session::{Cause, Handle, Session};
use crate::session_store::listed::PAGE_BYTES;
use crate::session_store::{ListedSession, Removal};
use crate::store::{IndexEntry, StoreError};

/// Sessions read at once when many are ended.
const PAGE: usize = 100;

/// How far the store's time may differ between two replicas, in milliseconds: one round trip to the store.
pub(super) const REPLICAS_APART_MS: u64 = 20;

/// Which sessions to end.
#[derive(Clone, Debug)]
pub struct EndAll {
    /// Issuer identifier of the provider.
    pub issuer: String,
    /// Sessions of this person.
    pub subject: Option<String>,
    /// Sessions of this session of the provider.
    pub provider_sid: Option<String>,
    /// All sessions of the issuer, if neither is named.
    pub everyone: bool,
    /// A session to leave alone.
    pub except: Option<Handle>,
    /// The cause to report.
    pub cause: Cause,
    /// What happens to refresh tokens with offline access.
    pub offline_tokens: OfflineTokens,
    /// Skips sessions that are just being created, and writes nothing if there is nothing to end.
    pub existing_only: bool,
    /// The single-use token that orders this ending.
    pub once: Option<SingleUseOrder>,
    /// How long ago the caller received the order, in ms: sessions created since then stay. `None` ends all.
    pub order_age_ms: Option<u64>,
    /// How long the caller waits, if known.
    pub answer_by: Option<Instant>,
}

impl EndAll {
    /// The list to end; `None` if the order names no person and no provider session.
    fn index_key(&self) -> Option<IndexKey<'_>> {
        match (&self.provider_sid, &self.subject) {
            (Some(sid), _) => Some(IndexKey::ProviderSession(&self.issuer, sid)),
            (None, Some(subject)) => Some(IndexKey::Person(&self.issuer, subject)),
            (None, None) if self.everyone => Some(IndexKey::Provider(&self.issuer)),
            (None, None) => None,
        }
    }
}

/// A single-use order to end sessions, such as a logout token.
#[derive(Clone, Debug)]
pub struct SingleUseOrder {
    /// Its identifier at the issuer.
    pub id: String,
    /// When its note may be removed, in milliseconds since the Unix epoch.
    pub until_ms: u64,
    /// The request that carries it: the same request again is not a second use.
    pub request_id: Option<String>,
}

/// What happens to the refresh token of a session with the scope `offline_access` when the session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfflineTokens {
    /// It stays valid at the provider: it was granted for access without the user (Back-Channel Logout 1.0,
    /// section 2.7).
    Keep,
    /// It is revoked like any other.
    Revoke,
}

impl OfflineTokens {
    /// The caller's choice.
    #[must_use]
    pub(crate) fn kept_if(keep: bool) -> Self {
        if keep { Self::Keep } else { Self::Revoke }
    }
}

/// Which sessions end, by time.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndingTime {
    /// The time of the ending, in milliseconds since the Unix epoch by the store's clock.
    pub(super) at_ms: u64,
    /// Whether sessions created after that time end as well.
    pub(super) ends_since: bool,
}

impl EndingTime {
    fn concerns(&self, begun_at_ms: u64) -> bool {
        self.ends_since || begun_at_ms <= self.at_ms.saturating_add(REPLICAS_APART_MS)
    }
}

/// Pages of a list whose sessions end.
pub(super) struct EndingPages<'a> {
    sessions: &'a Sessions,
    index_key: IndexKey<'a>,
    after: Option<IndexEntry>,
    is_over: bool,
    is_confirmed: bool,
}

impl EndingPages<'_> {
    /// Returns the next page, with a permit to hold it in memory. No state is kept between pages, so
    /// concurrent changes and repeated calls do no harm.
    pub(super) async fn next(
        &mut self,
    ) -> Result<Option<(OwnedSemaphorePermit, Vec<ListedSession>)>, SessionsError> {
        if self.is_over {
            return Ok(None);
        }
        let permit = permit(&self.sessions.endings).await?;
        let session_store = &self.sessions.session_store;
        let (listed, next) = session_store
            .list(self.index_key, self.after.as_ref(), PAGE, &mut PAGE_BYTES.clone())
            .await?;
        self.is_over = next.is_none();
        self.after = next;
        Ok(Some((permit, listed)))
    }

    /// Confirms the endings of a page. If nothing ended, for example in a repeated call, confirms once after
    /// the last page: a new master may have records that the former one had removed.
    pub(super) async fn confirm(&mut self, ended: &[Handle]) -> Result<(), SessionsError> {
        if ended.is_empty() && (self.is_confirmed || !self.is_over) {
            return Ok(());
        }
        self.is_confirmed = true;
        if self.sessions.confirm(ended).await? && ended.is_empty() {
            self.is_over = false;
        }
        Ok(())
    }
}

impl Sessions {
    /// Ends the session of a handle, and confirms it to the caller.
    pub async fn end_session(
        &self,
        handle: Handle,
        cause: Cause,
        offline_tokens: OfflineTokens,
    ) -> Result<Removal, SessionsError> {
        let ended = self.end(handle, None, cause, offline_tokens).await?;
        self.confirm(&[handle]).await?;
        Ok(ended)
    }

    pub(super) fn ending_pages<'a>(&'a self, index_key: IndexKey<'a>) -> EndingPages<'a> {
        EndingPages {
            sessions: self,
            index_key,
            after: None,
            is_over: false,
            is_confirmed: false,
        }
    }

    /// Fails if a failover might restore these ended sessions; without handles, any. Also needed when nothing
    /// ended: the call may repeat one that failed here. False if the store needs no confirmation.
    pub(super) async fn confirm(&self, handles: &[Handle]) -> Result<bool, SessionsError> {
        Ok(self.session_store.store().confirm_removed(handles).await?)
    }

    /// Ends all matching sessions and returns their number. A provider session of another person than the
    /// named one is a malformed request and ends nothing (Back-Channel Logout, section 2.6: both identify the
    /// same session).
    ///
    /// A single-use order counts as used after the work is done. A failed call can be repeated. A call that
    /// cannot note the use fails.
    pub async fn end_all(&self, all: &EndAll) -> Result<u32, SessionsError> {
        let order_age_ms = all.order_age_ms.unwrap_or_default();
        let ending = EndingTime {
            at_ms: self.session_store.now_ms().saturating_sub(order_age_ms),
            ends_since: all.order_age_ms.is_none(),
        };
        let Some(once) = &all.once else {
            return self.end_since(all, ending).await;
        };
        let using = self.begin_use(&all.issuer, once, ending)?;
        let Some(ending) = self.first_use(&using, ending).await? else {
            return Ok(0);
        };
        let count = self.end_since(all, ending).await?;
        self.record_logout_token_use(using, all.answer_by).await?;
        Ok(count)
    }

    /// Ends sessions created before the ending. A failure to write the mark delays nothing.
    async fn end_since(&self, all: &EndAll, ending: EndingTime) -> Result<u32, SessionsError> {
        self.check_subject_matches_sid(all).await?;
        let marked = self.leave_mark(all, ending).await;
        let count = self.end_listed(all, ending).await?;
        match marked {
            Ok(()) => Ok(count),
            Err(SessionsError::Store(StoreError::Full)) => {
                self.mark_later(all, ending);
                Ok(count)
            }
            Err(error) => Err(error),
        }
    }

    /// Fails if the person and the provider session do not belong together.
    async fn check_subject_matches_sid(&self, all: &EndAll) -> Result<(), SessionsError> {
        let (Some(subject), Some(sid)) = (&all.subject, &all.provider_sid) else {
            return Ok(());
        };
        let index_key = IndexKey::ProviderSession(&all.issuer, sid);
        let _permit = permit(&self.endings).await?;
        let (listed, _) = self
            .session_store
            .list(index_key, None, PAGE, &mut PAGE_BYTES.clone())
            .await?;
        if listed.iter().any(|one| !one.is_of(&all.issuer, subject)) {
            return Err(SessionsError::Invalid {
                field: "provider_sid",
                problem: "belongs to another subject",
            });
        }
        Ok(())
    }

    pub(super) async fn leave_mark(&self, all: &EndAll, ending: EndingTime) -> Result<(), SessionsError> {
        if let (Some(index_key), false) = (all.index_key(), all.existing_only) {
            let marked =
                self.session_store
                    .mark_ended(index_key.index(), all.subject.as_deref(), ending.at_ms);
            marked.await?;
        }
        Ok(())
    }

    /// Retries a mark that a full store rejected, until the mark would have expired. Then ends the sessions
    /// created meanwhile.
    pub(super) fn mark_later(&self, all: &EndAll, ending: EndingTime) {
        let context = (self.clone(), all.clone());
        let ending = EndingTime {
            ends_since: false,
            ..ending
        };
        let end = move |(sessions, all): (Self, EndAll)| async move {
            sessions.leave_mark(&all, ending).await?;
            sessions.end_listed(&all, ending).await.map(|_count| ())
        };
        self.session_store
            .retry_later("the mark of an ending", context, end);
    }

    async fn end_listed(&self, all: &EndAll, ending: EndingTime) -> Result<u32, SessionsError> {
        let Some(index_key) = all.index_key() else {
            return Ok(0);
        };
        let concerned = |one: &ListedSession| {
            Some(one.handle()) != all.except
                && ending.concerns(one.created_at_ms())
                && all
                    .subject
                    .as_ref()
                    .is_none_or(|subject| one.is_of(&all.issuer, subject))
        };
        let mut count: u32 = 0;
        let mut pages = self.ending_pages(index_key);
        while let Some((_permit, page)) = pages.next().await? {
            let mut handles = Vec::new();
            for one in page.into_iter().filter(concerned) {
                handles.push(one.handle());
                let ended = self.end_seen(&one, None, all.cause, all.offline_tokens).await?;
                count = count.saturating_add(u32::from(ended.is_ended()));
            }
            pages.confirm(&handles).await?;
        }
        Ok(count)
    }

    /// Ends the session of a handle, optionally because another one replaces it.
    pub(super) async fn end(
        &self,
        handle: Handle,
        replaced_by: Option<&Session>,
        cause: Cause,
        offline_tokens: OfflineTokens,
    ) -> Result<Removal, SessionsError> {
        match self.session_store.find(handle).await? {
            Some(seen) => self.end_seen(&seen, replaced_by, cause, offline_tokens).await,
            None => Ok(Removal::Nothing),
        }
    }

    /// Ends one session and revokes its tokens, unless they must outlive it. A replaced session's tokens are
    /// revoked only if it was another person's: providers revoke the whole grant with a token (RFC 7009,
    /// section 2.1), which may also back the new session.
    pub(super) async fn end_seen(
        &self,
        seen: &ListedSession,
        replaced_by: Option<&Session>,
        cause: Cause,
        offline_tokens: OfflineTokens,
    ) -> Result<Removal, SessionsError> {
        let Some(session) = seen.session() else {
            return self.session_store.remove_seen(seen.handle(), None, cause).await;
        };
        let revokes = match replaced_by {
            Some(by) => (&session.issuer, &session.subject) != (&by.issuer, &by.subject),
            None => offline_tokens == OfflineTokens::Revoke || !session.tokens.scope.is_offline(),
        };
        let now_ms = self.now_ms();
        let tokens = if revokes && session.is_valid(self.lifetime(), now_ms) {
            session.tokens.revocable(now_ms)
        } else {
            Vec::new()
        };
        let ending = SessionEnding {
            session,
            cause,
            replaced_by,
        };
        self.refresher
            .end(&self.session_store, ending, tokens, Duration::ZERO)
            .await
    }
}
