//! The notes of one receiver in the order they were written, as this replica knows them.
//!
//! A store lists the newest first, and whoever tells begins with the oldest: so the names are kept here, and a look at the list goes no
//! further back than to what is known. From time to time it goes back to the end, for what others have removed.
//!
//! Invariant: what is here may be gone from the store, and is passed over then; what is in the store is here after a look, but for a
//! note that took longer than [`LATE_MS`] to be written, which is here after the next look at everything.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::note::list_of;
use super::receiver::Receiver;
use crate::session::Name;
use crate::store::{SessionStore, StoreError};

/// Entries asked for at once.
const PAGE: usize = 1_000;

/// How much later a note may be there than its time says, in milliseconds: longer than one write takes.
const LATE_MS: u64 = 10_000;

/// How often everything is looked at.
const WHOLE_EVERY: Duration = Duration::from_secs(60);

/// The notes of a receiver.
pub(super) struct Queue {
    list: Name,
    entries: BTreeSet<(u64, Name)>,
    whole_at: Option<Instant>,
}

impl Queue {
    pub(super) fn new(receiver: &Receiver) -> Self {
        Self {
            list: list_of(receiver),
            entries: BTreeSet::new(),
            whole_at: None,
        }
    }

    /// Looks what was added.
    pub(super) async fn look(&mut self, store: &dyn SessionStore) -> Result<(), StoreError> {
        let is_whole = self.whole_at.is_none_or(|at| at.elapsed() >= WHOLE_EVERY);
        let newest_ms = self.entries.last().map_or(0, |(at_ms, _)| *at_ms);
        let known_ms = newest_ms.saturating_sub(LATE_MS);
        let from_ms = if is_whole { 0 } else { known_ms };
        let began = Instant::now();
        let (mut found, mut after) = (BTreeSet::new(), None);
        'pages: loop {
            let page = store.list(self.list, after.as_ref(), PAGE).await?;
            for entry in page.entries {
                if entry.created_at_ms < from_ms {
                    break 'pages;
                }
                found.insert((entry.created_at_ms, entry.name));
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let replaced = self.entries.split_off(&(from_ms, Name::FIRST));
        drop(replaced);
        self.entries.append(&mut found);
        if is_whole {
            self.whole_at = Some(began);
        }
        Ok(())
    }

    /// The oldest, at most so many.
    pub(super) fn oldest(&self, count: usize) -> Vec<(u64, Name)> {
        self.entries.iter().take(count).copied().collect()
    }

    /// The oldest behind this one, at most so many.
    pub(super) fn behind(&self, entry: (u64, Name), count: usize) -> Vec<(u64, Name)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let behind = self.entries.range((Excluded(entry), Unbounded));
        behind.take(count).copied().collect()
    }

    /// Forgets one, which is gone.
    pub(super) fn forget(&mut self, entry: &(u64, Name)) {
        self.entries.remove(entry);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// When the oldest was written.
    pub(super) fn oldest_ms(&self) -> Option<u64> {
        self.entries.first().map(|(at_ms, _)| *at_ms)
    }
}
