//! Bounds how many places one visitor, or one user, may occupy at one time.
//!
//! Counts are in a table of fixed size, found by a keyed hash that differs in every process. Two keys in one
//! slot share a count. Not supported: sharing between replicas, queues, rates (`rate_limit`).

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of slots: 64 KiB, four for each of at most 4,096 concurrent requests by default.
const SLOTS: usize = 16_384;

/// Counts by key.
#[derive(Debug)]
pub(crate) struct Shares {
    slots: Box<[AtomicU32]>,
    hasher: RandomState,
}

/// One place of a key, until the last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    _counted: Arc<ShareSlot>,
}

#[derive(Debug)]
struct ShareSlot {
    shares: Arc<Shares>,
    slot: usize,
}

impl Shares {
    /// An empty table.
    #[must_use]
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            slots: (0..SLOTS).map(|_| AtomicU32::new(0)).collect(),
            hasher: RandomState::new(),
        })
    }

    /// Takes one more place for this key, if it has fewer than `most`.
    #[must_use]
    pub(crate) fn enter(self: &Arc<Self>, key: impl Hash, most: u32) -> Option<Share> {
        let slot = usize::try_from(self.hasher.hash_one(key)).unwrap_or_default() % SLOTS;
        let before = self.slots[slot].fetch_add(1, Ordering::Relaxed);
        let counted = ShareSlot {
            shares: Arc::clone(self),
            slot,
        };
        // On a refusal `counted` is dropped, which takes the count back.
        (before < most).then(|| Share {
            _counted: Arc::new(counted),
        })
    }

    /// The number of places in use, over all keys.
    #[must_use]
    pub(crate) fn count(&self) -> usize {
        let counts = self
            .slots
            .iter()
            .map(|slot| slot.load(Ordering::Relaxed) as usize);
        counts.sum()
    }
}

impl Drop for ShareSlot {
    fn drop(&mut self) {
        self.shares.slots[self.slot].fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_so_many_places_and_gets_them_back() {
        const MOST: u32 = 100;
        let shares = Shares::new();
        let mut held: Vec<_> = (0..MOST)
            .map(|_| shares.enter(("issuer", "a"), MOST).unwrap())
            .collect();
        for _ in 0..3 {
            assert!(
                shares.enter(("issuer", "a"), MOST).is_none(),
                "and refusals are not counted"
            );
        }
        assert_eq!(shares.count(), 100);
        let clone = held[0].clone();
        held.remove(0);
        assert!(
            shares.enter(("issuer", "a"), MOST).is_none(),
            "a clone is the same place"
        );
        drop(clone);
        held.push(shares.enter(("issuer", "a"), MOST).unwrap());
        assert!(shares.enter(("issuer", "a"), MOST).is_none());
        drop(held);
        assert_eq!(shares.count(), 0);
    }
}
