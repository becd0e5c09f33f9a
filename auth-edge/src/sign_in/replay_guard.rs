//! Logout tokens seen by this process: the same one a second time is refused (Back-Channel Logout, section 2.6).
//!
//! Invariants: an entry lives as long as its token could pass the other checks; when the guard is full it refuses new
//! tokens rather than forget old ones. A logout that fails is released, so that the provider can send it again.
//! Deliberately absent, and to be added once the session service can remember: replicas do not share this memory.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Tokens remembered at once: more than a provider that signs out a large company sends in the minutes they live.
const MAX_ENTRIES: usize = 262_144;

/// Why a token may not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It was used before.
    Replayed,
    /// Too many are remembered already.
    Full,
}

/// The tokens seen, by `jti`, with the time at which each may be forgotten.
#[derive(Debug, Default)]
pub struct ReplayGuard {
    seen: Mutex<HashMap<String, u64>>,
}

impl ReplayGuard {
    /// Reserves a token until `forget_at` (seconds since the Unix epoch).
    pub fn reserve(&self, jti: &str, forget_at: u64, now: u64) -> Result<(), Refused> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.get(jti).is_some_and(|until| *until > now) {
            return Err(Refused::Replayed);
        }
        if seen.len() >= MAX_ENTRIES {
            seen.retain(|_, until| *until > now);
            if seen.len() >= MAX_ENTRIES {
                return Err(Refused::Full);
            }
        }
        seen.insert(jti.to_owned(), forget_at);
        Ok(())
    }

    /// Gives a token back that could not be acted on.
    pub fn release(&self, jti: &str) {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(jti);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_once_until_it_may_be_forgotten_or_was_released() {
        let guard = ReplayGuard::default();
        assert_eq!(guard.reserve("a", 100, 1), Ok(()));
        assert_eq!(guard.reserve("a", 100, 99), Err(Refused::Replayed));
        assert_eq!(guard.reserve("a", 200, 100), Ok(()));
        guard.release("a");
        assert_eq!(guard.reserve("a", 200, 100), Ok(()));
    }

    #[test]
    fn a_full_guard_refuses_rather_than_forgets() {
        let guard = ReplayGuard::default();
        for n in 0..MAX_ENTRIES {
            guard.reserve(&n.to_string(), 100, 1).unwrap();
        }
        assert_eq!(guard.reserve("one more", 100, 1), Err(Refused::Full));
        assert_eq!(guard.reserve("one more", 200, 100), Ok(()));
    }
}
