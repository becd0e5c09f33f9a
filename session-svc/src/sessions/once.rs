//! What is good for one ending of sessions, such as a logout token.
//!
//! Invariants: of all calls with the same one, over all replicas, one succeeds, and the others learn that it was used once its
//! endings are done. None waits for another: they end the same sessions, those that began before the first of them arrived, so
//! it is no matter which of two at the same moment removes them. A call that fails uses nothing up.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::end::{EndingTime, Once};
use super::{Sessions, SessionsError};
use crate::keeper::SealError;
use crate::keeper::endings::MARK_KEPT_MS;
use crate::keeper::sealed_notes::{ARRIVAL, MARK};
use crate::session::{Name, index};
use crate::store::{Inserted, Record, StoreError};

/// How long a use is remembered at most: a day, more than any logout token lives.
const KEPT_MAX_MS: u64 = 86_400_000;

/// How long it is tried to note a use for a caller that does not say how long it waits.
const SETTLE: Duration = Duration::from_secs(5);

/// How long what the store did not answer to is done late: longer than it stands still before it counts as gone.
const LATE: Duration = Duration::from_secs(30);

/// Looks at a store that answers, and finds no such note: what it was sent before has been done by then.
const LOOKS: usize = 40;

/// Pause between two tries and two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// What a call may do.
#[derive(Debug)]
pub(super) enum FirstUse {
    /// End what began before the first call with the same one arrived.
    End(EndingTime),
    /// Nothing: the very call has acted before.
    Done,
    /// Nothing: another one has.
    Used,
}

impl Sessions {
    /// Looks whether it was used, and when it arrived first.
    pub(super) async fn first_use(
        &self,
        issuer: &str,
        once: &Once,
        ending: EndingTime,
    ) -> Result<FirstUse, SessionsError> {
        let name = name(issuer, once);
        // Both to their end: that it arrived is remembered also where nothing else can be learnt.
        let (used, first_ms) = tokio::join!(self.used_by(name), self.first_arrival(name, once, ending.at_ms));
        let (used, first_ms) = (used?, first_ms?);
        Ok(match used {
            Some(by) if once.is_by(&by) => FirstUse::Done,
            Some(_) => FirstUse::Used,
            None => FirstUse::End(EndingTime {
                at_ms: first_ms.unwrap_or(ending.at_ms).min(ending.at_ms),
                ends_since: ending.ends_since && first_ms.is_none(),
            }),
        })
    }

    /// When it arrived first; `None` if that is now. What the store does not answer to is remembered as soon as it does, so that a
    /// token that is sent again ends nothing that began meanwhile.
    async fn first_arrival(&self, name: Name, once: &Once, at_ms: u64) -> Result<Option<u64>, SessionsError> {
        let kept = Duration::from_millis(self.kept_ms(once));
        let sealed = self.sealed_arrival(name, at_ms)?;
        let arrived = self.remember_arrival(name, &sealed, kept).await;
        if arrived.is_err() {
            self.remember_later(name, sealed, kept);
        }
        Ok(arrived?)
    }

    pub(super) fn sealed_arrival(&self, name: Name, at_ms: u64) -> Result<Vec<u8>, SealError> {
        self.keeper.vault().seal_note(ARRIVAL, name, &at_ms.to_be_bytes())
    }

    /// Remembers when something arrived, and gives when it arrived before. A store that is too full to remember it, and a note that
    /// cannot be read here, hold nothing up.
    pub(super) async fn remember_arrival(
        &self,
        name: Name,
        sealed: &[u8],
        kept: Duration,
    ) -> Result<Option<u64>, StoreError> {
        let store = self.keeper.store();
        let before = match store.remember(name, sealed, kept).await {
            Err(StoreError::Full) => None,
            before => before?,
        };
        let note = before.and_then(|before| self.keeper.vault().open_note(ARRIVAL, name, &before).ok());
        let at_ms = note.as_deref().and_then(|note| note.first_chunk());
        Ok(at_ms.map(|at_ms| u64::from_be_bytes(*at_ms)))
    }

    fn remember_later(&self, name: Name, sealed: Vec<u8>, kept: Duration) {
        let keeper = self.keeper.clone();
        tokio::spawn(async move {
            let until = Instant::now() + LATE;
            while Instant::now() < until && keeper.store().remember(name, &sealed, kept).await.is_err() {
                sleep(PAUSE).await;
            }
        });
    }

