//! The refreshes in flight in this process: all callers that want the same tokens share one flight.
//!
//! Invariants
//! - A caller's timeout does not affect the flight. Its outcome goes to the callers waiting at that moment.
//!   Later callers find no flight, and the outcome in the session.
//! - A flight detects that no caller waits and leaves the table in one step: no caller joins an abandoned
//!   one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use tracing::Span;

use super::ports::TokenRefreshError;
use super::token_request::TokenRequest;
use crate::session::{Handle, Session};

/// The outcome of a flight.
pub(super) type FlightResult = Result<Arc<Session>, TokenRefreshError>;

/// The tokens to refresh (a session's, or for an API), and which ones the caller has seen.
type FlightKey = (Handle, TokenRequest);

/// The progress of a flight.
#[derive(Clone)]
struct FlightProgress {
    /// Its span; the spans of all waiting callers link to it.
    span: Span,
    /// The store did not answer, and the request is retried.
    store_is_away: bool,
    outcome: Option<FlightResult>,
}

/// The flights of this process; clones share the table.
#[derive(Clone, Default)]
pub(super) struct Flights(Arc<Mutex<HashMap<FlightKey, watch::Sender<FlightProgress>>>>);

/// A caller's wait for a flight.
pub(super) struct FlightWaiter(watch::Receiver<FlightProgress>);

/// The entry of a flight in the table, removed on drop.
pub(super) struct FlightEntry {
    flights: Flights,
    key: FlightKey,
    progress: watch::Sender<FlightProgress>,
}

impl Flights {
    fn table(&self) -> MutexGuard<'_, HashMap<FlightKey, watch::Sender<FlightProgress>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the flight that refreshes these tokens. Without one, the caller also receives the entry of a
    /// new flight, and starts it in the span that `span` returns.
    pub(super) fn join(
        &self,
        handle: Handle,
        wanted: TokenRequest,
        span: impl FnOnce() -> Span,
    ) -> (FlightWaiter, Option<FlightEntry>) {
        let key = (handle, wanted);
        let mut table = self.table();
        if let Some(progress) = table.get(&key) {
            chassis::propagation::link_to(&progress.borrow().span);
            return (FlightWaiter(progress.subscribe()), None);
        }
        let (progress, waiting) = watch::channel(FlightProgress {
            span: span(),
            store_is_away: false,
            outcome: None,
        });
        table.insert(key.clone(), progress.clone());
        let flights = self.clone();
        let entry = FlightEntry {
            flights,
            key,
            progress,
        };
        (FlightWaiter(waiting), Some(entry))
    }
}

impl FlightEntry {
    /// The span of the flight.
    pub(super) fn span(&self) -> Span {
        self.progress.borrow().span.clone()
    }

    /// Sets whether the flight waits for the store.
    pub(super) fn set_store_away(&self, is_away: bool) {
        self.progress.send_if_modified(|progress| {
            let is_news = progress.store_is_away != is_away;
            progress.store_is_away = is_away;
            is_news
        });
    }

    /// Returns when no caller waits any more.
    pub(super) async fn abandoned(&self) {
        self.progress.closed().await;
    }

    /// Leaves the table if no caller waits; returns whether it left.
    pub(super) fn leave_if_abandoned(&self) -> bool {
        let mut table = self.flights.table();
        let abandoned = self.progress.receiver_count() == 0;
        if abandoned {
            table.remove(&self.key);
        }
        abandoned
    }

    /// Leaves the table, then wakes all waiting callers with the outcome.
    pub(super) fn publish(self, outcome: FlightResult) {
        let progress = self.progress.clone();
        drop(self);
        progress.send_modify(|progress| progress.outcome = Some(outcome));
    }
}

impl Drop for FlightEntry {
    fn drop(&mut self) {
        let mut table = self.flights.table();
        // Another flight may have replaced an abandoned one.
        let is_ours = |progress: &watch::Sender<FlightProgress>| progress.same_channel(&self.progress);
        if table.get(&self.key).is_some_and(is_ours) {
            table.remove(&self.key);
        }
    }
}

impl FlightWaiter {
    /// Waits for the outcome of the flight.
    pub(super) async fn outcome(&mut self) -> FlightResult {
        let finished = self.0.wait_for(|progress| progress.outcome.is_some()).await;
        let outcome = finished.ok().and_then(|progress| progress.outcome.clone());
        // The task panicked before it had an outcome.
        outcome.unwrap_or(Err(TokenRefreshError::Internal))
    }

    /// Waits at most `limit`; on timeout the error says whether the store or the provider is slow.
    pub(super) async fn outcome_within(mut self, limit: Duration) -> FlightResult {
        match timeout(limit, self.outcome()).await {
            Ok(outcome) => outcome,
            Err(_) if self.0.borrow().store_is_away => Err(TokenRefreshError::StoreUnavailable),
            Err(_) => Err(TokenRefreshError::ProviderUnavailable),
        }
    }
}
