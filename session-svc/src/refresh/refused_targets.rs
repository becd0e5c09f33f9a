//! What a provider refused a moment ago: a route that names an API the provider issues no token for would otherwise cost it one
//! request for each request of a browser.
//!
//! Invariants
//! - A refusal is remembered for what was asked alone: the session, the tokens it had, the API and the scopes. After a refresh of
//!   the session the provider is asked again.
//! - An outage is never remembered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::wanted::name_of;
use crate::session::{ApiTarget, Handle, Name, Session};
use crate::sessions::ports::TokenRefreshError;

/// How long: short enough for whoever mends the provider's settings to see it work, long enough that a page's requests cost one.
const REMEMBERED_MS: u64 = 30_000;
/// Most refusals of one process, about a megabyte; beyond them the provider is asked.
const MOST: usize = 8_192;

/// Session, generation of its tokens, API and scopes.
type Asked = (Handle, u64, Name);

struct RememberedRefusal {
    error: TokenRefreshError,
    at_ms: u64,
}

impl RememberedRefusal {
    /// Not one of the future either: the clock may have been set back.
    fn counts(&self, now_ms: u64) -> bool {
        now_ms
            .checked_sub(self.at_ms)
            .is_some_and(|age| age < REMEMBERED_MS)
    }
}

/// The refusals of this process; clones share them.
#[derive(Clone, Default)]
pub(super) struct RefusedTargets(Arc<Mutex<HashMap<Asked, RememberedRefusal>>>);

impl RefusedTargets {
    /// What the provider said of the same a moment ago, where it refused; `now_ms` is the wall clock.
    pub(super) fn find(
        &self,
        session: &Session,
        target: &ApiTarget,
        now_ms: u64,
    ) -> Option<TokenRefreshError> {
        let refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let refusal = refusals.get(&asked(session, target))?;
        refusal.counts(now_ms).then_some(refusal.error)
    }

    /// Remembers an error if it is a refusal of the API.
    pub(super) fn remember(
        &self,
        session: &Session,
        target: &ApiTarget,
        error: TokenRefreshError,
        now_ms: u64,
    ) {
        match error {
            TokenRefreshError::TargetRefused
            | TokenRefreshError::ScopeRefused
            | TokenRefreshError::ExchangeRefused
            | TokenRefreshError::SubjectRefused => {}
            // Of the session or of its refresh token, which the session itself says; or an outage.
            TokenRefreshError::Missing
            | TokenRefreshError::Refused
            | TokenRefreshError::Rejected
            | TokenRefreshError::ProviderUnavailable
            | TokenRefreshError::StoreUnavailable
            | TokenRefreshError::UnknownKey(_)
            | TokenRefreshError::Internal => return,
        }
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.len() >= MOST {
            refusals.retain(|_, refusal| refusal.counts(now_ms));
        }
        if refusals.len() < MOST {
            let at_ms = now_ms;
            refusals.insert(asked(session, target), RememberedRefusal { error, at_ms });
        }
    }
}

fn asked(session: &Session, target: &ApiTarget) -> Asked {
    (session.handle, session.tokens.generation, name_of(target, &[]))
}