    async fn used_by(&self, name: Name) -> Result<Option<Vec<u8>>, SessionsError> {
        let Some(record) = self.keeper.store().load(name).await? else {
            return Ok(None);
        };
        Ok(Some(self.keeper.vault().open_note(
            MARK,
            name,
            &record.payload,
        )?))
    }

    fn kept_ms(&self, once: &Once) -> u64 {
        let left_ms = once.until_ms.saturating_sub(self.keeper.now_ms());
        left_ms.clamp(MARK_KEPT_MS, KEPT_MAX_MS)
    }

    /// Notes that it has been used: `RequestIdReused` if another call did so first. A full store gets the note later. A caller
    /// that got an error may use it again: a note that arrives after all is removed.
    pub(super) async fn note_use(
        &self,
        issuer: &str,
        once: &Once,
        answer_by: Option<Instant>,
    ) -> Result<(), SessionsError> {
        let by = once.request_id.as_deref().unwrap_or_default();
        let record = self
            .keeper
            .note(MARK, name(issuer, once), by.as_bytes(), self.kept_ms(once))?;
        let until = answer_by.unwrap_or_else(|| Instant::now() + SETTLE);
        let noted = loop {
            match self.note(&record, once).await {
                Err(SessionsError::Store(StoreError::Unavailable(_))) if Instant::now() < until => {
                    sleep(PAUSE).await
                }
                noted => break noted,
            }
        };
        match noted {
            Ok(()) if Instant::now() < until => Ok(()),
            Err(SessionsError::Store(StoreError::Full)) => {
                self.note_later(record, once);
                Ok(())
            }
            Ok(()) => {
                self.take_note_back(record);
                let source = "the use was noted too late for its caller".into();
                Err(StoreError::Unavailable(source).into())
            }
            Err(error @ SessionsError::Store(StoreError::Unavailable(_))) => {
                self.take_note_back(record);
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    async fn note(&self, record: &Record, once: &Once) -> Result<(), SessionsError> {
        // An empty event: watchers pass it over.
        if self.keeper.store().insert(record.clone(), Vec::new()).await? == Inserted::Done {
            return Ok(());
        }
        let Some(there) = self.keeper.store().load(record.name).await? else {
            return Err(SessionsError::RequestIdReused);
        };
        let by = self.keeper.vault().open_note(MARK, record.name, &there.payload)?;
        // Written by the try before, whose answer was lost, or by a repetition of this call.
        if there.payload == record.payload || once.is_by(&by) {
            return Ok(());
        }
        Err(SessionsError::RequestIdReused)
    }

    fn note_later(&self, record: Record, once: &Once) {
        let (sessions, once) = (self.clone(), once.clone());
        self.keeper.make_up("the use of what is good once", move || {
            let (sessions, record, once) = (sessions.clone(), record.clone(), once.clone());
            async move {
                match sessions.note(&record, &once).await {
                    Err(SessionsError::RequestIdReused) => Ok(()),
                    noted => noted,
                }
            }
        });
    }

    /// Removes a note that may have been written, or may still be, although its caller got an error. Sealed texts are
    /// never the same twice, so that nobody else's is removed.
    fn take_note_back(&self, ours: Record) {
        let keeper = self.keeper.clone();
        tokio::spawn(async move {
            let until = Instant::now() + LATE;
            let mut missed = 0;
            while missed < LOOKS && Instant::now() < until {
                match keeper.store().load(ours.name).await {
                    // An empty event: watchers pass it over.
                    Ok(Some(there)) if there.payload == ours.payload => {
                        if keeper.store().remove(ours.name, Vec::new()).await.is_ok() {
                            return;
                        }
                    }
                    Ok(_) => missed += 1,
                    Err(_) => missed = 0,
                }
                sleep(PAUSE).await;
            }
        });
    }
}

impl Once {
    fn is_by(&self, call: &[u8]) -> bool {
        self.request_id.as_ref().is_some_and(|id| id.as_bytes() == call)
    }
}

fn name(issuer: &str, once: &Once) -> Name {
    index::hashed(&[b"once", issuer.as_bytes(), once.id.as_bytes()])
}
