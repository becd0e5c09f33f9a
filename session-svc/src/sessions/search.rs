//! Finding sessions for operators.
//!
//! Invariants
//! - A search is about one issuer: the sessions of another one are neither returned nor counted as matches.
//! - A call examines a bounded number of sessions for a bounded time. Its page token continues after the last
//!   session examined, and is valid for the same filter only.

use std::time::Duration;

use prost::Message as _;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::permits::permit;
use super::{Sessions, SessionsError};
use crate::session::index::{self, IndexKey};
use crate::session::{FilterBy, Handle, Name, SessionFilter};
use crate::session_store::ListedSession;
use crate::session_store::ending_notes::EndingNote;
use crate::session_store::listed::{PAGE_BYTES, READ_AT_ONCE};
use crate::store::IndexEntry;

/// The most sessions that one call examines: about 50 ms of a core.
const EXAMINED_MAX: usize = 2_000;

/// How long one call examines sessions. A slow store ends it before the caller's deadline.
const SEARCH_TIME: Duration = Duration::from_millis(500);

/// Entries of a list read at once.
const LISTED_AT_ONCE: usize = 8 * READ_AT_ONCE;

/// The error of a filter that only the lists for operators can answer.
const SEARCH_OFF: SessionsError = SessionsError::Invalid {
    field: "filter",
    problem: "needs the setting SESSION_OPERATOR_SEARCH of the session service",
};

/// A page of found sessions.
#[derive(Debug)]
pub(crate) struct FoundPage {
    /// The sessions, the newest first.
    pub(crate) sessions: Vec<ListedSession>,
    /// The token of the next page; empty on the last.
    pub(crate) next_page_token: String,
    /// How many sessions were examined.
    pub(crate) examined: usize,
    /// Held as long as the page is in memory.
    _permit: OwnedSemaphorePermit,
}

/// Reads the list of a filter, a few sessions at a time.
pub(super) struct FilterScan<'a> {
    sessions: &'a Sessions,
    filter: &'a SessionFilter,
    index_key: IndexKey<'a>,
    /// Listed entries that are not examined yet.
    entries: Vec<IndexEntry>,
    /// The position after these entries.
    after_entries: Option<IndexEntry>,
    /// The position after the examined ones.
    pub(super) after: Option<IndexEntry>,
    pub(super) is_over: bool,
    pub(super) examined: usize,
}

impl FilterScan<'_> {
    /// The matches among the next sessions; `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<ListedSession>>, SessionsError> {
        if self.is_over {
            return Ok(None);
        }
        let session_store = &self.sessions.session_store;
        if self.entries.is_empty() {
            let (index, after) = (self.index_key.index(), self.after.as_ref());
            let listing = session_store.store().list(index, after, LISTED_AT_ONCE).await?;
            (self.entries, self.after_entries) = (listing.entries, listing.next);
        }
        let count = self.entries.len().min(READ_AT_ONCE);
        let part: Vec<IndexEntry> = self.entries.drain(..count).collect();
        // The newest come first, so the list is over at the first entry that is too old.
        let oldest_ms = self.filter.created_after_ms;
        let in_time = part.partition_point(|entry| entry.created_at_ms >= oldest_ms);
        self.after = match self.entries.is_empty() {
            true => self.after_entries,
            false => part.last().copied(),
        };
        self.is_over = self.after.is_none() || in_time < part.len();
        self.examined += in_time;
        let mut listed = Vec::new();
        let examined = part.get(..in_time).unwrap_or_default();
        session_store
            .read_listed(self.index_key, examined, &mut listed)
            .await?;
        listed.retain(|one| self.sessions.is_match(self.filter, one));
        Ok(Some(listed))
    }
}

impl Sessions {
    /// Whether operators search by more than handle, subject and provider session.
    pub(crate) fn has_operator_search(&self) -> bool {
        self.session_store.is_searchable
    }

    /// The issuers of the configured providers, in their order.
    pub(crate) fn issuers(&self) -> Vec<String> {
        self.refresher.providers.issuers()
    }

