//! Pauses after a refresh that a provider refuses without ending the grant, such as `invalid_request` or a wrong client secret.
//!
//! Invariants
//! - A pause is for one session and the tokens it has. It ends early when other tokens are saved.
//! - Each refusal doubles the next pause, up to a limit. An outage of the provider begins none.
//! - Each process keeps its own pauses, so N replicas ask N times as often.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::session::{Handle, Session};

/// The first pause: the requests of one page make one call.
const FIRST_MS: u64 = 1_000;
/// The longest pause: an operator who corrects the client sees it work this soon.
const LONGEST_MS: u64 = 30_000;
/// The most pauses of one process, about a megabyte. Beyond them the provider is asked.
const MOST: usize = 8_192;

struct Pause {
    generation: u64,
    began_ms: u64,
    length_ms: u64,
}

impl Pause {
    /// Not before it began either: the clock may have been set back.
    fn is_over(&self, now_ms: u64) -> bool {
        now_ms
            .checked_sub(self.began_ms)
            .is_none_or(|age_ms| age_ms >= self.length_ms)
    }
}

/// The pauses of this process. Clones share them.
#[derive(Clone, Default)]
pub(super) struct RefreshPauses(Arc<Mutex<HashMap<Handle, Pause>>>);

impl RefreshPauses {
    /// Whether the provider refused these tokens of the session a moment ago; `now_ms` is the store's clock.
    pub(super) fn is_paused(&self, session: &Session, now_ms: u64) -> bool {
        let pauses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pauses
            .get(&session.handle)
            .is_some_and(|pause| pause.generation == session.tokens.generation && !pause.is_over(now_ms))
    }

    /// Begins a pause, twice as long as the last one for these tokens.
    pub(super) fn begin(&self, session: &Session, now_ms: u64) {
        let mut pauses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = session.tokens.generation;
        let last = pauses.get(&session.handle);
        let last = last.filter(|pause| pause.generation == generation);
        let length_ms = last.map_or(FIRST_MS, |pause| (pause.length_ms * 2).min(LONGEST_MS));
        if pauses.len() >= MOST {
            pauses.retain(|_, pause| !pause.is_over(now_ms));
        }
        if pauses.len() < MOST {
            let pause = Pause {
                generation,
                began_ms: now_ms,
                length_ms,
            };
            pauses.insert(session.handle, pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionState;
    use crate::session::access::tests::session;

    #[test]
    fn each_refusal_doubles_the_pause_and_other_tokens_end_it() {
        let pauses = RefreshPauses::default();
        let mut session = session(true, true, SessionState::Active);
        let mut now_ms = 1_000_000;
        for length_ms in [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            assert!(!pauses.is_paused(&session, now_ms));
            pauses.begin(&session, now_ms);
            assert!(pauses.is_paused(&session, now_ms + length_ms - 1), "{length_ms}");
            assert!(!pauses.is_paused(&session, now_ms - 1), "the clock was set back");
            now_ms += length_ms;
        }
        pauses.begin(&session, now_ms);
        session.tokens.generation += 1;
        assert!(!pauses.is_paused(&session, now_ms));
    }
}
