//! Finds sessions by lists, a few at a time.
//!
//! Invariants
//! - A list entry proves nothing: its session is shown and ended only for its own user or provider session.
//! - An unreadable session is listed and not skipped, so that it can be seen and ended.
//! - One part of a list takes a bounded number of bytes, however many and large its sessions are.

use super::SessionStore;
use crate::error::SessionsError;
use crate::session::index::{self, IndexKey};
use crate::session::{Handle, Name, Session};
use crate::store::IndexEntry;

/// Records read at once: at most 2 MiB with the default size limit of a session.
pub(crate) const READ_AT_ONCE: usize = 32;

/// Bytes of records after which a page ends. With [`READ_AT_ONCE`] more records, a page stays below the 4 MiB
/// that gRPC clients accept by default. A session's message is no larger than its record.
pub(crate) const PAGE_BYTES: usize = 1024 * 1024;

/// An entry of a list.
#[derive(Debug)]
pub enum ListedSession {
    /// A readable session.
    Session(Box<Session>),
    /// An unreadable session: its key is not configured, a newer release wrote it, or it is damaged.
    Unreadable {
        /// Its handle.
        handle: Handle,
        /// Its creation time according to its entry.
        created_at_ms: u64,
        /// The lists that its record names; none if the record is damaged.
        indexes: Vec<Name>,
    },
}

impl ListedSession {
    /// The session, if it can be read.
    pub(crate) fn session(&self) -> Option<&Session> {
        match self {
            Self::Session(session) => Some(session),
            Self::Unreadable { .. } => None,
        }
    }

    /// The public handle of the session.
    pub fn handle(&self) -> Handle {
        match self {
            Self::Session(session) => session.handle,
            Self::Unreadable { handle, .. } => *handle,
        }
    }

    /// When it began, in milliseconds since the Unix epoch.
    pub(crate) fn created_at_ms(&self) -> u64 {
        match self {
            Self::Session(session) => session.created_at_ms,
            Self::Unreadable { created_at_ms, .. } => *created_at_ms,
        }
    }

    /// Whether it is a session of this user. For an unreadable one, the lists of its record decide: hashes of
    /// issuer and subject. Without these, the list that contains it decides.
    pub(crate) fn is_of(&self, issuer: &str, subject: &str) -> bool {
        match self {
            Self::Session(session) => IndexKey::Person(issuer, subject).is(session),
            Self::Unreadable { indexes, .. } => {
                indexes.is_empty() || indexes.contains(&index::by_subject(issuer, subject))
            }
        }
    }
}

impl SessionStore {
    /// At most `limit` sessions of a list, valid or unreadable, and the next position; `None` after the last. A part
    /// may be short or empty before the end. It ends when `budget` bytes are read, which are subtracted from it.
    pub async fn list(
        &self,
        index_key: IndexKey<'_>,
        after: Option<&IndexEntry>,
        limit: usize,
        budget: &mut usize,
    ) -> Result<(Vec<ListedSession>, Option<IndexEntry>), SessionsError> {
        let listing = self.store().list(index_key.index(), after, limit).await?;
        let mut listed = Vec::new();
        let mut parts = listing.entries.chunks(READ_AT_ONCE).peekable();
        while let Some(part) = parts.next() {
            let bytes = self.read_listed(index_key, part, &mut listed).await?;
            *budget = budget.saturating_sub(bytes);
            if *budget == 0 && parts.peek().is_some() {
                return Ok((listed, part.last().copied()));
            }
        }
        Ok((listed, listing.next))
    }

    /// Adds the sessions of list entries. Returns the bytes read.
    pub(crate) async fn read_listed(
        &self,
        index_key: IndexKey<'_>,
        entries: &[IndexEntry],
        listed: &mut Vec<ListedSession>,
    ) -> Result<usize, SessionsError> {
        let (index, now_ms) = (index_key.index(), self.now_ms());
        let names: Vec<Name> = entries.iter().map(|entry| entry.name).collect();
        let mut bytes = 0;
        for (entry, loaded) in entries.iter().zip(self.store().load_many(&names).await?) {
            let indexes = match loaded {
                Ok(None) => continue,
                Err(_) => Vec::new(),
                Ok(Some(record)) => {
                    bytes += record.payload.len();
                    if !record.indexes.contains(&index) {
                        // By now, other lists contain it.
                        continue;
                    }
                    match self.open(&record) {
                        Ok(session) if !session.is_valid(self.lifetime(), now_ms) => continue,
                        Ok(session) if !index_key.is(&session) => {
                            tracing::error!(
                                session = %entry.name,
                                "an index entry points to a session of another user"
                            );
                            continue;
                        }
                        Ok(session) => {
                            listed.push(ListedSession::Session(Box::new(session)));
                            continue;
                        }
                        Err(error) => {
                            tracing::error!(session = %entry.name, error = &error as &dyn std::error::Error, "a listed record cannot be read");
                            record.indexes
                        }
                    }
                }
            };
            listed.push(ListedSession::Unreadable {
                handle: entry.name,
                created_at_ms: entry.created_at_ms,
                indexes,
            });
        }
        Ok(bytes)
    }
}
