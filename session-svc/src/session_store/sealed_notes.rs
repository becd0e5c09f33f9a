//! Sealed notes next to the sessions. The purpose separates one kind of note from another.

use super::SessionStore;
use crate::error::SessionsError;
use crate::session::Name;
use crate::store::{Inserted, Record, Replaced};

/// Marks of endings (`endings`), and notices for users (`notices`).
pub(crate) const MARK: &str = "mark";

/// Notes of revocations (`refresh`).
pub(crate) const REVOCATION: &str = "revocation";

/// Demands for a sign-in (`demands`).
pub(crate) const DEMAND: &str = "demand";

/// Notes of ended sessions (`ending_notes`).
pub(crate) const ENDING: &str = "ending";

/// Events to send to receivers (`transmitter`).
pub(crate) const SIGNAL: &str = "signal";

/// Requests that may be repeated.
pub(crate) const REQUEST: &str = "request";

/// The state of values that are valid once (`sessions::once`).
pub(crate) const ONCE: &str = "once";

/// Tries to write one note; each conflict means that another writer succeeded.
const NOTE_ATTEMPTS: usize = 8;

impl SessionStore {
    /// The first version of the record of a note.
    pub(crate) fn note(
        &self,
        purpose: &str,
        name: Name,
        note: &[u8],
        kept_ms: u64,
    ) -> Result<Record, SessionsError> {
        let now_ms = self.now_ms();
        Ok(Record {
            name,
            version: 1,
            expires_at_ms: now_ms.saturating_add(kept_ms),
            created_at_ms: now_ms,
            indexes: Vec::new(),
            payload: self.vault().seal_note(purpose, name, note)?,
        })
    }

    /// Writes a note. If one exists, `merge` returns its replacement; `None` keeps it and returns its record.
    pub(crate) async fn write_note<F>(
        &self,
        purpose: &str,
        name: Name,
        note: &[u8],
        kept_ms: u64,
        merge: F,
    ) -> Result<Option<Record>, SessionsError>
    where
        F: Fn(&Record) -> Option<Vec<u8>> + Send + Sync,
    {
        let first = self.note(purpose, name, note, kept_ms)?;
        for _ in 0..NOTE_ATTEMPTS {
            // An empty event: watchers ignore it.
            if self.store().insert(first.clone(), Vec::new()).await? == Inserted::Done {
                return Ok(None);
            }
            let Some(there) = self.store().load(name).await? else {
                continue;
            };
            let Some(merged) = merge(&there) else {
                return Ok(Some(there));
            };
            let record = Record {
                version: there.version.saturating_add(1),
                created_at_ms: there.created_at_ms,
                ..self.note(purpose, name, &merged, kept_ms)?
            };
            if self.store().replace(record, there.version, None).await? == Replaced::Done {
                return Ok(None);
            }
        }
        Err(SessionsError::StaleVersion)
    }
}
