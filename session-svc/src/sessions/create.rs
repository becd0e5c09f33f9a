//! Creating a session.
//!
//! Invariants
//! - A session begins when its tokens were received. Any ending after that time ends it too.
//! - One request ID creates one session, however often and on however many replicas it is repeated.
//! - The session it replaces, and a person's sessions above the limit, end only after it is stored.

use std::time::Duration;

use super::sign_in::Reservation;
use super::{OfflineTokens, Sessions, SessionsError};
use crate::session::change::ChangeKind;
use crate::session::{Cause, Session, SessionId, SessionValues, index};
use crate::session_store::REQUEST_KEPT_MS;
use crate::session_store::endings::MARK_KEPT_MS;
use crate::session_store::notices::PendingNotices;
use crate::session_store::sealed_notes::REQUEST;
use crate::store::Inserted;

/// Oldest time of receipt accepted. All marks since then are still stored, with a margin for the creation's
/// writes.
const RECEIVED_AGO_MAX_MS: u64 = MARK_KEPT_MS - 20_000;

/// Largest size of a sealed session. Claims with 200 groups (the limit of Microsoft Entra ID), three tokens
/// of 8 KiB and some API tokens fit. The sessions of one person cannot fill a store.
pub const SESSION_BYTES_MAX: usize = 64 * 1024;

/// Size of a request's hash, in bytes.
pub(crate) const FINGERPRINT_BYTES: usize = 32;

/// A session to create.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its values, without the times of its creation.
    pub values: SessionValues,
    /// The session that this one replaces.
    pub replaces: Option<SessionId>,
    /// The request's ID, and a hash of the request or of the holder of a claim.
    pub request: Option<(String, [u8; FINGERPRINT_BYTES])>,
    /// When the tokens were received: the session begins then. With `None` it begins now. A logout then ends
    /// it if it arrived after the sign-in was claimed, or, without a claim, during the creation.
    pub received_at_ms: Option<u64>,
}

/// A created session.
#[derive(Debug)]
pub struct CreatedSession {
    /// Its secret ID.
    pub id: SessionId,
    /// The session.
    pub session: Session,
}

impl NewSession {
    fn judge_times(&self, now_ms: u64) -> Result<(), SessionsError> {
        let invalid = |field, problem| Err(SessionsError::Invalid { field, problem });
        if self
            .values
            .not_after_ms
            .is_some_and(|not_after_ms| not_after_ms <= now_ms)
        {
            return invalid("not_after", "lies in the past");
        }
        let oldest_ms = now_ms.saturating_sub(RECEIVED_AGO_MAX_MS);
        let is_too_old = |received_at_ms: u64| received_at_ms < oldest_ms;
        if self.received_at_ms.is_some_and(is_too_old) {
            return invalid("tokens_received_at", "is too far in the past");
        }
        Ok(())
    }
}

