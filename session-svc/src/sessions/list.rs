//! Listing a person's sessions, page by page.
//!
//! Invariants: the newest come first. A page token is sealed and valid for one person only. The cost of a
//! page depends on its own sessions alone, and a page is bounded in sessions and in bytes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::sync::OwnedSemaphorePermit;

use super::permits::permit;
use super::{Sessions, SessionsError};
use crate::session::Name;
use crate::session::index::IndexKey;
use crate::session_store::ListedSession;
use crate::session_store::listed::PAGE_BYTES;
use crate::store::IndexEntry;

/// Separates page tokens from all other sealed values.
const PURPOSE: &str = "page";

/// Reads of the store for one page, if many sessions have expired by a shortened duration, or the filter
/// skips sessions of other people.
const MAX_READS: usize = 8;

/// A page of sessions.
#[derive(Debug)]
pub struct Page {
    /// The sessions, the newest first.
    pub sessions: Vec<ListedSession>,
    /// The token of the next page; empty on the last.
    pub next_page_token: String,
    /// Held as long as the page is in memory.
    _permit: OwnedSemaphorePermit,
}

impl Sessions {
    /// Lists at most `size` sessions of a person, after the page that returned `page_token`.
    pub async fn list(
        &self,
        issuer: &str,
        subject: &str,
        size: usize,
        page_token: &str,
    ) -> Result<Page, SessionsError> {
        let index_key = IndexKey::Person(issuer, subject);
        let index = index_key.index();
        let mut after = if page_token.is_empty() {
            None
        } else {
            Some(self.read_token(index, page_token)?)
        };
        let permit = permit(&self.pages).await?;
        let (mut sessions, mut budget): (Vec<ListedSession>, usize) = (Vec::new(), PAGE_BYTES);
        for _ in 0..MAX_READS {
            let rest = size.saturating_sub(sessions.len());
            let (found, next) = self
                .session_store
                .list(index_key, after.as_ref(), rest, &mut budget)
                .await?;
            sessions.extend(found);
            after = next;
            if after.is_none() || sessions.len() >= size || budget == 0 {
                break;
            }
        }
        let next_page_token = match after {
            None => String::new(),
            Some(entry) => self.write_token(index, &entry)?,
        };
        Ok(Page {
            sessions,
            next_page_token,
            _permit: permit,
        })
    }

    pub(super) fn write_token(&self, index: Name, entry: &IndexEntry) -> Result<String, SessionsError> {
        let sealed = self
            .session_store
            .vault()
            .seal_note(PURPOSE, index, &entry.to_bytes())?;
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    pub(super) fn read_token(&self, index: Name, token: &str) -> Result<IndexEntry, SessionsError> {
        let wrong = SessionsError::Invalid {
            field: "page_token",
            problem: "not a page token of this list",
        };
        let read = || {
            let sealed = URL_SAFE_NO_PAD.decode(token).ok()?;
            let note = self
                .session_store
                .vault()
                .open_note(PURPOSE, index, &sealed)
                .ok()?;
            IndexEntry::from_bytes(&note)
        };
        read().ok_or(wrong)
    }
}
