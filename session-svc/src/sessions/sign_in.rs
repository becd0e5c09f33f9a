//! Claiming a sign-in, so that its authorization code is redeemed once over all replicas of its callers (RFC
//! 6749, section 4.1.2: a code used twice may revoke all tokens issued for it).
//!
//! An attempt draws the ID of the new session and stores it under the request ID, where `create` finds it.
//! That ID then shows the outcome: the session exists, ended early, or is still in progress.
//!
//! Invariants: of all attempts at a sign-in one proceeds. If its holder dies, the sign-in is used up: the
//! code may have been redeemed. Only callers that called during the sign-in receive the session.

use std::time::Duration;

use aws_lc_rs::digest;
use tokio::time::{Instant, sleep};

use super::create::FINGERPRINT_BYTES;
use super::{CreatedSession, OfflineTokens, Sessions, SessionsError};
use crate::session::id::ID_BYTES;
use crate::session::{Cause, SessionId};
use crate::session_store::REQUEST_KEPT_MS;
use crate::store::StoreError;

/// How long an attempt may take: more than token request, keys, userinfo and creation together.
const UNDER_WAY_MS: u64 = 60_000;

/// How long one call waits for the outcome: a part of a caller's deadline. Then the caller calls again.
const WAIT: Duration = Duration::from_secs(1);

/// Pause between two reads.
const PAUSE: Duration = Duration::from_millis(20);

/// How long an attempt is stored at most: a day, more than any sign-in is pending.
const KEPT_MAX: Duration = Duration::from_secs(86_400);

/// Separates hashes of holders from all other hashes.
const HOLDER_CONTEXT: &[u8] = b"vestibule sign-in holder v1";

/// A caller's attempt at a sign-in.
#[derive(Clone, Debug)]
pub(crate) struct SignInAttempt {
    /// Identifies the sign-in.
    pub request_id: String,
    /// Identifies the caller that wants to proceed.
    pub holder: String,
    /// How long the sign-in could be completed; `None` for the time a request is stored.
    pub(crate) valid_for: Option<Duration>,
    /// Whether an earlier call of this caller was answered with `Pending`.
    pub waiting: bool,
}

/// The outcome of an attempt.
#[derive(Debug)]
pub(crate) enum BeginSignInOutcome {
    /// The caller proceeds with the sign-in.
    Begun,
    /// Another attempt is in progress.
    Pending,
    /// Another attempt finished it while this call waited.
    Created(Box<CreatedSession>),
    /// The sign-in is used up.
    Failed,
}

/// The stored reservation of a request: the session's ID, who may create it, and when the sign-in began.
pub(super) struct Reservation {
    pub(super) id: SessionId,
    /// The request's fingerprint, or the hash of the holder.
    pub(super) by: [u8; FINGERPRINT_BYTES],
    /// When a sign-in began, in milliseconds since the Unix epoch; `None` for a request without an attempt.
    pub(super) began_at_ms: Option<u64>,
}

impl Reservation {
    pub(super) fn new(id: SessionId, by: [u8; FINGERPRINT_BYTES], began_at_ms: Option<u64>) -> Self {
        Self { id, by, began_at_ms }
    }

    pub(super) fn to_note(&self) -> Vec<u8> {
        let mut note = self.id.as_bytes().to_vec();
        note.extend_from_slice(&self.by);
        note.extend(self.began_at_ms.into_iter().flat_map(u64::to_be_bytes));
        note
    }

    pub(super) fn from_note(note: &[u8]) -> Option<Self> {
        let (id, rest) = note.split_first_chunk::<ID_BYTES>()?;
        let (by, rest) = rest.split_first_chunk::<FINGERPRINT_BYTES>()?;
        let began_at_ms = rest.first_chunk().map(|at| u64::from_be_bytes(*at));
        Some(Self::new(SessionId::from_bytes(*id), *by, began_at_ms))
    }
}

