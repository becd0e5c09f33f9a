//! Proofs that were used: each counts once, as long as its time could pass (RFC 9449 section 11.1).
//!
//! Invariants
//! - A proof is remembered at least for as long as [`oidc::verify_proof`] would take it, and nothing a client does makes room by
//!   forgetting one: where there is no room, no proof passes.
//! - No key has more than its share of the room.
//!
//! Deliberately absent: sharing between replicas. A proof that was stolen with its token may be used once at each of them, for
//! the one request it names.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use oidc::PROOF_WINDOW_SECS;

use super::digest::digest_of;
use super::refusal::TokenRefusal;
use crate::http::protect::rate_limit::RateLimiter;

/// How long a generation of proofs is added to: from the earliest to the latest a proof may be shown. The one before it is kept
/// as well, so that each is remembered for at least so long.
/// The second more is what seconds cut off.
const GENERATION_MS: u64 = (2 * PROOF_WINDOW_SECS + 1) * 1_000;
/// Proofs of one generation: 4.5 MiB, for 1,600 a second.
const MAX_PROOFS: usize = 200_000;
/// Proofs of one key in a minute: a hundred a second.
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

    /// Uses up the proof `jti` of the key of this thumbprint.
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
        // Only what takes room counts for the share: whoever repeats a proof of somebody's uses none of it up.
        self.of_key.check(thumbprint, now_ms)?;
        seen.current.insert(name);
        Ok(())
    }
}

/// What a proof is remembered by: `jti` is unique for its key alone.
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
        // Whenever in a generation it comes.
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
