//! Ending sessions.
//!
//! Invariants: an ended session is gone before the call is answered; what its tokens are worth at the provider is noted
//! before and revoked later; an ending also reaches a session that is just being created (see `endings`). Ending needs
//! neither reading nor capacity: what cannot be read is removed, and what a full store does not take is written later.

use chassis::secret::Secret;
use tokio::time::Instant;

use super::once::FirstUse;
use super::ports::{RevocationNote, SessionEnding};
use super::{Sessions, SessionsError};
use crate::keeper::listed::PAGE_BYTES;
use crate::keeper::{FoundSession, Removed, Shown};
use crate::session::index::Whose;
use crate::session::{Cause, Handle, Name, Session};

/// Sessions read at once when many are ended.
const PAGE: usize = 100;

/// How far apart the store's time may be as two replicas know it, in milliseconds: a round trip to the store.
pub(super) const REPLICAS_APART_MS: u64 = 20;

/// What ended.
#[derive(Debug, Default)]
pub struct EndOutcome {
    /// Whether there was a session to end.
    pub ended: bool,
    /// Its ID token, for the holder of the secret ID alone.
    pub id_token_hint: Option<Secret<String>>,
    /// The provider it was made with, for the same holder.
    pub issuer: Option<String>,
}

/// Which sessions to end.
#[derive(Clone, Debug)]
pub struct EndAll {
    /// Issuer identifier of the provider.
    pub issuer: String,
    /// Sessions of this person.
    pub subject: Option<String>,
    /// Sessions of this session of the provider.
    pub provider_sid: Option<String>,
    /// A session to leave alone.
    pub except: Option<Handle>,
    /// Why.
    pub cause: Cause,
    /// What becomes of refresh tokens that were granted offline.
    pub offline_tokens: OfflineTokens,
    /// Whether sessions that are just being created are left alone, and nothing is written where there is nothing to end.
    pub existing_only: bool,
    /// What is good for one such ending.
    pub once: Option<Once>,
    /// How long ago the caller received the order to end them, in milliseconds: sessions that began since are left
    /// alone. `None` ends all there are.
    pub told_ago_ms: Option<u64>,
    /// Until when the caller waits, if it says so.
    pub answer_by: Option<Instant>,
}

impl EndAll {
    /// The list they are in; `None` if nobody is named.
    fn whose(&self) -> Option<Whose<'_>> {
        match (&self.provider_sid, &self.subject) {
            (Some(sid), _) => Some(Whose::ProviderSession(&self.issuer, sid)),
            (None, Some(subject)) => Some(Whose::Person(&self.issuer, subject)),
            (None, None) => None,
        }
    }
}

/// Something that ends sessions once: what proves it is worth nothing afterwards.
#[derive(Clone, Debug)]
pub struct Once {
    /// Its name at the issuer.
    pub id: String,
    /// When it may be forgotten, in milliseconds since the Unix epoch.
    pub until_ms: u64,
    /// The call it came with: the same one again is no second use.
    pub request_id: Option<String>,
}

/// What becomes of the refresh token of a session with the scope `offline_access` when the session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfflineTokens {
    /// It stays good at the provider: access while nobody is there is what it was granted for (Back-Channel Logout 1.0,
    /// section 2.7).
    Keep,
    /// It is revoked like any other.
    TakeBack,
}

impl OfflineTokens {
    /// As the caller chooses.
    #[must_use]
    pub(crate) fn kept_if(keep: bool) -> Self {
        if keep { Self::Keep } else { Self::TakeBack }
    }
}

/// Since when sessions are to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndingTime {
    /// When, in milliseconds since the Unix epoch by the store's clock.
    pub(super) at_ms: u64,
    /// Whether sessions that began since end as well.
    pub(super) ends_since: bool,
}

impl EndingTime {
    fn concerns(&self, begun_at_ms: u64) -> bool {
        self.ends_since || begun_at_ms <= self.at_ms.saturating_add(REPLICAS_APART_MS)
    }
}

/// What became of one session that was to end.
#[derive(Debug)]
enum EndingResult {
    /// It ended, as it was last.
    Session(Box<Session>),
    /// It ended unread.
    Unread,
    /// There was none.
    Nothing,
}

