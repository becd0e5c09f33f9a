//! Claiming a sign-in, so that its authorization code is redeemed once over all replicas of whoever redeems codes
//! (RFC 6749, section 4.1.2: a code that comes twice may cost all tokens that were given for it).
//!
//! An attempt draws the ID of the session to come and remembers it under the request's name, where `create` finds it. What became
//! of the sign-in is then seen by that ID: the session is there, or it ended young, or neither and somebody is at it.
//!
//! Invariants: of all attempts at a sign-in one goes on; who dies with it has used it up, for nobody knows whether the code was
//! redeemed. The session is given to those alone who called while the sign-in was under way.

use std::time::Duration;

use ring::digest;
use tokio::time::{Instant, sleep};

use super::create::FINGERPRINT_BYTES;
use super::{Created, OfflineTokens, Sessions, SessionsError};
use crate::keeper::REQUEST_KEPT_MS;
use crate::session::id::ID_BYTES;
use crate::session::{Cause, SessionId};
use crate::store::StoreError;

/// How long an attempt may be worked on: more than token request, keys, userinfo and creation take together.
const UNDER_WAY_MS: u64 = 60_000;

/// How long one call waits for the outcome: a part of a caller's deadline, and it calls again.
const WAIT: Duration = Duration::from_secs(1);

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// How long an attempt is remembered at most: a day, more than any sign-in is pending.
const KEPT_MAX: Duration = Duration::from_secs(86_400);

/// Keeps holders apart from every other hash.
const HOLDER_CONTEXT: &[u8] = b"vestibule sign-in holder v1";

/// Who would go on with which sign-in.
#[derive(Clone, Debug)]
pub(crate) struct SignInAttempt {
    /// Names the sign-in.
    pub request_id: String,
    /// Names the one that would go on.
    pub holder: String,
    /// How long the sign-in could be finished; `None` for the time a request is remembered.
    pub(crate) valid_for: Option<Duration>,
    /// Whether an earlier call was answered that another one goes on with it.
    pub waiting: bool,
}

/// What an attempt comes to.
#[derive(Debug)]
pub(crate) enum BeginSignInOutcome {
    /// The sign-in is this one's.
    Begun,
    /// Somebody else is at it.
    Pending,
    /// Somebody else finished it while this one waited.
    Created(Box<Created>),
    /// It is used up.
    Failed,
}

/// What is remembered of a request: the session's ID, who may create it, and since when somebody is at it.
pub(super) struct Reserved {
    pub(super) id: SessionId,
    /// The request's fingerprint, or the hash of the holder.
    pub(super) by: [u8; FINGERPRINT_BYTES],
    /// When a sign-in began, in milliseconds since the Unix epoch; `None` for a request without an attempt.
    pub(super) began_at_ms: Option<u64>,
}

impl Reserved {
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

/// The hash that stands for a holder.
pub(crate) fn holder_hash(holder: &str) -> [u8; FINGERPRINT_BYTES] {
    fingerprint(&[HOLDER_CONTEXT, holder.as_bytes()].concat())
}

/// The hash that stands for a text.
pub(crate) fn fingerprint(text: &[u8]) -> [u8; FINGERPRINT_BYTES] {
    let hash = digest::digest(&digest::SHA256, text);
    hash.as_ref().first_chunk().copied().unwrap_or_default()
}

impl Sessions {
    /// The store's clock, in milliseconds since the Unix epoch.
    pub(crate) fn now_ms(&self) -> u64 {
        self.keeper.now_ms()
    }

    /// Claims a sign-in, or waits a moment for what becomes of it.
    pub(crate) async fn begin_sign_in(
        &self,
        attempt: &SignInAttempt,
    ) -> Result<BeginSignInOutcome, SessionsError> {
        let by = holder_hash(&attempt.holder);
        let ours = Reserved::new(self.random_id()?, by, Some(self.keeper.now_ms()));
        let kept = attempt
            .valid_for
            .map_or(Duration::from_millis(REQUEST_KEPT_MS), |valid_for| {
                valid_for.clamp(Duration::from_millis(REQUEST_KEPT_MS), KEPT_MAX)
            });
        let Some(theirs) = self.reserve(&attempt.request_id, &ours, kept).await? else {
            return Ok(BeginSignInOutcome::Begun);
        };
        if theirs.by == by {
            // Our own call, whose answer was lost.
            return Ok(BeginSignInOutcome::Begun);
        }
        self.outcome(theirs, attempt.waiting).await
    }

    /// Waits a moment for the session of another attempt.
    async fn outcome(
        &self,
        theirs: Reserved,
        mut waiting: bool,
    ) -> Result<BeginSignInOutcome, SessionsError> {
        let handle = theirs.id.handle();
        let until = Instant::now() + WAIT;
        loop {
            match self.keeper.load(handle).await {
                Ok(session) if waiting => {
                    return Ok(BeginSignInOutcome::Created(Box::new(Created {
                        id: theirs.id,
                        session,
                    })));
                }
                Ok(_) => return Ok(BeginSignInOutcome::Failed),
                Err(SessionsError::Missing) => {}
                Err(error) => return Err(error),
            }
            let is_under_way = theirs
                .began_at_ms
                .is_some_and(|began_at_ms| self.keeper.now_ms() < began_at_ms.saturating_add(UNDER_WAY_MS));
            if !is_under_way || self.keeper.ended_young(handle).await? {
                return Ok(BeginSignInOutcome::Failed);
            }
            waiting = true;
            if Instant::now() >= until {
                return Ok(BeginSignInOutcome::Pending);
            }
            sleep(PAUSE).await;
        }
    }

    /// Gives a sign-in up: its session ends, whether it was created already or still is to be. Nothing happens to one that is not the
    /// holder's.
    pub(crate) async fn abandon_sign_in(&self, attempt: &SignInAttempt) -> Result<(), SessionsError> {
        let by = holder_hash(&attempt.holder);
        let ours = Reserved::new(self.random_id()?, by, Some(self.keeper.now_ms()));
        let kept = Duration::from_millis(REQUEST_KEPT_MS);
        // An attempt that never came here is used up all the same.
        let reserved = match self.reserve(&attempt.request_id, &ours, kept).await? {
            Some(reserved) if reserved.by != by => return Ok(()),
            Some(reserved) => reserved,
            None => ours,
        };
        let handle = reserved.id.handle();
        let marked = self.keeper.mark_ended_young(handle).await;
        self.end(handle, None, Cause::Abandoned, OfflineTokens::TakeBack)
            .await?;
        match marked {
            Err(SessionsError::Store(StoreError::Full)) => {
                self.keeper.mark_young_later(handle, Cause::Abandoned);
                Ok(())
            }
            marked => marked,
        }
    }
}