impl Sessions {
    /// Creates a session.
    pub async fn create(&self, new: NewSession) -> Result<CreatedSession, SessionsError> {
        let arrived_ms = self.session_store.now_ms();
        new.judge_times(arrived_ms)?;
        let SessionValues { issuer, subject, .. } = &new.values;
        let sid = new.values.provider_sid.as_deref().into_iter();
        let lists = self
            .session_store
            .future_session_lists(issuer, subject, sid, &new.values.user);
        let before = async {
            match new.received_at_ms {
                Some(_) => Ok(None),
                None => self.session_store.marks(&lists).await.map(Some),
            }
        };
        let notices = self.session_store.pending_notices(issuer, subject);
        let reserved = self.find_or_reserve(new.request.as_ref());
        let (before, notices, reserved) = tokio::join!(before, notices, reserved);
        let (before, reserved) = (before?, reserved?);
        // A failed read of notices must not block the sign-in.
        let notices = notices.unwrap_or_else(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "notices for the user could not be read"
            );
            PendingNotices::default()
        });
        let began_at_ms = reserved.as_ref().and_then(|reserved| reserved.began_at_ms);
        let is_reserved = reserved.is_some();
        let id = match reserved {
            Some(reserved) => reserved.id,
            None => self.random_id()?,
        };
        let session = self.begin(&id, &new, &notices);
        let session = self.insert(session, is_reserved).await?;
        // Checks the session's own mark: it may appear during the write, which can take two steps.
        let has_early_end_mark =
            async { Ok(is_reserved && self.session_store.has_early_end_mark(session.handle).await?) };
        // Since the claim of the sign-in, or else the request's arrival: the provider's clock differs from
        // ours.
        let since_ms = new
            .received_at_ms
            .or(began_at_ms)
            .unwrap_or(arrived_ms.saturating_add(1));
        let (has_early_end_mark, after) =
            tokio::try_join!(has_early_end_mark, self.session_store.marks(&lists))?;
        let mut after = after.iter().flatten();
        let ended = after.any(|mark| mark.ends(subject, since_ms, before.as_deref()));
        let ended = match (has_early_end_mark, ended) {
            (true, _) => Some((Cause::Replaced, OfflineTokens::Revoke)),
            (false, true) => Some((Cause::BackChannelLogout, OfflineTokens::Keep)),
            (false, false) => None,
        };
        if let Some((cause, offline_tokens)) = ended {
            self.end(session.handle, None, cause, offline_tokens).await?;
            return Err(SessionsError::Missing);
        }
        let session = self.with_unmet_demand(session).await?;
        if let Some(replaced) = new
            .replaces
            .as_ref()
            .map(SessionId::handle)
            .filter(|old| *old != session.handle)
        {
            self.end(replaced, Some(&session), Cause::Replaced, OfflineTokens::Revoke)
                .await?;
        }
        if let Err(error) = self
            .session_store
            .confirm_notices(issuer, subject, &notices)
            .await
        {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(session = %session.handle, error, "the next sign-in shows a notice once more");
        }
        // The session exists already: on an error the caller would create another one, again and again.
        if let Err(error) = self.keep_limit(&session).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(session = %session.handle, error, "the session limit is not enforced until the user's next sign-in");
        }
        Ok(CreatedSession { id, session })
    }

    /// Returns the session with the sign-in demand that it does not meet, if any. Fails if demands cannot be
    /// read: otherwise the session could bypass one.
    async fn with_unmet_demand(&self, session: Session) -> Result<Session, SessionsError> {
        if !self.has_demands {
            return Ok(session);
        }
        let Some(unmet) = self.session_store.unmet_demand(&session).await? else {
            return Ok(session);
        };
        let add_demand = |session: &mut Session| session.add_sign_in_demand(&unmet);
        let (session, _) = self
            .session_store
            .edit(session, ChangeKind::Changed, None, add_demand)
            .await?;
        Ok(session)
    }

    /// Returns the reservation of a request: the earlier one, or a new one that is stored.
    async fn find_or_reserve(
        &self,
        request: Option<&(String, [u8; FINGERPRINT_BYTES])>,
    ) -> Result<Option<Reservation>, SessionsError> {
        let Some((request_id, fingerprint)) = request else {
            return Ok(None);
        };
        let ours = Reservation::new(self.random_id()?, *fingerprint, None);
        let kept = Duration::from_millis(REQUEST_KEPT_MS);
        match self.reserve(request_id, &ours, kept).await? {
            None => Ok(Some(ours)),
            Some(before) if before.by == *fingerprint => Ok(Some(before)),
            Some(_) => Err(SessionsError::RequestIdReused),
        }
    }

    /// Stores the reservation of a request; returns an earlier one instead.
    pub(super) async fn reserve(
        &self,
        request_id: &str,
        reserved: &Reservation,
        kept: Duration,
    ) -> Result<Option<Reservation>, SessionsError> {
        let name = index::hashed(&[REQUEST.as_bytes(), request_id.as_bytes()]);
        let sealed = self
            .session_store
            .vault()
            .seal_note(REQUEST, name, &reserved.to_note())?;
        let Some(before) = self.session_store.store().remember(name, &sealed, kept).await? else {
            return Ok(None);
        };
        let note = self.session_store.vault().open_note(REQUEST, name, &before)?;
        Reservation::from_note(&note)
            .map(Some)
            .ok_or(SessionsError::Internal)
    }

    /// Inserts a session, without its ID token if it is too large with it. If the request may be repeated,
    /// returns the session of an earlier call, and fails if that session has ended.
    async fn insert(&self, mut session: Session, may_be_repeated: bool) -> Result<Session, SessionsError> {
        let max_bytes = self.limits.max_bytes;
        let inserted = match self
            .session_store
            .insert(&session, max_bytes, may_be_repeated)
            .await
        {
            // The ID token repeats the claims; otherwise it serves only as the hint at sign-out.
            Err(SessionsError::TooLarge { .. }) if session.tokens.id_token.take().is_some() => {
                tracing::warn!(
                    session = %session.handle,
                    "the session is too large with its ID token and is kept without it"
                );
                self.session_store
                    .insert(&session, max_bytes, may_be_repeated)
                    .await?
            }
            inserted => inserted?,
        };
        match inserted {
            Inserted::Done => Ok(session),
            Inserted::Taken if may_be_repeated => self.session_store.load(session.handle).await,
            // 128 random bits do not repeat.
            Inserted::Taken => Err(SessionsError::Internal),
            Inserted::Barred => {
                self.refresher.revoke_tokens(&session).await;
                Err(SessionsError::Missing)
            }
        }
    }

    pub(super) fn random_id(&self) -> Result<SessionId, SessionsError> {
        Ok(SessionId::random(&self.random)?)
    }

    fn begin(&self, id: &SessionId, new: &NewSession, notices: &PendingNotices) -> Session {
        let now_ms = self.session_store.now_ms();
        let mut values = new.values.clone();
        values.created_at_ms = new.received_at_ms.map_or(now_ms, |at_ms| at_ms.min(now_ms));
        values.rolled_at_ms = now_ms;
        values.created_on.at_ms = now_ms;
        values.last_seen_on = values.created_on.clone();
        values.theft_at_ms = notices.theft_at_ms;
        values.operator_notice.clone_from(&notices.operator);
        Session::new(id.handle(), values)
    }
}
