//! Refreshing before anybody has to wait: in the background, at most one try at a time per session, across replicas.
//!
//! Deliberately absent: a schedule. A session that nobody uses is not refreshed.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chassis::audit::carried;
use tokio::sync::Semaphore;

use super::Refresher;
use super::measures::AheadOutcome;
use super::pauses::RefreshPauses;
use super::wanted::Wanted;
use crate::session::{Cause, Handle, Session, SessionState};
use crate::sessions::ports::TokenRefreshError;
use crate::store::RememberedName;

/// How long a session is left alone after a try, by all replicas: a provider that is down is not called at the rate of
/// the calls, and tokens that live shorter than the span are not refreshed without end.
const PAUSE: Duration = Duration::from_secs(15);

/// Tries under way at once in one process; more are left to whoever needs the token later.
const MAX_TRIES: usize = 64;

/// The sessions this process refreshes ahead at this moment.
pub(super) struct Ahead {
    trying: Mutex<HashSet<Handle>>,
    permits: Semaphore,
    /// After tries that failed, where sessions are revalidated.
    pauses: RefreshPauses,
}

impl Default for Ahead {
    fn default() -> Self {
        Self {
            trying: Mutex::default(),
            permits: Semaphore::new(MAX_TRIES),
            pauses: RefreshPauses::of_revalidations(),
        }
    }
}

/// A try under way; over when dropped.
struct Try {
    ahead: Arc<Ahead>,
    handle: Handle,
}

impl Ahead {
    fn begin(self: &Arc<Self>, handle: Handle) -> Option<Try> {
        let mut trying = self.trying.lock().unwrap_or_else(PoisonError::into_inner);
        trying.insert(handle).then(|| Try {
            ahead: Arc::clone(self),
            handle,
        })
    }
}

impl Drop for Try {
    fn drop(&mut self) {
        let mut trying = self.ahead.trying.lock().unwrap_or_else(PoisonError::into_inner);
        trying.remove(&self.handle);
    }
}

impl Refresher {
    /// Refreshes the tokens seen in the background, unless that is being tried or was tried just now.
    pub(super) fn refresh_ahead(&self, seen: Session, caller: String) {
        let Some(trying) = self.ahead.begin(seen.handle) else {
            return;
        };
        let refresher = self.clone();
        self.work.spawn(carried(async move {
            let outcome = refresher.try_ahead(&trying.ahead, &seen, &caller).await;
            refresher.measures.ahead(outcome);
            drop(trying);
        }));
    }

    async fn try_ahead(&self, ahead: &Ahead, seen: &Session, caller: &str) -> AheadOutcome {
        if ahead.pauses.find(seen, self.keeper.now_ms()).is_some() {
            return AheadOutcome::TriedBefore;
        }
        let Ok(_permit) = ahead.permits.try_acquire() else {
            return AheadOutcome::NoRoom;
        };
        let name = RememberedName::Ahead(seen.handle);
        match self.keeper.store().remember(name, &[1], PAUSE).await {
            Ok(None) => {}
            Ok(Some(_)) => return AheadOutcome::TriedBefore,
            // Whoever needs the token will find out whether the store is back.
            Err(_) => return AheadOutcome::Failed,
        }
        if self.revalidates && seen.state == SessionState::NeedsSignIn {
            // It was refused before sessions were revalidated, or by a process that died before it ended the session.
            return match self.remove(seen, Cause::Refused).await {
                Ok(()) => AheadOutcome::Refreshed,
                Err(_) => AheadOutcome::Failed,
            };
        }
        let outcome = self
            .join(seen, Wanted::session(seen), caller, true)
            .outcome()
            .await;
        if let Err(error) = &outcome
            && self.revalidates
            && error.keeps_tokens()
        {
            ahead.pauses.begin(seen, *error, self.keeper.now_ms());
        }
        match outcome {
            Ok(_) => AheadOutcome::Refreshed,
            Err(
                TokenRefreshError::Missing
                | TokenRefreshError::Refused
                | TokenRefreshError::Rejected
                | TokenRefreshError::TargetRefused
                | TokenRefreshError::ScopeRefused
                | TokenRefreshError::ExchangeRefused
                | TokenRefreshError::SubjectRefused
                | TokenRefreshError::ProviderUnavailable
                | TokenRefreshError::StoreUnavailable
                | TokenRefreshError::UnknownKey(_)
                | TokenRefreshError::Internal,
            ) => AheadOutcome::Failed,
        }
    }
}
