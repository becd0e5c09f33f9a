//! Pauses after a refusal of the provider that leaves the session as it is, such as `invalid_request`, a wrong client secret, or an API it
//! issues no token for: a page's requests, or a route that names such an API, would otherwise cost it one request each.
//!
//! Invariants
//! - A pause is for one session, the tokens it has, and what was requested with them. It ends early when other tokens are saved.
//! - Each refusal doubles the next pause, up to a limit. An outage of the provider begins none where callers wait.
//! - Each process keeps its own pauses, so N replicas ask N times as often.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::ports::TokenRefreshError;
use super::wanted::name_of;
use crate::session::{ApiTarget, Handle, Name, Session};

/// The first and the longest pause where callers wait: the requests of one page make one call, and an operator who corrects the
/// client sees it work this soon.
pub(super) const OF_WAITING_CALLERS_MS: (u64, u64) = (1_000, 30_000);
/// The same where sessions are revalidated: no caller waits, and a provider that comes back is not met by all sessions at once.
pub(super) const OF_REVALIDATIONS_MS: (u64, u64) = (30_000, 900_000);
/// The same of a token for an API.
pub(super) const OF_TARGETS_MS: (u64, u64) = (30_000, 30_000);
/// The most pauses of one kind, about a megabyte. Beyond them the provider is asked.
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

/// The session, and the API if the request names one.
type PauseKey = (Handle, Option<Name>);

/// The pauses of one kind in this process. Clones share them.
#[derive(Clone)]
pub(super) struct RefreshPauses {
    bounds_ms: (u64, u64),
    all: Arc<Mutex<HashMap<PauseKey, Pause>>>,
}

impl RefreshPauses {
    /// No pauses yet, of these lengths.
    pub(super) fn new(bounds_ms: (u64, u64)) -> Self {
        Self {
            bounds_ms,
            all: Arc::default(),
        }
    }

    /// Why the provider refused these tokens of the session a moment ago, if it did; `now_ms` is the store's clock.
    pub(super) fn find(
        &self,
        session: &Session,
        target: Option<&ApiTarget>,
        now_ms: u64,
    ) -> Option<TokenRefreshError> {
        let pauses = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = pauses.get(&key(session, target))?;
        let counts = pause.generation == session.tokens.generation && !pause.is_over(now_ms);
        counts.then_some(pause.error)
    }

    /// Begins a pause, twice as long as the last one for these tokens.
    pub(super) fn begin(
        &self,
        session: &Session,
        target: Option<&ApiTarget>,
        error: TokenRefreshError,
        now_ms: u64,
    ) {
        let mut pauses = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let (key, generation) = (key(session, target), session.tokens.generation);
        let last = pauses.get(&key);
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
            pauses.insert(key, pause);
        }
    }
}

fn key(session: &Session, target: Option<&ApiTarget>) -> PauseKey {
    (session.handle, target.map(|target| name_of(target, &[])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionState;
    use crate::session::access::tests::session;

    #[test]
    fn each_refusal_doubles_the_pause_and_other_tokens_end_it() {
        let pauses = RefreshPauses::new(OF_WAITING_CALLERS_MS);
        let mut session = session(true, true, SessionState::Active);
        let mut now_ms = 1_000_000;
        for length_ms in [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            let error = TokenRefreshError::Rejected;
            assert_eq!(pauses.find(&session, None, now_ms), None);
            pauses.begin(&session, None, error, now_ms);
            assert_eq!(
                pauses.find(&session, None, now_ms + length_ms - 1),
                Some(error),
                "{length_ms}"
            );
            assert_eq!(
                pauses.find(&session, None, now_ms - 1),
                None,
                "the clock was set back"
            );
            now_ms += length_ms;
        }
        pauses.begin(&session, None, TokenRefreshError::Rejected, now_ms);
        session.tokens.generation += 1;
        assert_eq!(pauses.find(&session, None, now_ms), None);
    }
}
