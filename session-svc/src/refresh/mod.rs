//! Renewing tokens at the provider: one grant per expiry per session, across all replicas.
//!
//! In this process all who ask for a session share one flight, which runs in a task of its own: a caller that hangs
//! up changes nothing. Between replicas a lease of the store decides who asks the provider; the others look at the
//! session until its tokens have moved on or the lease has run out.
//!
//! Invariants
//! - Whoever holds the lease reads the session again before asking: someone may just have refreshed.
//! - The rotated refresh token is saved before anyone sees the access token, and the save is tried for as long as the
//!   lease may be prolonged: a lost one cannot be had again.
//! - A write that comes late loses: against an ended session by its absence, against newer tokens by their generation.
//!
//! What cannot be closed: if the process dies between the provider's rotation and the save (one write of the store,
//! about a millisecond), the next refresh is refused and the session says that it needs a sign-in.

mod flight;
mod grant;
mod provider;
mod revocation;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use chassis::secret::Secret;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::Semaphore;

pub use provider::Provider;

use crate::session::{Handle, Session};
use crate::sessions::keeper::Keeper;
use crate::sessions::ports::{Renew, RenewError};

/// Revocations under way at once: more are given up, since a provider that slow would only be drowned.
const MAX_REVOCATIONS: usize = 64;

type Outcome = Result<Arc<Session>, RenewError>;
type Flights = Mutex<HashMap<(Handle, u64), Shared<BoxFuture<'static, Outcome>>>>;

/// Renews tokens at a provider.
#[derive(Clone)]
pub struct Refresher {
    keeper: Keeper,
    provider: Arc<dyn Provider>,
    flights: Arc<Flights>,
    revocations: Arc<Semaphore>,
}

impl Refresher {
    /// A refresher of the sessions kept by `keeper`, at the provider given.
    pub fn new(keeper: Keeper, provider: impl Provider) -> Self {
        let provider = Arc::new(provider);
        let revocations = Arc::new(Semaphore::new(MAX_REVOCATIONS));
        Self {
            keeper,
            provider,
            flights: Arc::default(),
            revocations,
        }
    }

    /// The flight that renews the tokens seen: the one under way, or a new one.
    fn flight(&self, seen: &Session) -> Shared<BoxFuture<'static, Outcome>> {
        let key = (seen.handle, seen.tokens.generation);
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = flights.get(&key) {
            return flight.clone();
        }
        let refresher = self.clone();
        let task = tokio::spawn(async move {
            let outcome = refresher.fly(key.0, key.1).await;
            refresher
                .flights
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&key);
            outcome.map(Arc::new)
        });
        let flights_of_all = Arc::clone(&self.flights);
        let flight = async move {
            task.await.unwrap_or_else(|_| {
                // The task broke down before it could leave the list.
                flights_of_all
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(&key);
                Err(RenewError::Internal)
            })
        };
        let flight = flight.boxed().shared();
        flights.insert(key, flight.clone());
        flight
    }
}

#[async_trait]
impl Renew for Refresher {
    async fn refreshed(&self, seen: Session) -> Result<Session, RenewError> {
        let flight = self.flight(&seen);
        flight.await.map(|session| Session::clone(&session))
    }

    fn revoke_later(&self, refresh_token: Secret<String>) {
        self.revoke_in_background(refresh_token);
    }
}
