//! Reports endings to other systems, as a transmitter of Shared Signals (OpenID SSF 1.0, CAEP 1.0) that pushes (RFC 8935): for systems
//! that cannot hold a stream of the session API.
//!
//! `outbox` stores a note for each receiver (`note`) before the event happens. One replica has the lease of a receiver and pushes its notes
//! in their order (`delivery`, `push`).
//!
//! Invariants
//! - A note is removed once its receiver has acknowledged it, and not before: each event is sent at least once, under one `jti`.
//! - No receiver delays an ending or another receiver; the notes of one are bounded (`queue`).
//!
//! Deliberately absent: an API for receivers. The operator publishes `metadata` and the keys; the file says which events a receiver gets.
//! Also events of sessions that expired, since no one chose that.

mod delivery;
mod event;
mod holder;
mod measures;
mod metadata;
mod note;
mod outbox;
mod push;
mod queue;
mod reading;
mod receiver;
mod receivers_file;
mod token;
mod unreached;

use std::sync::Arc;

use chassis::readiness::{Readiness, Weight};
use prometheus::Registry;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use receiver::Receivers;
pub use receivers_file::parse;

use self::delivery::Deliverer;
use self::measures::Measures;
use self::outbox::Outbox;
use self::unreached::Unreached;
use crate::keeper::Keeper;
use crate::sessions::ports::SignalOutbox;

/// The transmitter of a running service.
pub(crate) struct SignalTransmitter(Arc<Context>);

/// What the parts of the transmitter share.
struct Context {
    receivers: Receivers,
    keeper: Keeper,
    outbox: Arc<Outbox>,
    measures: Measures,
    shutdown: CancellationToken,
}

impl SignalTransmitter {
    /// Prepares to report on the sessions of a keeper.
    ///
    /// # Errors
    /// The metrics are registered already.
    pub(crate) fn new(
        receivers: Receivers,
        keeper: Keeper,
        metrics: &Registry,
        shutdown: CancellationToken,
    ) -> Result<Self, prometheus::Error> {
        let measures = Measures::new(metrics)?;
        let outbox = Outbox::new(&receivers, keeper.clone(), measures.clone());
        Ok(Self(Arc::new(Context {
            receivers,
            keeper,
            outbox: Arc::new(outbox),
            measures,
            shutdown,
        })))
    }

    /// Where use cases note events.
    pub(crate) fn outbox(&self) -> Arc<dyn SignalOutbox> {
        Arc::clone(&self.0.outbox) as Arc<dyn SignalOutbox>
    }

    /// Starts a task for each receiver. The tasks end when the service stops; then the tracker is empty.
    pub(crate) fn deliver(&self, readiness: &Readiness) -> TaskTracker {
        let condition = readiness.condition("signal_receivers", Weight::Informative);
        let unreached = Unreached::new(condition);
        let tasks = TaskTracker::new();
        for receiver in &self.0.receivers.all {
            let deliverer = Deliverer::new(Arc::clone(&self.0), Arc::clone(receiver), unreached.clone());
            tasks.spawn(deliverer.run());
        }
        tasks.close();
        tasks
    }
}