/// The hash that identifies a holder.
pub(crate) fn holder_hash(holder: &str) -> [u8; FINGERPRINT_BYTES] {
    fingerprint(&[HOLDER_CONTEXT, holder.as_bytes()].concat())
}

/// The SHA-256 hash of a text.
pub(crate) fn fingerprint(text: &[u8]) -> [u8; FINGERPRINT_BYTES] {
    let hash = digest::digest(&digest::SHA256, text);
    hash.as_ref().first_chunk().copied().unwrap_or_default()
}

impl Sessions {
    /// The store's clock, in milliseconds since the Unix epoch.
    pub(crate) fn now_ms(&self) -> u64 {
        self.session_store.now_ms()
    }

    /// Claims a sign-in, or waits a moment for the outcome of another attempt.
    pub(crate) async fn begin_sign_in(
        &self,
        attempt: &SignInAttempt,
    ) -> Result<BeginSignInOutcome, SessionsError> {
        let by = holder_hash(&attempt.holder);
        let ours = Reservation::new(self.random_id()?, by, Some(self.session_store.now_ms()));
        let kept = attempt
            .valid_for
            .map_or(Duration::from_millis(REQUEST_KEPT_MS), |valid_for| {
                valid_for.clamp(Duration::from_millis(REQUEST_KEPT_MS), KEPT_MAX)
            });
        let Some(theirs) = self.reserve(&attempt.request_id, &ours, kept).await? else {
            return Ok(BeginSignInOutcome::Begun);
        };
        if theirs.by == by {
            // Our own earlier call, whose answer was lost.
            return Ok(BeginSignInOutcome::Begun);
        }
        self.outcome(theirs, attempt.waiting).await
    }

    /// Waits a moment for the session of another attempt.
    async fn outcome(
        &self,
        theirs: Reservation,
        mut waiting: bool,
    ) -> Result<BeginSignInOutcome, SessionsError> {
        let handle = theirs.id.handle();
        let until = Instant::now() + WAIT;
        loop {
            match self.session_store.load(handle).await {
                Ok(session) if waiting => {
                    return Ok(BeginSignInOutcome::Created(Box::new(CreatedSession {
                        id: theirs.id,
                        session,
                    })));
                }
                Ok(_) => return Ok(BeginSignInOutcome::Failed),
                Err(SessionsError::Missing) => {}
                Err(error) => return Err(error),
            }
            let is_under_way = theirs.began_at_ms.is_some_and(|began_at_ms| {
                self.session_store.now_ms() < began_at_ms.saturating_add(UNDER_WAY_MS)
            });
            if !is_under_way || self.session_store.has_early_end_mark(handle).await? {
                return Ok(BeginSignInOutcome::Failed);
            }
            waiting = true;
            if Instant::now() >= until {
                return Ok(BeginSignInOutcome::Pending);
            }
            sleep(PAUSE).await;
        }
    }

    /// Abandons a sign-in: its session ends, whether created already or later. A caller that is not the
    /// holder changes nothing.
    pub(crate) async fn abandon_sign_in(&self, attempt: &SignInAttempt) -> Result<(), SessionsError> {
        let by = holder_hash(&attempt.holder);
        let ours = Reservation::new(self.random_id()?, by, Some(self.session_store.now_ms()));
        let kept = Duration::from_millis(REQUEST_KEPT_MS);
        // An attempt that never reached the store is used up as well.
        let reserved = match self.reserve(&attempt.request_id, &ours, kept).await? {
            Some(reserved) if reserved.by != by => return Ok(()),
            Some(reserved) => reserved,
            None => ours,
        };
        let handle = reserved.id.handle();
        let marked = self.session_store.mark_early_end(handle).await;
        self.end(handle, None, Cause::Abandoned, OfflineTokens::Revoke)
            .await?;
        match marked {
            Err(SessionsError::Store(StoreError::Full)) => {
                self.session_store.mark_early_end_later(handle, Cause::Abandoned);
                Ok(())
            }
            marked => marked,
        }
    }
}
