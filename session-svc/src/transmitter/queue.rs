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

/// How much time lies at least between two looks at everything, for each page there is: two pages a second, however long the list.
const PAGE_PAUSE: Duration = Duration::from_millis(500);

/// A note as the queue knows it; the oldest comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct QueueEntry {
    /// When it was noted, in milliseconds since the Unix epoch.
    pub(super) noted_at_ms: u64,
    /// Its record.
    pub(super) name: Name,
}

/// The notes of a receiver.
pub(super) struct Queue {
    list: Name,
    entries: BTreeSet<QueueEntry>,
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
        let pages = u32::try_from(self.entries.len() / PAGE + 1).unwrap_or(u32::MAX);
        let pause = PAGE_PAUSE.saturating_mul(pages);
        let is_whole = self.whole_at.is_none_or(|at| at.elapsed() >= pause);
        let newest_ms = self.entries.last().map_or(0, |entry| entry.noted_at_ms);
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
                found.insert(QueueEntry {
                    noted_at_ms: entry.created_at_ms,
                    name: entry.name,
                });
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let replaced = self.entries.split_off(&QueueEntry {
            noted_at_ms: from_ms,
            name: Name::FIRST,
        });
        drop(replaced);
        self.entries.append(&mut found);
        if is_whole {
            self.whole_at = Some(began);
        }
        Ok(())
    }

    /// The oldest, at most so many.
    pub(super) fn oldest(&self, count: usize) -> Vec<QueueEntry> {
        self.entries.iter().take(count).copied().collect()
    }

    /// The oldest behind this one, at most so many.
    pub(super) fn behind(&self, entry: QueueEntry, count: usize) -> Vec<QueueEntry> {
        use std::ops::Bound::{Excluded, Unbounded};
        let behind = self.entries.range((Excluded(entry), Unbounded));
        behind.take(count).copied().collect()
    }

    /// Forgets one, which is gone.
    pub(super) fn forget(&mut self, entry: &QueueEntry) {
        self.entries.remove(entry);
    }

    /// Whether this one is here.
    pub(super) fn holds(&self, entry: &QueueEntry) -> bool {
        self.entries.contains(entry)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// When the oldest was written.
    pub(super) fn oldest_ms(&self) -> Option<u64> {
        self.entries.first().map(|entry| entry.noted_at_ms)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chassis::clock::ManualClock;

    use super::*;
    use crate::store::Record;
    use crate::store::memory::MemoryStore;

    const START_MS: u64 = 1_700_000_000_000;

    struct Scene {
        store: MemoryStore,
        queue: Queue,
    }

    impl Scene {
        fn new() -> Self {
            let clock = Arc::new(ManualClock::new(START_MS));
            let list = Name::from_bytes([9; 16]);
            Self {
                store: MemoryStore::new(clock, 10_000),
                queue: Queue {
                    list,
                    entries: BTreeSet::new(),
                    whole_at: None,
                },
            }
        }

        async fn note(&self, number: u16, at_ms: u64) -> Name {
            let mut bytes = [0; 16];
            let (head, _) = bytes.split_at_mut(2);
            head.copy_from_slice(&number.to_be_bytes());
            let record = Record {
                name: Name::from_bytes(bytes),
                version: 1,
                expires_at_ms: START_MS + 1_000_000,
                created_at_ms: at_ms,
                indexes: vec![self.queue.list],
                payload: vec![1],
            };
            let name = record.name;
            self.store.insert(record, Vec::new()).await.unwrap();
            name
        }

        async fn looked(&mut self) -> Vec<Name> {
            self.queue.look(&self.store).await.unwrap();
            let all = self.queue.oldest(usize::MAX);
            all.into_iter().map(|entry| entry.name).collect()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_comes_first_also_of_more_than_one_page() {
        let mut scene = Scene::new();
        let mut names = Vec::new();
        for number in 0..2_500 {
            names.push(scene.note(number, START_MS + u64::from(number)).await);
        }
        assert_eq!(scene.looked().await, names);
        let first = scene.queue.oldest(1)[0];
        assert_eq!(scene.queue.behind(first, 1)[0].name, names[1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_finds_what_was_added_late_or_removed_by_others() {
        let mut scene = Scene::new();
        let old = scene.note(1, START_MS).await;
        let new = scene.note(2, START_MS + 60_000).await;
        assert_eq!(scene.looked().await, [old, new]);
        let late = scene.note(3, START_MS + 60_000 - LATE_MS).await;
        scene.store.remove(new, Vec::new()).await.unwrap();
        assert_eq!(scene.looked().await, [old, late]);
        // Further back it is found by the next look at everything.
        scene.store.remove(old, Vec::new()).await.unwrap();
        let later = scene.note(4, START_MS + 1).await;
        tokio::time::advance(PAGE_PAUSE).await;
        assert_eq!(scene.looked().await, [later, late]);
    }
}