    /// Finds at most `size` sessions, after the page that returned `page_token`.
    pub(crate) async fn search(
        &self,
        filter: &SessionFilter,
        size: usize,
        page_token: &str,
    ) -> Result<FoundPage, SessionsError> {
        self.check_filter(filter)?;
        let after = match page_token {
            "" => None,
            token => Some(self.read_token(filter.name(), token)?),
        };
        let permit = permit(&self.searches).await?;
        let until = Instant::now() + SEARCH_TIME;
        let mut page = FoundPage {
            sessions: Vec::new(),
            next_page_token: String::new(),
            examined: 0,
            _permit: permit,
        };
        let Some(mut scan) = self.scan(filter, after) else {
            page.sessions.extend(self.find_by_handle(filter).await?);
            page.examined = 1;
            return Ok(page);
        };
        let (mut room, mut next) = (PAGE_BYTES, None);
        'parts: while let Some(part) = scan.next().await? {
            for one in part {
                if page.sessions.len() >= size || room == 0 {
                    next = page.sessions.last().map(entry_of);
                    break 'parts;
                }
                room = room.saturating_sub(one.session().map_or(0, |session| session.values.encoded_len()));
                page.sessions.push(one);
            }
            next = scan.after.filter(|_| !scan.is_over);
            let is_full = page.sessions.len() >= size || room == 0;
            if is_full || scan.examined >= EXAMINED_MAX || Instant::now() >= until {
                break;
            }
            // Other calls of this worker continue.
            tokio::task::yield_now().await;
        }
        page.examined = scan.examined;
        if let Some(entry) = next {
            page.next_page_token = self.write_token(filter.name(), &entry)?;
        }
        Ok(page)
    }

    /// Why sessions of a user ended in the last 30 days, the newest first.
    pub(crate) async fn endings_of(
        &self,
        issuer: &str,
        subject: &str,
    ) -> Result<Vec<EndingNote>, SessionsError> {
        if !self.has_operator_search() {
            return Err(SEARCH_OFF);
        }
        let _permit = permit(&self.searches).await?;
        self.session_store.endings(issuer, subject).await
    }

    /// Fails if this service keeps no list for the filter.
    pub(super) fn check_filter(&self, filter: &SessionFilter) -> Result<(), SessionsError> {
        let has_list = match filter.index_key() {
            Some(IndexKey::Email(..)) => self.session_store.finds_by_email,
            Some(IndexKey::Provider(_)) => self.session_store.is_searchable,
            _ => true,
        };
        has_list.then_some(()).ok_or(SEARCH_OFF)
    }

    /// Reads the list of a filter from this position on, or from its beginning; `None` for a handle.
    pub(super) fn scan<'a>(
        &'a self,
        filter: &'a SessionFilter,
        after: Option<IndexEntry>,
    ) -> Option<FilterScan<'a>> {
        // Sorts after every entry that is too new, and before all others.
        let newest = IndexEntry {
            created_at_ms: filter.created_before_ms,
            name: Name::FIRST,
        };
        Some(FilterScan {
            sessions: self,
            filter,
            index_key: filter.index_key()?,
            entries: Vec::new(),
            after_entries: None,
            after: Some(after.unwrap_or(newest)),
            is_over: false,
            examined: 0,
        })
    }

    /// The session of a filter's handle, if it is valid and of the filter's issuer.
    pub(super) async fn find_by_handle(
        &self,
        filter: &SessionFilter,
    ) -> Result<Option<ListedSession>, SessionsError> {
        let FilterBy::Handle(handle) = filter.by else {
            return Ok(None);
        };
        let found = self.session_store.find(handle).await?;
        Ok(found.filter(|found| self.is_match(filter, found)))
    }

    fn is_match(&self, filter: &SessionFilter, one: &ListedSession) -> bool {
        match one {
            ListedSession::Session(session) => {
                session.is_valid(self.lifetime(), self.now_ms()) && filter.is_met_by(session)
            }
            // Its claims and addresses are unknown. A handle proves no issuer: the lists of the record do.
            ListedSession::Unreadable { indexes, .. } => {
                filter.has_time(one.created_at_ms())
                    && match &filter.by {
                        FilterBy::Address(_) | FilterBy::Name(_) => false,
                        FilterBy::Handle(_) => indexes.contains(&index::by_issuer(&filter.issuer)),
                        _ => true,
                    }
            }
        }
    }
}

fn entry_of(one: &ListedSession) -> IndexEntry {
    let (name, created_at_ms): (Handle, u64) = (one.handle(), one.created_at_ms());
    IndexEntry { created_at_ms, name }
}
