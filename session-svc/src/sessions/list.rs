//! Listing a person's sessions, page by page.
//!
//! Invariants: the newest come first; a page token is sealed and opens for the same person alone; a page costs by
//! the person's own sessions.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{Sessions, SessionsError};
use crate::session::{Handle, Session, index};
use crate::store::Cursor;

/// Keeps page tokens apart from whatever else is sealed.
const PURPOSE: &str = "page";

/// Bytes of a creation time in a page token.
const TIME_BYTES: usize = 8;

/// Reads of the store for one page, when many of a person's sessions have expired by a shortened duration.
const MAX_READS: usize = 8;

/// A page of sessions.
#[derive(Debug)]
pub struct Page {
    /// The sessions, the newest first.
    pub sessions: Vec<Session>,
    /// Gives the next page; empty on the last.
    pub next_page_token: String,
}

impl Sessions {
    /// Lists sessions of a person: at most `size`, after the page that gave `page_token`.
    pub async fn list(
        &self,
        issuer: &str,
        subject: &str,
        size: usize,
        page_token: &str,
    ) -> Result<Page, SessionsError> {
        let index = index::by_subject(issuer, subject);
        let mut after = if page_token.is_empty() {
            None
        } else {
            Some(self.read_token(&index, page_token)?)
        };
        let mut sessions = Vec::new();
        for _ in 0..MAX_READS {
            let (found, next) = self
                .keeper
                .list(&index, after.as_ref(), size.saturating_sub(sessions.len()))
                .await?;
            sessions.extend(found);
            after = next;
            if after.is_none() || sessions.len() >= size {
                break;
            }
        }
        let next_page_token = match after {
            None => String::new(),
            Some(cursor) => self.write_token(&index, &cursor)?,
        };
        Ok(Page {
            sessions,
            next_page_token,
        })
    }

    /// The token of the page that begins behind a session of a person's list.
    pub fn page_token_behind(&self, session: &Session) -> Result<String, SessionsError> {
        let index = index::by_subject(&session.issuer, &session.subject);
        let cursor = Cursor {
            created_at_ms: session.created_at_ms,
            name: session.handle.to_string(),
        };
        self.write_token(&index, &cursor)
    }

    fn write_token(&self, index: &str, cursor: &Cursor) -> Result<String, SessionsError> {
        let mut note = cursor.created_at_ms.to_be_bytes().to_vec();
        note.extend_from_slice(cursor.name.as_bytes());
        let sealed = self.keeper.seal().seal_note(PURPOSE, index, &note)?;
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    fn read_token(&self, index: &str, token: &str) -> Result<Cursor, SessionsError> {
        let wrong = SessionsError::Invalid {
            field: "page_token",
            problem: "not a page token of this list",
        };
        let read = || {
            let sealed = URL_SAFE_NO_PAD.decode(token).ok()?;
            let note = self.keeper.seal().open_note(PURPOSE, index, &sealed).ok()?;
            let (time, name) = note.split_at_checked(TIME_BYTES)?;
            let handle = Handle::parse(std::str::from_utf8(name).ok()?).ok()?;
            Some(Cursor {
                created_at_ms: u64::from_be_bytes(time.try_into().ok()?),
                name: handle.to_string(),
            })
        };
        read().ok_or(wrong)
    }
}
