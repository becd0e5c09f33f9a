//! Which transactions this process has already taken to the provider, for session services that take no claims (see
//! [`super::claim`]): a code is redeemed once here, also when a browser sends the same callback twice at once.
//!
//! Invariant: bounded; when full, the oldest entry goes, and with it only the protection against a repetition that the
//! provider refuses anyway. Deliberately absent: sharing between replicas, for the same reason.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::sign_in::transaction::id_of_state;

/// Entries kept: at 60 callbacks a second, those of about 18 minutes, in about 4 MB.
const MAX_ENTRIES: usize = 65_536;

/// The transactions taken, by the ID of their state.
#[derive(Debug)]
pub(crate) struct RedeemedTransactions {
    duration_ms: u64,
    taken: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    ids: HashSet<String>,
    by_age: VecDeque<(u64, String)>,
}

impl RedeemedTransactions {
    /// Remembers each transaction for as long as it could be used again.
    #[must_use]
    pub(crate) fn new(duration_secs: u64) -> Self {
        Self {
            duration_ms: duration_secs.saturating_mul(1000),
            taken: Mutex::default(),
        }
    }

    /// Takes the transaction of this state; false if it has been taken before.
    #[must_use]
    pub(crate) fn take(&self, state: &str, now_ms: u64) -> bool {
        let id = id_of_state(state);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while taken.by_age.len() >= MAX_ENTRIES
            || taken.by_age.front().is_some_and(|(ends, _)| *ends <= now_ms)
        {
            let Some((_, old)) = taken.by_age.pop_front() else {
                break;
            };
            taken.ids.remove(&old);
        }
        let fresh = taken.ids.insert(id.clone());
        if fresh {
            taken
                .by_age
                .push_back((now_ms.saturating_add(self.duration_ms), id));
        }
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_taken_once_as_long_as_it_could_be_used() {
        let redeemed = RedeemedTransactions::new(60);
        assert!(redeemed.take("a", 1_000));
        assert!(!redeemed.take("a", 1_000 + 59_999));
        assert!(redeemed.take("b", 1_000));
        assert!(redeemed.take("a", 1_000 + 60_000));
    }

    #[test]
    fn memory_is_bounded() {
        let redeemed = RedeemedTransactions::new(3600);
        for n in 0..(MAX_ENTRIES + 10) {
            assert!(redeemed.take(&n.to_string(), 1));
        }
        assert_eq!(redeemed.taken.lock().unwrap().ids.len(), MAX_ENTRIES);
    }
}
