//! Single-use orders: logout tokens, security events and revocation requests.
//!
//! One note in the store records the first arrival, and the request that used the order.
//!
//! Invariants: of all calls with one order, over all replicas, one succeeds. The others fail as reuse after
//! its endings are done. No call waits for another: all end the same sessions, those created before the first
//! arrival, so it does not matter which call removes them. A failed call does not use the order.

use std::time::Duration;

use prost::Message as _;
use tokio::time::{Instant, sleep, timeout_at};

use super::end::{EndingTime, SingleUseOrder};
use super::{Sessions, SessionsError};
use crate::session::{Name, index};
use crate::session_store::SealError;
use crate::session_store::endings::MARK_KEPT_MS;
use crate::session_store::sealed_notes::ONCE;
use crate::store::{Record, StoreError};

/// How long a use is remembered at most: a day, more than the lifetime of any logout token.
const KEPT_MAX_MS: u64 = 86_400_000;

/// How long to retry the note of a use for a caller without a deadline.
const SETTLE: Duration = Duration::from_secs(5);

/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// The stored note of a single-use order.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SingleUseNote {
    /// When it arrived first, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "1")]
    pub(super) arrived_at_ms: u64,
    /// The request that used it; empty while it is unused.
    #[prost(string, tag = "2")]
    pub(super) used_by: String,
}

/// A use of a single-use order.
#[derive(Clone)]
pub(super) struct SingleUse {
    pub(super) name: Name,
    /// The note to store after the use.
    pub(super) note: SingleUseNote,
    pub(super) kept_ms: u64,
}

impl Sessions {
    /// Uses an order for one request: `RequestIdReused` if another request used it. A full store remembers no
    /// use, and prevents no ending.
    pub(crate) async fn use_once(&self, issuer: &str, once: &SingleUseOrder) -> Result<(), SessionsError> {
        let ending = EndingTime {
            at_ms: self.session_store.now_ms(),
            ends_since: false,
        };
        let using = self.begin_use(issuer, once, ending)?;
        match self.write_once(&using, true).await {
            Err(SessionsError::Store(StoreError::Full)) => Ok(()),
            used => used,
        }
    }

    /// The use of `once` by the current request.
    pub(super) fn begin_use(
        &self,
        issuer: &str,
        once: &SingleUseOrder,
        ending: EndingTime,
    ) -> Result<SingleUse, SessionsError> {
        let used_by = match &once.request_id {
            Some(request_id) => request_id.clone(),
            None => self.random_id()?.handle().to_string(),
        };
        let left_ms = once.until_ms.saturating_sub(self.session_store.now_ms());
        Ok(SingleUse {
            name: index::hashed(&[b"once", issuer.as_bytes(), once.id.as_bytes()]),
            note: SingleUseNote {
                arrived_at_ms: ending.at_ms,
                used_by,
            },
            kept_ms: left_ms.clamp(MARK_KEPT_MS, KEPT_MAX_MS),
        })
    }

    /// Returns which sessions this request ends: those created before the first arrival of the order. `None`
    /// if this request has used it, `RequestIdReused` if another one has.
    pub(super) async fn first_use(
        &self,
        using: &SingleUse,
        ending: EndingTime,
    ) -> Result<Option<EndingTime>, SessionsError> {
        let known = self.note_arrival(using.name, ending.at_ms, using.kept_ms).await;
        match known.inspect_err(|_| self.note_later(using, false))? {
            None => Ok(Some(ending)),
            Some(known) if known.used_by.is_empty() => Ok(Some(EndingTime {
                at_ms: known.arrived_at_ms.min(ending.at_ms),
                ends_since: false,
            })),
            Some(known) if known.used_by == using.note.used_by => Ok(None),
            Some(_) => Err(SessionsError::RequestIdReused),
        }
    }

