//! Sessions by what they are found by, read a few at a time.
//!
//! Invariants
//! - An entry of a list proves nothing: the session it leads to is shown and ended for its own person or provider session alone.
//! - What cannot be read is listed and not skipped, so that it can be seen and ended.
//! - However many sessions there are, and however large, a part of a list takes a bounded number of bytes.

use super::Keeper;
use crate::error::SessionsError;
use crate::session::index::{self, Whose};
use crate::session::{Handle, Name, Session};
use crate::store::Entry;

/// Records read at once: 2 MiB of the largest the service stores by default.
pub(crate) const READ_AT_ONCE: usize = 32;

/// Bytes of records after which a page ends, whatever there is more: with those read at once the most a list holds, and less than
/// the 4 MiB that gRPC clients take unless configured otherwise. A session as a message is no larger than its record.
pub(crate) const PAGE_BYTES: usize = 1024 * 1024;

/// A session as a list shows it.
#[derive(Debug)]
pub enum Shown {
    /// One that can be read.
    Session(Box<Session>),
    /// One that cannot: sealed with a key that is not configured, written by a newer release, or damaged.
    Unreadable {
        /// Which.
        handle: Handle,
        /// When it began, as its entry says.
        created_at_ms: u64,
        /// The lists its record names; none where the record itself is damaged.
        indexes: Vec<Name>,
    },
}

impl Shown {
    /// The session, if it can be read.
    pub(crate) fn session(&self) -> Option<&Session> {
        match self {
            Self::Session(session) => Some(session),
            Self::Unreadable { .. } => None,
        }
    }

    /// Public name of the session.
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

    /// Whether it is a session of this person. Of one that cannot be read this is judged by the lists its record names, which are hashes of
    /// issuer and person; where there are none, the list it was found by is all there is to go by.
    pub(crate) fn is_of(&self, issuer: &str, subject: &str) -> bool {
        match self {
            Self::Session(session) => Whose::Person(issuer, subject).is(session),
            Self::Unreadable { indexes, .. } => {
                indexes.is_empty() || indexes.contains(&index::by_subject(issuer, subject))
            }
        }
    }
}

impl Keeper {
    /// Valid sessions of a list and those that cannot be read, at most `limit`, and where it goes on; `None` after the last. A part
    /// may be short or empty before the end, and ends when the bytes in `budget` have been read; these are subtracted from it.
    pub async fn list(
        &self,
        whose: Whose<'_>,
        after: Option<&Entry>,
        limit: usize,
        budget: &mut usize,
    ) -> Result<(Vec<Shown>, Option<Entry>), SessionsError> {
        let listing = self.store().list(whose.index(), after, limit).await?;
        let mut listed = Vec::new();
        let mut parts = listing.entries.chunks(READ_AT_ONCE).peekable();
        while let Some(part) = parts.next() {
            let bytes = self.read_listed(whose, part, &mut listed).await?;
            *budget = budget.saturating_sub(bytes);
            if *budget == 0 && parts.peek().is_some() {
                return Ok((listed, part.last().copied()));
            }
        }
        Ok((listed, listing.next))
    }

    /// Adds the sessions that entries of a list lead to; gives how many bytes were read.
    pub(crate) async fn read_listed(
        &self,
        whose: Whose<'_>,
        entries: &[Entry],
        listed: &mut Vec<Shown>,
    ) -> Result<usize, SessionsError> {
        let (index, now_ms) = (whose.index(), self.now_ms());
        let names: Vec<Name> = entries.iter().map(|entry| entry.name).collect();
        let mut bytes = 0;
        for (entry, loaded) in entries.iter().zip(self.store().load_many(&names).await?) {
            let indexes = match loaded {
                Ok(None) => continue,
                Err(_) => Vec::new(),
                Ok(Some(record)) => {
                    bytes += record.payload.len();
                    if !record.indexes.contains(&index) {
                        // It is found by other lists by now.
                        continue;
                    }
                    match self.open(&record) {
                        Ok(session) if !session.is_valid(self.lifetime(), now_ms) => continue,
                        Ok(session) if !whose.is(&session) => {
                            tracing::error!(
                                session = %entry.name,
                                "an index entry leads to a session of somebody else"
                            );
                            continue;
                        }
                        Ok(session) => {
                            listed.push(Shown::Session(Box::new(session)));
                            continue;
                        }
                        Err(error) => {
                            tracing::error!(session = %entry.name, error = &error as &dyn std::error::Error, "a listed record cannot be read");
                            record.indexes
                        }
                    }
                }
            };
            listed.push(Shown::Unreadable {
                handle: entry.name,
                created_at_ms: entry.created_at_ms,
                indexes,
            });
        }
        Ok(bytes)
    }
}
