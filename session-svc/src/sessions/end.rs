//! Ending sessions.
//!
//! Invariants: an ended session is gone before anybody is told; what its tokens are worth at the provider is taken
//! back later; an ending also reaches a session that is just being created (see `endings`).

use chassis::secret::Secret;

use super::keeper::Removed;
use super::listed::{PAGE_BYTES, Shown};
use super::once::Turn;
use super::{Sessions, SessionsError};
use crate::session::index::Whose;
use crate::session::{Handle, Session};

/// Sessions read at once when many are ended.
const PAGE: usize = 100;

/// How far apart the store's time may be as two replicas know it, in milliseconds: a round trip to the store.
const CLOCKS_APART_MS: u64 = 20;

/// What ended.
#[derive(Debug, Default)]
pub struct Ended {
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
    pub cause: String,
    /// What becomes of refresh tokens that were granted offline.
    pub offline_tokens: OfflineTokens,
    /// Whether sessions that are just being created are left alone, and nothing is written where there is nothing to end.
    pub existing_only: bool,
    /// What is good for one such ending.
    pub once: Option<Once>,
    /// How long ago the caller was told to end them, in milliseconds: sessions that began since are left alone. `None` ends
    /// all there are.
    pub told_ago_ms: Option<u64>,
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
    /// It stays good at the provider: access while nobody is there is what it was granted for (Back-Channel Logout 1.0, section 2.7).
    Keep,
    /// It is taken back like any other.
    TakeBack,
}

impl OfflineTokens {
    /// As a caller asks for.
    #[must_use]
    pub fn kept_if(keep: bool) -> Self {
        if keep { Self::Keep } else { Self::TakeBack }
    }
}

impl Sessions {
    /// Ends a session for whoever holds its secret ID; gives the hint for the provider's own sign-out.
    pub async fn end_for_holder(
        &self,
        handle: Handle,
        cause: &str,
        offline_tokens: OfflineTokens,
    ) -> Result<Ended, SessionsError> {
        let session = self.end_handle(handle, cause, offline_tokens).await?;
        Ok(session
            .map(|session| Ended {
                ended: true,
                id_token_hint: session.tokens.id_token.map(|token| token.text()),
                issuer: Some(session.issuer),
            })
            .unwrap_or_default())
    }

    /// Ends the session of a handle.
    pub async fn end_by_handle(
        &self,
        handle: Handle,
        cause: &str,
        offline_tokens: OfflineTokens,
    ) -> Result<Ended, SessionsError> {
        let session = self.end_handle(handle, cause, offline_tokens).await?;
        Ok(Ended {
            ended: session.is_some(),
            id_token_hint: None,
            issuer: None,
        })
    }

    /// Ends all sessions asked for; tells how many. A provider session of somebody else than the person named is a
    /// malformed wish that ends nothing (Back-Channel Logout, section 2.6: both have to identify the same session).
    ///
    /// What is good once counts as used when the work is done: a call that failed on the way can be repeated, and one whose
    /// use could not be noted has failed.
    pub async fn end_all(&self, all: &EndAll) -> Result<u32, SessionsError> {
        let now_ms = self.keeper.now_ms();
        let told_at_ms = now_ms.saturating_sub(all.told_ago_ms.unwrap_or_default());
        let Some(once) = &all.once else {
            return self.end_each(all, told_at_ms).await;
        };
        let holder = self.random_id()?.handle().to_string();
        let turn = match self.keeper.turn(&all.issuer, once, &holder).await? {
            Turn::Ours(turn) => turn,
            Turn::Done => return Ok(0),
            Turn::Used => return Err(SessionsError::RequestIdReused),
        };
        let ended = match self.end_each(all, told_at_ms).await {
            Ok(count) => self.keeper.note_use(&all.issuer, once).await.map(|()| count),
            Err(error) => Err(error),
        };
        self.keeper.give_back(&turn).await;
        ended
    }