impl Sessions {
    /// Ends a session for whoever holds its secret ID; gives the hint for the provider's own sign-out.
    pub async fn end_for_holder(
        &self,
        handle: Handle,
        cause: Cause,
        offline_tokens: OfflineTokens,
    ) -> Result<EndOutcome, SessionsError> {
        let gone = self.end_one(handle, cause, offline_tokens).await?;
        self.confirm(&[handle]).await?;
        Ok(match gone {
            EndingResult::Session(session) => EndOutcome {
                ended: true,
                id_token_hint: session.tokens.id_token.map(|token| token.text()),
                issuer: Some(session.issuer),
            },
            EndingResult::Unread => EndOutcome {
                ended: true,
                ..EndOutcome::default()
            },
            EndingResult::Nothing => EndOutcome::default(),
        })
    }

    /// Ends the session of a handle.
    pub(crate) async fn end_by_handle(
        &self,
        handle: Handle,
        cause: Cause,
        offline_tokens: OfflineTokens,
    ) -> Result<EndOutcome, SessionsError> {
        let ended = self.end_handle(handle, cause, offline_tokens).await?;
        self.confirm(&[handle]).await?;
        Ok(EndOutcome {
            ended,
            ..EndOutcome::default()
        })
    }

    /// Fails if sessions that ended, without handles any of them, might be back after a failover. Also asked where there was nothing to
    /// end: the call may repeat one that failed here. False if the store does not ask for it.
    pub(super) async fn confirm(&self, handles: &[Handle]) -> Result<bool, SessionsError> {
        let names: Vec<Name> = handles.iter().map(Handle::name).collect();
        Ok(self.keeper.store().confirm_removed(&names).await?)
    }

    /// Confirms what ended of one page of a list. True if the list has to be read once more after its last page: where nothing ended, as
    /// where a call repeats one that was not confirmed, the master of now may have what the one of then had no more.
    pub(super) async fn confirm_page(
        &self,
        ended: &[Handle],
        is_last: bool,
        is_confirmed: &mut bool,
    ) -> Result<bool, SessionsError> {
        if ended.is_empty() && (*is_confirmed || !is_last) {
            return Ok(false);
        }
        *is_confirmed = true;
        let is_asked_for = self.confirm(ended).await?;
        Ok(is_asked_for && ended.is_empty())
    }

    /// Ends all sessions that match; gives how many. A provider session of somebody else than the person named is a
    /// malformed request that ends nothing (Back-Channel Logout, section 2.6: both have to identify the same session).
    ///
    /// What is good once counts as used when the work is done: a call that failed before can be repeated, and one whose
    /// use could not be noted has failed.
    pub async fn end_all(&self, all: &EndAll) -> Result<u32, SessionsError> {
        let told_ago_ms = all.told_ago_ms.unwrap_or_default();
        let ending = EndingTime {
            at_ms: self.keeper.now_ms().saturating_sub(told_ago_ms),
            ends_since: all.told_ago_ms.is_none(),
        };
        let Some(once) = &all.once else {
            return self.end_since(all, ending).await;
        };
        let ending = match self.first_use(&all.issuer, once, ending).await? {
            FirstUse::End(ending) => ending,
            FirstUse::Done => return Ok(0),
            FirstUse::Used => return Err(SessionsError::RequestIdReused),
        };
        let count = self.end_since(all, ending).await?;
        self.note_use(&all.issuer, once, all.answer_by).await?;
        Ok(count)
    }

    /// Ends sessions that began before the ending. A mark that cannot be written holds nothing up.
    async fn end_since(&self, all: &EndAll, ending: EndingTime) -> Result<u32, SessionsError> {
        self.refuse_strangers(all).await?;
        let marked = self.leave_mark(all, ending).await;
        let count = self.end_listed(all, ending).await?;
        match marked {
            Ok(()) => Ok(count),
            Err(SessionsError::Full) => {
                self.mark_later(all, ending);
                Ok(count)
            }
            Err(error) => Err(error),
        }
    }

