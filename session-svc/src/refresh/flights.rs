//! The refreshes under way in this process: all who want the same tokens renewed share one flight.
//!
//! Invariants
//! - How long somebody waits is no matter of the flight's; what it comes to is told to those who wait then. Who comes
//!   later finds no flight, and the outcome in the session.
//! - A flight learns that nobody waits and leaves the table in one step: nobody joins one that is given up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::session::{Handle, Session};
use crate::sessions::ports::RenewError;

/// What a flight comes to.
pub(super) type Outcome = Result<Arc<Session>, RenewError>;

/// Which tokens are renewed: a session's, of this generation.
type Key = (Handle, u64);

/// How far a flight is.
#[derive(Clone, Default)]
struct Progress {
    /// The store has not done its part yet, and is asked again.
    store_is_away: bool,
    outcome: Option<Outcome>,
}

/// The flights of this process; clones share the table.
#[derive(Clone, Default)]
pub(super) struct Flights(Arc<Mutex<HashMap<Key, watch::Sender<Progress>>>>);

/// One who waits for a flight.
pub(super) struct Waiting(watch::Receiver<Progress>);

/// The place of a flight in the table, which it leaves when this is dropped.
pub(super) struct FlightEntry {
    flights: Flights,
    key: Key,
    progress: watch::Sender<Progress>,
}

impl Flights {
    fn table(&self) -> MutexGuard<'_, HashMap<Key, watch::Sender<Progress>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the flight that renews these tokens. With the place for one if there is none yet: whoever gets it begins it.
    pub(super) fn join(&self, handle: Handle, generation: u64) -> (Waiting, Option<FlightEntry>) {
        let key = (handle, generation);
        let mut table = self.table();
        if let Some(progress) = table.get(&key) {
            return (Waiting(progress.subscribe()), None);
        }
        let (progress, waiting) = watch::channel(Progress::default());
        table.insert(key, progress.clone());
        let flights = self.clone();
        let place = FlightEntry {
            flights,
            key,
            progress,
        };
        (Waiting(waiting), Some(place))
    }
}

impl FlightEntry {
    /// Whether it is the store that callers wait for.
    pub(super) fn store_is_away(&self, is_away: bool) {
        self.progress.send_if_modified(|progress| {
            let is_news = progress.store_is_away != is_away;
            progress.store_is_away = is_away;
            is_news
        });
    }

    /// Returns once nobody waits.
    pub(super) async fn nobody_waits(&self) {
        self.progress.closed().await;
    }

    /// Leaves the table if nobody waits.
    pub(super) fn left_alone(&self) -> bool {
        let mut table = self.flights.table();
        let alone = self.progress.receiver_count() == 0;
        if alone {
            table.remove(&self.key);
        }
        alone
    }

    /// Leaves the table, then tells all who wait.
    pub(super) fn tell(self, outcome: Outcome) {
        let progress = self.progress.clone();
        drop(self);
        progress.send_modify(|progress| progress.outcome = Some(outcome));
    }
}

impl Drop for FlightEntry {
    fn drop(&mut self) {
        let mut table = self.flights.table();
        // Another one may have taken the place of one that was left alone.
        let is_ours = |progress: &watch::Sender<Progress>| progress.same_channel(&self.progress);
        if table.get(&self.key).is_some_and(is_ours) {
            table.remove(&self.key);
        }
    }
}

impl Waiting {
    /// What the flight comes to.
    pub(super) async fn outcome(&mut self) -> Outcome {
        let told = self.0.wait_for(|progress| progress.outcome.is_some()).await;
        let outcome = told.ok().and_then(|progress| progress.outcome.clone());
        // The task broke down before it could tell.
        outcome.unwrap_or(Err(RenewError::Internal))
    }

    /// The same, unless it takes too long: then what it is that is waited for.
    pub(super) async fn outcome_within(mut self, patience: Duration) -> Outcome {
        match timeout(patience, self.outcome()).await {
            Ok(outcome) => outcome,
            Err(_) if self.0.borrow().store_is_away => Err(RenewError::StoreUnavailable),
            Err(_) => Err(RenewError::ProviderUnavailable),
        }
    }
}
