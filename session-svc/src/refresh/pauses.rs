//! Pauses after a refresh that a provider refuses without ending the grant, such as `invalid_request`, a wrong client secret, or a
//! status that RFC 6749 does not have.
//!
//! Invariants
//! - A pause is for one session and the tokens it has. It ends early when other tokens are saved.
//! - Each refusal doubles the next pause, up to a limit. An outage of the provider begins none where callers wait.
//! - Each process keeps its own pauses, so N replicas ask N times as often.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::session::{Handle, Session};
use crate::sessions::ports::TokenRefreshError;

/// The first and the longest pause where callers wait: the requests of one page make one call, and an operator who corrects the
/// client sees it work this soon.
const OF_WAITING_CALLERS_MS: (u64, u64) = (1_000, 30_000);
/// The same where sessions are revalidated: no caller waits, and a provider that comes back is not met by all sessions at once.
const OF_REVALIDATIONS_MS: (u64, u64) = (30_000, 900_000);
/// The most pauses of one process, about a megabyte. Beyond them the provider is asked.
const MOST: usize = 8_192;

struct Pause {
    error: TokenRefreshError,
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
#[derive(Clone)]
pub(super) struct RefreshPauses {
    bounds_ms: (u64, u64),
    all: Arc<Mutex<HashMap<Handle, Pause>>>,
}

impl RefreshPauses {
    /// No pauses yet of refreshes that callers wait for.
    pub(super) fn of_waiting_callers() -> Self {
        Self {
            bounds_ms: OF_WAITING_CALLERS_MS,
            all: Arc::default(),
        }
    }

    /// No pauses yet of revalidations.
    pub(super) fn of_revalidations() -> Self {
        Self {
            bounds_ms: OF_REVALIDATIONS_MS,
            all: Arc::default(),
        }
    }

    /// Why the provider refused these tokens of the session a moment ago, if it did; `now_ms` is the store's clock.
    pub(super) fn find(&self, session: &Session, now_ms: u64) -> Option<TokenRefreshError> {
        let pauses = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = pauses.get(&session.handle)?;
        let counts = pause.generation == session.tokens.generation && !pause.is_over(now_ms);
        counts.then_some(pause.error)
    }

    /// Begins a pause, twice as long as the last one for these tokens.
    pub(super) fn begin(&self, session: &Session, error: TokenRefreshError, now_ms: u64) {
        let mut pauses = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = session.tokens.generation;
        let last = pauses.get(&session.handle);
        let last = last.filter(|pause| pause.generation == generation);
        let (first_ms, longest_ms) = self.bounds_ms;
        let length_ms = last.map_or(first_ms, |pause| (pause.length_ms * 2).min(longest_ms));
        if pauses.len() >= MOST {
            pauses.retain(|_, pause| !pause.is_over(now_ms));
        }
        if pauses.len() < MOST {
            let pause = Pause {
                error,
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
        let pauses = RefreshPauses::of_waiting_callers();
        let mut session = session(true, true, SessionState::Active);
        let mut now_ms = 1_000_000;
        for length_ms in [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            let error = TokenRefreshError::Rejected;
            assert_eq!(pauses.find(&session, now_ms), None);
            pauses.begin(&session, error, now_ms);
            assert_eq!(
                pauses.find(&session, now_ms + length_ms - 1),
                Some(error),
                "{length_ms}"
            );
            assert_eq!(pauses.find(&session, now_ms - 1), None, "the clock was set back");
            now_ms += length_ms;
        }
        pauses.begin(&session, TokenRefreshError::Rejected, now_ms);
        session.tokens.generation += 1;
        assert_eq!(pauses.find(&session, now_ms), None);
    }
}