    /// Fails if person and provider session do not belong together.
    async fn refuse_strangers(&self, all: &EndAll) -> Result<(), SessionsError> {
        let (Some(subject), Some(sid)) = (&all.subject, &all.provider_sid) else {
            return Ok(());
        };
        let whose = Whose::ProviderSession(&all.issuer, sid);
        let _permit = self.ending_permit().await?;
        let (listed, _) = self
            .keeper
            .list(whose, None, PAGE, &mut PAGE_BYTES.clone())
            .await?;
        if listed.iter().any(|one| !one.shown.is_of(&all.issuer, subject)) {
            return Err(SessionsError::Invalid {
                field: "provider_sid",
                problem: "belongs to another subject",
            });
        }
        Ok(())
    }

    async fn leave_mark(&self, all: &EndAll, ending: EndingTime) -> Result<(), SessionsError> {
        if all.existing_only {
            return Ok(());
        }
        if let Some(whose) = all.whose() {
            let marked = self
                .keeper
                .mark_ended(whose.index(), all.subject.as_deref(), ending.at_ms);
            marked.await?;
        }
        Ok(())
    }

    /// Writes a mark that a full store refused as soon as the store has space, for as long as it would be kept, and
    /// ends what began meanwhile.
    fn mark_later(&self, all: &EndAll, ending: EndingTime) {
        let (sessions, all) = (self.clone(), all.clone());
        let ending = EndingTime {
            ends_since: false,
            ..ending
        };
        self.keeper.make_up("the mark of an ending", move || {
            let (sessions, all) = (sessions.clone(), all.clone());
            async move {
                sessions.leave_mark(&all, ending).await?;
                sessions.end_listed(&all, ending).await.map(|_count| ())
            }
        });
    }

    async fn end_listed(&self, all: &EndAll, ending: EndingTime) -> Result<u32, SessionsError> {
        let Some(whose) = all.whose() else {
            return Ok(0);
        };
        let concerned = |one: &Shown| {
            Some(one.handle()) != all.except
                && ending.concerns(one.created_at_ms())
                && all
                    .subject
                    .as_ref()
                    .is_none_or(|subject| one.is_of(&all.issuer, subject))
        };
        let mut after = None;
        let mut count: u32 = 0;
        let mut is_confirmed = false;
        loop {
            // Nothing is held from one part to the next: what began or ended meanwhile, and a call that is repeated,
            // change nothing.
            let _permit = self.ending_permit().await?;
            let (listed, next) = self
                .keeper
                .list(whose, after.as_ref(), PAGE, &mut PAGE_BYTES.clone())
                .await?;
            let mut handles = Vec::new();
            for one in listed.into_iter().map(|one| one.shown).filter(concerned) {
                handles.push(one.handle());
                let gone = self.end_found(one, all.cause, all.offline_tokens).await?;
                count = count.saturating_add(u32::from(!matches!(gone, EndingResult::Nothing)));
            }
            let reads_again = self
                .confirm_page(&handles, next.is_none(), &mut is_confirmed)
                .await?;
            after = next;
            if after.is_none() && !reads_again {
                return Ok(count);
            }
        }
    }

    /// Ends one session and takes its refresh token back, unless it is to outlive the session; true if there was one.
    pub(super) async fn end_handle(
        &self,
        handle: Handle,
        cause: Cause,
        offline_tokens: OfflineTokens,
    ) -> Result<bool, SessionsError> {
        let gone = self.end_one(handle, cause, offline_tokens).await?;
        Ok(!matches!(gone, EndingResult::Nothing))
    }

    async fn end_one(
        &self,
        handle: Handle,
        cause: Cause,
        offline_tokens: OfflineTokens,
    ) -> Result<EndingResult, SessionsError> {
        match self.keeper.find(handle).await? {
            FoundSession::Session(session) => {
                self.end_found(Shown::Session(session), cause, offline_tokens)
                    .await
            }
            FoundSession::Unreadable => self.remove(handle, None, cause).await,
            FoundSession::Nothing => Ok(EndingResult::Nothing),
        }
    }

    /// Ends what a list shows, as `end_handle` does.
    pub(super) async fn end_shown(
        &self,
        one: Shown,
        cause: Cause,
        offline_tokens: OfflineTokens,
    ) -> Result<bool, SessionsError> {
        let gone = self.end_found(one, cause, offline_tokens).await?;
        Ok(!matches!(gone, EndingResult::Nothing))
    }

