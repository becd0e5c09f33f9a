//! Used proofs: each passes once within its validity (RFC 9449 section 11.1).
//!
//! Invariants
//! - A proof is remembered for at least as long as [`oidc::verify_proof`] accepts it. No client can evict
//!   one: if the store is full, no proof passes.
//! - Each key has a bounded share of the store.
//!
//! Deliberately absent: sharing between replicas. An attacker can use a stolen proof and token once at each
//! replica, for the one request the proof names.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use oidc::PROOF_WINDOW_SECS;

use super::digest::digest_of;
use super::refusal::TokenRefusal;
use crate::http::protect::rate_limit::RateLimiter;

/// How long a generation collects proofs: from the earliest to the latest time a proof is accepted, plus a
/// second for rounding. The previous generation is kept too, so each proof is remembered at least that long.
const GENERATION_MS: u64 = (2 * PROOF_WINDOW_SECS + 1) * 1_000;
/// Proofs per generation: 4.5 MiB, for 1,600 a second.
const MAX_PROOFS: usize = 200_000;
/// Proofs per key and minute: a hundred a second.
const OF_ONE_KEY: u64 = 6_000;
const MINUTE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Generations {
    current: HashSet<[u8; 16]>,
    before: HashSet<[u8; 16]>,
    began_ms: u64,
}

/// The proofs of the last minutes.
pub(super) struct ProofsSeen {
    generations: Mutex<Generations>,
    of_key: RateLimiter,
}

impl ProofsSeen {
    pub(super) fn new() -> Self {
        Self {
            generations: Mutex::default(),
            of_key: RateLimiter::within(MINUTE, OF_ONE_KEY),
        }
    }

    /// Uses up the proof `jti` of the key with this thumbprint.
    pub(super) fn take(&self, thumbprint: &str, jti: &str, now_ms: u64) -> Result<(), TokenRefusal> {
        let name = name(thumbprint, jti);
        let mut seen = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let age_ms = now_ms.saturating_sub(seen.began_ms);
        if age_ms >= GENERATION_MS {
            let last = std::mem::take(&mut seen.current);
            seen.before = if age_ms < 2 * GENERATION_MS {
                last
            } else {
                HashSet::new()
            };
            seen.began_ms = now_ms;
        }
        if seen.before.contains(&name) || seen.current.contains(&name) {
            return Err(TokenRefusal::Replay);
        }
        if seen.current.len() >= MAX_PROOFS {
            return Err(TokenRefusal::Overloaded);
        }
        // Only new entries count for the share: a replayed proof uses up none of the key's share.
        self.of_key.check(thumbprint, now_ms)?;
        seen.current.insert(name);
        Ok(())
    }
}

/// The stored name of a proof: `jti` is unique for its key only.
fn name(thumbprint: &str, jti: &str) -> [u8; 16] {
    let mut name = [0; 16];
    name.copy_from_slice(&digest_of(&[thumbprint, jti])[..16]);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_800_000_000_000;

    #[test]
    fn a_proof_counts_once_for_as_long_as_it_could_be_shown() {
        // At any time within a generation.
        for first in [0, 1, 60_000, GENERATION_MS - 1, GENERATION_MS, GENERATION_MS + 1] {
            let seen = ProofsSeen::new();
            assert!(seen.take("key", "before", START).is_ok());
            let at = START + first;
            assert!(seen.take("key", "one", at).is_ok());
            for later in [0, 60_000, GENERATION_MS - 1] {
                let again = seen.take("key", "one", at + later);
                assert!(matches!(again, Err(TokenRefusal::Replay)), "{first} {later}");
            }
        }
    }

    #[test]
    fn another_key_may_use_the_same_name_and_no_two_pairs_are_one() {
        let seen = ProofsSeen::new();
        for (thumbprint, jti) in [("a", "bc"), ("ab", "c"), ("", "abc"), ("b", "bc")] {
            assert!(seen.take(thumbprint, jti, START).is_ok(), "{thumbprint} {jti}");
        }
    }

    #[test]
    fn a_proof_that_is_repeated_uses_up_none_of_its_keys_share() {
        let seen = ProofsSeen::new();
        assert!(seen.take("key", "one", START).is_ok());
        for _ in 0..7_000 {
            assert!(matches!(
                seen.take("key", "one", START),
                Err(TokenRefusal::Replay)
            ));
        }
        assert!(seen.take("key", "another", START).is_ok());
    }

    #[test]
    fn one_key_has_its_share_and_where_there_is_no_room_nothing_passes() {
        let seen = ProofsSeen::new();
        let taken = |key: &str, count: usize| {
            let mut all = (0..count).map(|number| seen.take(key, &number.to_string(), START));
            all.find(Result::is_err).unwrap_or(Ok(()))
        };
        assert!(taken("greedy", 6_000).is_ok());
        assert!(matches!(
            seen.take("greedy", "more", START),
            Err(TokenRefusal::TooMany(_))
        ));
        let full = (0..100).map(|key| taken(&format!("key-{key}"), 6_000));
        let mut full = full.filter(|taken| matches!(taken, Err(TokenRefusal::Overloaded)));
        assert!(full.next().is_some());
        let again = seen.take("greedy", "0", START + 60_000);
        assert!(
            matches!(again, Err(TokenRefusal::Replay)),
            "none is forgotten for it"
        );
        assert!(seen.take("another", "one", START + GENERATION_MS).is_ok());
    }
}