    async fn end_each(&self, all: &EndAll, told_at_ms: u64) -> Result<u32, SessionsError> {
        let (subject, sid) = (all.subject.as_deref(), all.provider_sid.as_deref());
        let whose = match (sid, subject) {
            (Some(sid), _) => Whose::ProviderSession(&all.issuer, sid),
            (None, Some(subject)) => Whose::Person(&all.issuer, subject),
            (None, None) => return Ok(0),
        };
        if let (Some(_), Some(subject)) = (sid, subject) {
            let (sessions, _) = self
                .keeper
                .list(whose, None, PAGE, &mut PAGE_BYTES.clone())
                .await?;
            if sessions
                .iter()
                .any(|listed| !listed.shown.is_of(&all.issuer, subject))
            {
                return Err(SessionsError::Invalid {
                    field: "provider_sid",
                    problem: "belongs to another subject",
                });
            }
        }
        if !all.existing_only {
            self.keeper
                .mark_ended(&all.issuer, subject, sid, told_at_ms)
                .await?;
        }
        let last_begun_ms = match all.told_ago_ms {
            Some(_) => told_at_ms.saturating_add(CLOCKS_APART_MS),
            None => u64::MAX,
        };
        let concerned = |shown: &Shown| {
            Some(shown.handle()) != all.except
                && shown.created_at_ms() <= last_begun_ms
                && subject.is_none_or(|subject| shown.is_of(&all.issuer, subject))
        };
        let mut after = None;
        let mut count: u32 = 0;
        loop {
            // Nothing is held from one part to the next: what began or ended meanwhile, and a call that is repeated, change nothing.
            let (sessions, next) = self
                .keeper
                .list(whose, after.as_ref(), PAGE, &mut PAGE_BYTES.clone())
                .await?;
            for listed in sessions.iter().filter(|listed| concerned(&listed.shown)) {
                let ended = self.end_handle(listed.shown.handle(), &all.cause, all.offline_tokens);
                if ended.await?.is_some() {
                    count = count.saturating_add(1);
                }
            }
            after = next;
            if after.is_none() {
                return Ok(count);
            }
        }
    }

    /// Ends one session and takes its refresh token back, unless it is to outlive the session; gives it as it was last.
    pub(super) async fn end_handle(
        &self,
        handle: Handle,
        cause: &str,
        offline_tokens: OfflineTokens,
    ) -> Result<Option<Session>, SessionsError> {
        let ended = self.remove_handle(handle, cause).await?;
        if let Some(session) = &ended
            && (offline_tokens == OfflineTokens::TakeBack || !session.tokens.scope.is_offline())
        {
            self.take_back(session);
        }
        Ok(ended)
    }

    /// Ends the session that this new one takes the place of. Its refresh token is taken back only if it was somebody else's:
    /// with it providers take back the whole grant (RFC 7009, section 2.1), which a person who signs in again in the same
    /// browser may share with the session before.
    pub(super) async fn end_replaced(&self, handle: Handle, by: &Session) -> Result<(), SessionsError> {
        if let Some(old) = self.remove_handle(handle, "replaced").await?
            && (&old.issuer, &old.subject) != (&by.issuer, &by.subject)
        {
            self.take_back(&old);
        }
        Ok(())
    }

    fn take_back(&self, session: &Session) {
        if let Some(refresh_token) = &session.tokens.refresh {
            self.renew.revoke_later(&session.issuer, refresh_token.text());
        }
    }

    async fn remove_handle(&self, handle: Handle, cause: &str) -> Result<Option<Session>, SessionsError> {
        match self.keeper.load(handle).await {
            Ok(session) => self.keeper.mark_young(&session).await?,
            // Removed below all the same: an unreadable record must not outlive the wish to end it.
            Err(SessionsError::Missing | SessionsError::Unreadable(_)) => {}
            Err(error) => return Err(error),
        }
        match self.keeper.remove(handle, cause).await? {
            Removed::Session(session) => Ok(Some(*session)),
            Removed::Expired | Removed::Unreadable | Removed::Nothing => Ok(None),
        }
    }
}