    async fn end_found(
        &self,
        one: Shown,
        cause: Cause,
        offline_tokens: OfflineTokens,
    ) -> Result<EndingResult, SessionsError> {
        let session = match one {
            Shown::Session(session) => session,
            Shown::Unreadable { handle, .. } => return self.remove(handle, None, cause).await,
        };
        let is_taken_back = offline_tokens == OfflineTokens::TakeBack || !session.tokens.scope.is_offline();
        let ending = SessionEnding {
            session: &session,
            cause,
            replaced_by: None,
        };
        self.remove_and_revoke(ending, is_taken_back).await
    }

    /// Ends the session that this new one replaces. Its tokens are revoked only if it was somebody else's:
    /// with it providers take back the whole grant (RFC 7009, section 2.1), which a person who signs in again in the same
    /// browser may share with the session before.
    pub(super) async fn end_replaced(&self, handle: Handle, by: &Session) -> Result<(), SessionsError> {
        match self.keeper.find(handle).await? {
            FoundSession::Session(old) => {
                let is_taken_back = (&old.issuer, &old.subject) != (&by.issuer, &by.subject);
                let ending = SessionEnding {
                    session: &old,
                    cause: Cause::Replaced,
                    replaced_by: Some(by),
                };
                self.remove_and_revoke(ending, is_taken_back).await?;
            }
            FoundSession::Unreadable => drop(self.remove(handle, None, Cause::Replaced).await?),
            FoundSession::Nothing => {}
        }
        Ok(())
    }

    /// Removes a session; what is to be revoked, and who is to be told, is noted before, so that it is done whatever becomes of
    /// this process or of the store's answer.
    async fn remove_and_revoke(
        &self,
        ending: SessionEnding<'_>,
        is_taken_back: bool,
    ) -> Result<EndingResult, SessionsError> {
        let (seen, cause) = (ending.session, ending.cause);
        let now_ms = self.keeper.now_ms();
        let is_valid = seen.is_valid(self.keeper.lifetime(), now_ms);
        let telling = async {
            if let Some(signals) = self.signals.as_ref().filter(|_| is_valid) {
                signals.note_ending(ending).await;
            }
        };
        let noting = async {
            if !is_taken_back || !is_valid {
                return None;
            }
            let tokens = seen.tokens.revocable(now_ms);
            if tokens.is_empty() {
                return None;
            }
            Some(self.revocation.note_revocation(seen, tokens).await)
        };
        let (note, (), ()) = tokio::join!(noting, self.keeper.mark_young(seen, cause), telling);
        let gone = self.remove(seen.handle, Some(seen), cause).await?;
        if let Some(signals) = &self.signals {
            signals.wake();
        }
        if let Some(note) = note {
            // A grant may have come between. Where somebody else was faster both take the tokens back, which does no harm.
            let last = match &gone {
                EndingResult::Session(last) => last.tokens.revocable(self.keeper.now_ms()),
                EndingResult::Unread | EndingResult::Nothing => Vec::new(),
            };
            let tokens = if last.is_empty() { note.tokens } else { last };
            self.revocation.revoke_later(RevocationNote { tokens, ..note });
        }
        Ok(gone)
    }

    /// Takes back the tokens of a session that ended before it was there: whoever ended it may have found nothing.
    pub(super) async fn take_back(&self, session: &Session) {
        let tokens = session.tokens.revocable(self.keeper.now_ms());
        if !tokens.is_empty() {
            let note = self.revocation.note_revocation(session, tokens).await;
            self.revocation.revoke_later(note);
        }
    }

    async fn remove(
        &self,
        handle: Handle,
        seen: Option<&Session>,
        cause: Cause,
    ) -> Result<EndingResult, SessionsError> {
        Ok(match self.keeper.remove_seen(handle, seen, cause).await? {
            Removed::Session(session) => EndingResult::Session(session),
            Removed::Unreadable => EndingResult::Unread,
            Removed::Expired | Removed::Nothing => EndingResult::Nothing,
        })
    }
}