    /// Notes the arrival time; returns the earlier note if there is one. A full store rejects the note, and
    /// the work continues without it.
    pub(super) async fn note_arrival(
        &self,
        name: Name,
        arrived_at_ms: u64,
        kept_ms: u64,
    ) -> Result<Option<SingleUseNote>, SessionsError> {
        let note = SingleUseNote {
            arrived_at_ms,
            used_by: String::new(),
        };
        let note = note.encode_to_vec();
        match self
            .session_store
            .write_note(ONCE, name, &note, kept_ms, |_| None)
            .await
        {
            Err(SessionsError::Store(StoreError::Full)) => Ok(None),
            known => Ok(known?.map(|record| self.open_once(&record)).transpose()?),
        }
    }

    /// Reads the note of a single-use order; `None` if it never arrived.
    pub(super) async fn once_note(&self, name: Name) -> Result<Option<SingleUseNote>, SessionsError> {
        let record = self.session_store.store().load(name).await?;
        Ok(record.map(|record| self.open_once(&record)).transpose()?)
    }

    fn open_once(&self, record: &Record) -> Result<SingleUseNote, SealError> {
        let note = self
            .session_store
            .vault()
            .open_note(ONCE, record.name, &record.payload)?;
        SingleUseNote::decode(note.as_slice()).map_err(|error| SealError::Malformed(error.into()))
    }

    /// Notes the use: `RequestIdReused` if another request used the order first. If the store is full, the
    /// note is written later. A caller that received an error may use the order again.
    pub(super) async fn record_logout_token_use(
        &self,
        using: SingleUse,
        answer_by: Option<Instant>,
    ) -> Result<(), SessionsError> {
        let until = answer_by.unwrap_or_else(|| Instant::now() + SETTLE);
        let noted = async {
            loop {
                match self.write_once(&using, true).await {
                    Err(SessionsError::Store(StoreError::Unavailable(_))) => sleep(PAUSE).await,
                    noted => return noted,
                }
            }
        };
        match timeout_at(until, noted).await {
            Ok(Err(SessionsError::Store(StoreError::Full))) => {
                self.note_later(&using, true);
                Ok(())
            }
            Ok(noted) => noted,
            Err(_elapsed) => {
                self.note_later(&using, false);
                Err(StoreError::Unavailable("the use was noted after the deadline".into()).into())
            }
        }
    }

    /// Notes the use or the arrival, unless another request has used the order. The note receives a new
    /// version, so the store rejects a delayed write of an earlier try.
    pub(super) async fn write_once(&self, using: &SingleUse, is_used: bool) -> Result<(), SessionsError> {
        let note = |arrived_at_ms| {
            let used_by = if is_used {
                using.note.used_by.clone()
            } else {
                String::new()
            };
            let note = SingleUseNote {
                arrived_at_ms,
                used_by,
            };
            note.encode_to_vec()
        };
        let arrived_at_ms = using.note.arrived_at_ms;
        let merge = |there: &Record| {
            let known = self.open_once(there).ok()?;
            let is_free = known.used_by.is_empty() || known.used_by == using.note.used_by;
            is_free.then(|| note(known.arrived_at_ms.min(arrived_at_ms)))
        };
        let first = note(arrived_at_ms);
        let other = self
            .session_store
            .write_note(ONCE, using.name, &first, using.kept_ms, merge);
        match other.await? {
            None => Ok(()),
            Some(_) => Err(SessionsError::RequestIdReused),
        }
    }

    /// Retries a note in the background. Even a late arrival note protects sessions created meanwhile from a
    /// repeated ending.
    fn note_later(&self, using: &SingleUse, is_used: bool) {
        let (what, context) = ("the use of a one-time ID", (self.clone(), using.clone()));
        let write = move |(sessions, using): (Self, SingleUse)| async move {
            match sessions.write_once(&using, is_used).await {
                Err(SessionsError::RequestIdReused) => Ok(()),
                noted => noted,
            }
        };
        self.session_store.retry_later(what, context, write);
    }
}
