//! The store's health: checked once a second; reported by readiness, a metric and the log.
//!
//! A replica whose store does not answer is not ready. With a full store it stays ready: it can read, refresh
//! and end sessions, and other replicas on the same store could do no more.

use std::sync::Arc;
use std::time::Duration;

use chassis::readiness::{Condition, Weight};
use chassis::runtime::Runtime;
use prometheus::{IntGauge, register_int_gauge_with_registry};
use tokio_util::sync::CancellationToken;

use crate::store::{KeyValueStore, StoreError};

/// How often the store is checked.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long the store may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The reports on the store.
pub(crate) struct StoreCondition {
    answers: Condition,
    has_room: Condition,
    full: IntGauge,
}

impl StoreCondition {
    /// The state before the first check.
    pub(crate) fn new(runtime: &Runtime) -> Result<Self, prometheus::Error> {
        Ok(Self {
            answers: runtime.readiness.condition("store", Weight::Required),
            has_room: runtime.readiness.condition("store_room", Weight::Informative),
            full: register_int_gauge_with_registry!(
                "session_store_full",
                "1 if the store has no room for new sessions, else 0",
                runtime.metrics
            )?,
        })
    }

    /// Checks the store until the service stops.
    pub(crate) async fn follow(self, store: Arc<dyn KeyValueStore>, shutdown: CancellationToken) {
        loop {
            self.report(tokio::time::timeout(TIMEOUT, store.check()).await.ok());
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = shutdown.cancelled() => return,
            }
        }
    }

    /// Reports a check; `None` is a timeout.
    fn report(&self, answer: Option<Result<(), StoreError>>) {
        match answer {
            Some(Ok(())) => {
                self.answers.mark_met();
                self.has_room.mark_met();
                self.full.set(0);
            }
            Some(Err(StoreError::Full)) => {
                self.answers.mark_met();
                self.has_room
                    .unmet("the session store is full: no session can begin");
                if self.full.get() == 0 {
                    tracing::error!("the session store is full: no session can begin until it has room");
                }
                self.full.set(1);
            }
            Some(Err(_)) | None => self.answers.unmet("the session store does not answer"),
        }
    }
}
