//! The lease of a receiver: one replica tells it.
//!
//! Invariant: a push begins while its lease has at least as much time left as a push may take, by this process's own clock; where a full store grants no
//! lease, two replicas may tell the same, which receivers know by its `jti`.

use std::time::Duration;

use ring::rand::SystemRandom;
use tokio::time::Instant;

use super::note::list_of;
use super::push::PUSH_TIMEOUT;
use super::receiver::Receiver;
use crate::keeper::Keeper;
use crate::session::SessionId;
use crate::store::{Lease, LeaseName, StoreError};

/// What others wait when the replica that tells dies.
const LEASE: Duration = Duration::from_secs(15);

/// How old a lease is when it is taken anew.
const RENEWED_AFTER: Duration = Duration::from_secs(3);

/// Whether this replica tells a receiver.
pub(super) struct Holder {
    name: LeaseName,
    /// What nobody else is called.
    holder: String,
    held: Option<(Instant, Option<Lease>)>,
}

impl Holder {
    /// Nobody's yet; `None` without random bytes.
    pub(super) fn new(receiver: &Receiver) -> Option<Self> {
        let random = SessionId::random(&SystemRandom::new()).ok()?;
        Some(Self {
            name: LeaseName::Named(list_of(receiver)),
            holder: random.handle().to_string(),
            held: None,
        })
    }

    /// Takes the lease, or prolongs it where it is not fresh; false if somebody else has it.
    pub(super) async fn hold(&mut self, keeper: &Keeper) -> Result<bool, StoreError> {
        if let Some((at, Some(_))) = &self.held
            && at.elapsed() < RENEWED_AFTER
        {
            return Ok(true);
        }
        let began = Instant::now();
        let store = keeper.store();
        self.held = match store.acquire_lease(self.name, &self.holder, LEASE).await {
            Ok(lease) => lease.map(|lease| (began, Some(lease))),
            Err(StoreError::Full) => Some((began, None)),
            Err(error) => {
                self.held = None;
                return Err(error);
            }
        };
        Ok(self.held.is_some())
    }

    /// Until when pushes may begin.
    pub(super) fn begins_until(&self) -> Option<Instant> {
        let (at, _) = self.held.as_ref()?;
        Some(*at + LEASE.saturating_sub(PUSH_TIMEOUT))
    }

    /// Gives the lease back.
    pub(super) async fn release(&mut self, keeper: &Keeper) {
        if let Some((_, Some(lease))) = self.held.take()
            && let Err(error) = keeper.store().release_lease(&lease).await
        {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(error, "the lease of a receiver runs out by itself");
        }
    }
}
