//! The limit of sessions a person may have.

use std::time::Duration;

use tokio::time::timeout;

use super::{OfflineTokens, Sessions, SessionsError};
use crate::session::index::IndexKey;
use crate::session::{Cause, Name, Session};
use crate::session_store::listed::READ_AT_ONCE;
use crate::store::{IndexEntry, StoreError};

/// Entries read above the limit when the limit is enforced.
const LOOKED_BEYOND: usize = 1_000;

/// Longest time a creation waits for the list: a sign-in succeeds although one node of the store is down.
const LOOK_TIMEOUT: Duration = Duration::from_millis(500);

/// Sessions that one creation ends at most. A person with thousands of sessions loses some at each sign-in,
/// and no sign-in takes long.
const ENDED_AT_ONCE: usize = 50;

impl Sessions {
    /// Ends the person's oldest sessions above the limit, up to `ENDED_AT_ONCE`. An entry counts only if its
    /// record exists: a cluster that loses a node keeps entries of lost sessions.
    ///
    /// Each creation sees every earlier session, so at most the limit and the creations in flight remain.
    /// Each ended session has at least `limit` newer ones. So the newest stay, and two creations never end
    /// each other's.
    pub(super) async fn keep_limit(&self, session: &Session) -> Result<(), SessionsError> {
        let limit = self.limits.max_per_subject;
        if limit == 0 {
            return Ok(());
        }
        let index_key = IndexKey::Person(&session.issuer, &session.subject);
        let index = index_key.index();
        let most = limit.saturating_add(LOOKED_BEYOND);
        let Ok(entries) = timeout(LOOK_TIMEOUT, self.entries(index, most)).await else {
            let source = "the sessions of a person were not listed in time".into();
            return Err(StoreError::Unavailable(source).into());
        };
        let mut entries: Vec<IndexEntry> = entries?;
        entries.sort_unstable_by(|one, other| {
            (other.created_at_ms, &other.name).cmp(&(one.created_at_ms, &one.name))
        });
        entries.dedup_by(|one, other| one.name == other.name);
        if entries.len() <= limit {
            return Ok(());
        }
        let (mut there, mut listed) = (Vec::new(), Vec::new());
        for part in entries.chunks(READ_AT_ONCE) {
            self.session_store
                .read_listed(index_key, part, &mut listed)
                .await?;
            there.extend(listed.drain(..).map(|found| found.handle()));
        }
        let kept = limit.max(there.len().saturating_sub(ENDED_AT_ONCE));
        for old in there.into_iter().skip(kept) {
            if old != session.handle {
                self.end(old, None, Cause::SessionLimit, OfflineTokens::Revoke)
                    .await?;
            }
        }
        Ok(())
    }

    /// Returns at most `most` entries of a list, the newest first.
    async fn entries(&self, index: Name, most: usize) -> Result<Vec<IndexEntry>, SessionsError> {
        let (mut entries, mut after) = (Vec::new(), None);
        while entries.len() < most {
            let rest = most - entries.len();
            let listing = self
                .session_store
                .store()
                .list(index, after.as_ref(), rest)
                .await?;
            entries.extend(listing.entries);
            after = listing.next;
            if after.is_none() {
                break;
            }
        }
        Ok(entries)
    }
}
