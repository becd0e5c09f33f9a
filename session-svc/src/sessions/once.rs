//! What is good for one ending of sessions, such as a logout token.
//!
//! Invariants: of all calls with the same one, over all replicas, one acts at a time and one succeeds; the others learn that
//! it was used once that is certain. A call that fails uses nothing up, and one that dies holds the others up for
//! [`TURN`] at most.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::SessionsError;
use super::end::Once;
use super::endings::{MARK, MARK_KEPT_MS};
use super::keeper::Keeper;
use crate::session::index;
use crate::store::{Inserted, Lease, StoreError};

/// How long a call has for its endings before another one may try.
const TURN: Duration = Duration::from_secs(10);

/// How long a call waits for those before it: longer than its caller does.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two looks at how the call before it ended.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a use is remembered at most: a day, more than any logout token lives.
const KEPT_MAX_MS: u64 = 86_400_000;

/// Whether a call may act.
#[derive(Debug)]
pub(super) enum Turn {
    /// It may, until this is given back.
    Ours(Lease),
    /// The very call has acted before.
    Done,
    /// Another one has.
    Used,
}

impl Keeper {
    /// Waits until the call may act, or until it is certain that it may not. `holder` is drawn for it.
    pub(super) async fn turn(&self, issuer: &str, once: &Once, holder: &str) -> Result<Turn, SessionsError> {
        let name = name(issuer, once);
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let Some(lease) = self.store().acquire_lease(&name, holder, TURN).await? else {
                sleep(PAUSE).await;
                continue;
            };
            // Looked at within the turn: whoever had it before has noted its use.
            let used = match self.used(&name, once).await {
                Ok(None) => return Ok(Turn::Ours(lease)),
                Ok(Some(turn)) => Ok(turn),
                Err(error) => Err(error),
            };
            self.give_back(&lease).await;
            return used;
        }
        let source = "another call with the same once_id does not end".into();
        Err(SessionsError::StoreUnavailable(StoreError::Unavailable(source)))
    }

    async fn used(&self, name: &str, once: &Once) -> Result<Option<Turn>, SessionsError> {
        let Some(record) = self.store().load(name).await? else {
            return Ok(None);
        };
        let by = self.seal().open_note(MARK, name, &record.payload)?;
        let same_call = once.request_id.as_ref().is_some_and(|id| id.as_bytes() == by);
        Ok(Some(if same_call { Turn::Done } else { Turn::Used }))
    }

    /// Notes that it has been used, by which call: `RequestIdReused` if another call, whose turn came when this one took too
    /// long, did so first.
    pub(super) async fn note_use(&self, issuer: &str, once: &Once) -> Result<(), SessionsError> {
        let by = once.request_id.as_deref().unwrap_or_default();
        let left_ms = once.until_ms.saturating_sub(self.now_ms());
        let record = self.mark(
            &name(issuer, once),
            by.as_bytes(),
            left_ms.clamp(MARK_KEPT_MS, KEPT_MAX_MS),
        )?;
        // An empty event: watchers pass it over.
        match self.store().insert(record, Vec::new()).await? {
            Inserted::Done => Ok(()),
            Inserted::Taken => Err(SessionsError::RequestIdReused),
        }
    }

    /// Lets the next one act. A store that does not hear of it forgets the turn by itself.
    pub(super) async fn give_back(&self, lease: &Lease) {
        if let Err(error) = self.store().release_lease(lease).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a turn could not be given back"
            );
        }
    }
}

fn name(issuer: &str, once: &Once) -> String {
    index::hashed(&[b"once", issuer.as_bytes(), once.id.as_bytes()])
}
