//! Pauses after a refusal that leaves the session unchanged, such as `invalid_request` or a wrong client
//! secret. Otherwise each request of a page would cause one request to the provider.
//!
//! Invariants
//! - A pause is for one session, its current tokens and the kind of request. It ends early with new tokens.
//! - Each refusal doubles the next pause, up to a limit. A provider outage starts none while callers wait.
//! - Each process has its own pauses, so N replicas send N times as many requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::ports::TokenRefreshError;
use super::token_request::name_of;
use crate::session::{ApiTarget, Handle, Name, Session};

/// The most pauses of a kind, about a megabyte. Above that, requests go to the provider without a pause.
const MOST: usize = 8_192;

/// The kind of request that pauses.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Paused {
    /// Refreshes that callers wait for.
    Refresh,
    /// Refreshes that no caller waits for.
    Revalidation,
    /// Requests for a token for this API.
    Target(Name),
}

impl Paused {
    pub(super) fn of_target(target: &ApiTarget) -> Self {
        Self::Target(name_of(target, &[]))
    }

    /// The first and the longest pause, in milliseconds.
    fn bounds_ms(self) -> (u64, u64) {
        match self {
            // One page's requests cause one call, and an operator soon sees the effect of a fix.
            Self::Refresh => (1_000, 30_000),
            // A recovered provider does not receive requests of all sessions at once.
            Self::Revalidation => (30_000, 900_000),
            Self::Target(_) => (30_000, 30_000),
        }
    }
}

struct Pause {
    error: TokenRefreshError,
    generation: u64,
    began_ms: u64,
    length_ms: u64,
}

impl Pause {
    /// Also over if the time is before its start: the clock may have been set back.
    fn is_over(&self, now_ms: u64) -> bool {
        now_ms
            .checked_sub(self.began_ms)
            .is_none_or(|age_ms| age_ms >= self.length_ms)
    }
}

/// The pauses of this process. Clones share them.
#[derive(Clone, Default)]
pub(super) struct RefreshPauses(Arc<Mutex<HashMap<(Handle, Paused), Pause>>>);

impl RefreshPauses {
    /// The provider's recent refusal for these tokens of the session, if any; `now_ms` is the store's clock.
    pub(super) fn find(&self, session: &Session, paused: Paused, now_ms: u64) -> Option<TokenRefreshError> {
        let pauses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = pauses.get(&(session.handle, paused))?;
        let counts = pause.generation == session.tokens.generation && !pause.is_over(now_ms);
        counts.then_some(pause.error)
    }

    /// Starts a pause, twice as long as the last one for these tokens.
    pub(super) fn begin(&self, session: &Session, paused: Paused, error: TokenRefreshError, now_ms: u64) {
        let mut pauses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (key, generation) = ((session.handle, paused), session.tokens.generation);
        let last = pauses.get(&key);
        let last = last.filter(|pause| pause.generation == generation);
        let (first_ms, longest_ms) = paused.bounds_ms();
        let length_ms = last.map_or(first_ms, |pause| (pause.length_ms * 2).min(longest_ms));
        let kind = std::mem::discriminant(&paused);
        let count = |pauses: &HashMap<(Handle, Paused), Pause>| {
            let kinds = pauses.keys().map(|(_, paused)| std::mem::discriminant(paused));
            kinds.filter(|other| *other == kind).count()
        };
        if pauses.len() >= MOST {
            pauses.retain(|_, pause| !pause.is_over(now_ms));
        }
        if pauses.len() < MOST || count(&pauses) < MOST {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::access::tests::session;

    #[test]
    fn each_refusal_doubles_the_pause_and_other_tokens_end_it() {
        let pauses = RefreshPauses::default();
        let mut session = session(true, true, false);
        let mut now_ms = 1_000_000;
        for length_ms in [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            let error = TokenRefreshError::Rejected;
            assert_eq!(pauses.find(&session, Paused::Refresh, now_ms), None);
            pauses.begin(&session, Paused::Refresh, error, now_ms);
            assert_eq!(
                pauses.find(&session, Paused::Refresh, now_ms + length_ms - 1),
                Some(error),
                "{length_ms}"
            );
            assert_eq!(
                pauses.find(&session, Paused::Refresh, now_ms - 1),
                None,
                "the clock was set back"
            );
            now_ms += length_ms;
        }
        pauses.begin(&session, Paused::Refresh, TokenRefreshError::Rejected, now_ms);
        session.tokens.generation += 1;
        assert_eq!(pauses.find(&session, Paused::Refresh, now_ms), None);
    }
}
