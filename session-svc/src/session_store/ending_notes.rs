//! Notes of ended sessions, which operators read.
//!
//! Invariants
//! - Only a service with `SESSION_OPERATOR_SEARCH` writes them.
//! - A note is a sealed record without claims, in a list of its user, and expires by itself.
//! - It is written after the removal, so it fails no ending. If the first write fails, a retry follows in the
//!   background.

use chassis::audit::Origin;
use prost::Message;

use super::SessionStore;
use super::sealed_notes::ENDING;
use crate::error::SessionsError;
use crate::session::{Cause, Device, Handle, Name, Session, index};

/// How long a note is kept: 30 days.
const ENDING_KEPT_MS: u64 = 30 * 86_400_000;

/// The most endings of one answer: about 200 KB of the largest.
const ENDINGS_MAX: usize = 100;

/// Reads of the list for one answer, if other notes have just expired.
const MAX_READS: usize = 4;

/// Why a session ended.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct EndingNote {
    /// The session's handle, as bytes.
    #[prost(bytes = "vec", tag = "1")]
    handle: Vec<u8>,
    /// When it ended, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "2")]
    pub(crate) at_ms: u64,
    /// The number of the cause.
    #[prost(uint32, tag = "3")]
    cause: u32,
    /// The operator who ended it, as issuer and subject; empty for another cause.
    #[prost(string, tag = "4")]
    pub(crate) operator: String,
    /// The purpose that the operator gave.
    #[prost(string, tag = "5")]
    pub(crate) purpose: String,
    /// Where the session was last used.
    #[prost(message, required, tag = "6")]
    pub(crate) last_seen_on: Device,
}

impl EndingNote {
    fn new(session: &Session, cause: Cause, at_ms: u64) -> Self {
        let origin = Origin::current();
        let operator = origin.and_then(|origin| origin.operator);
        let operator = operator.filter(|_| cause == Cause::Operator).unwrap_or_default();
        let name = format!("{} {}", operator.issuer, operator.subject);
        Self {
            handle: session.handle.as_bytes().to_vec(),
            at_ms,
            cause: cause as u32,
            operator: name.trim().to_owned(),
            purpose: operator.purpose.clone(),
            last_seen_on: session.last_seen_on.clone(),
        }
    }

    /// The session's handle.
    pub(crate) fn handle(&self) -> Option<Handle> {
        Some(Handle::from_bytes(self.handle.as_slice().try_into().ok()?))
    }

    /// Why the session ended.
    pub(crate) fn cause(&self) -> Cause {
        Cause::of_number(self.cause)
    }
}

impl SessionStore {
    /// Writes the note of a session that ended.
    pub(super) async fn note_ending(&self, session: &Session, cause: Cause) {
        let note = EndingNote::new(session, cause, self.now_ms());
        let list = endings_list(&session.issuer, &session.subject);
        let name = index::hashed(&[b"ending", session.handle.as_bytes()]);
        if self.write_ending(name, list, &note).await.is_err() {
            let context = (self.clone(), note);
            let write = move |(session_store, note): (Self, EndingNote)| async move {
                session_store.write_ending(name, list, &note).await
            };
            self.retry_later("the note of an ending", context, write);
        }
    }

    async fn write_ending(&self, name: Name, list: Name, note: &EndingNote) -> Result<(), SessionsError> {
        let mut record = self.note(ENDING, name, &note.encode_to_vec(), ENDING_KEPT_MS)?;
        record.indexes = vec![list];
        // An empty event: watchers ignore it.
        self.store().insert(record, Vec::new()).await?;
        Ok(())
    }

    /// The endings of a user's sessions, the newest first.
    pub(crate) async fn endings(
        &self,
        issuer: &str,
        subject: &str,
    ) -> Result<Vec<EndingNote>, SessionsError> {
        let (vault, list, mut after) = (self.vault(), endings_list(issuer, subject), None);
        let mut endings = Vec::new();
        for _ in 0..MAX_READS {
            let rest = ENDINGS_MAX - endings.len();
            let listing = self.store().list(list, after.as_ref(), rest).await?;
            let names: Vec<Name> = listing.entries.iter().map(|entry| entry.name).collect();
            let loaded = self.store().load_many(&names).await?.into_iter();
            let notes = loaded.filter_map(|loaded| {
                let record = loaded.ok()??;
                let note = vault.open_note(ENDING, record.name, &record.payload).ok()?;
                EndingNote::decode(note.as_slice()).ok()
            });
            endings.extend(notes);
            after = listing.next;
            if after.is_none() || endings.len() >= ENDINGS_MAX {
                break;
            }
        }
        Ok(endings)
    }
}

fn endings_list(issuer: &str, subject: &str) -> Name {
    let person = index::by_subject(issuer, subject);
    index::hashed(&[b"endings", person.digits().as_bytes()])
}
