//! Reports endings to other systems, as a transmitter of Shared Signals (OpenID SSF 1.0, CAEP 1.0) that pushes (RFC 8935): for systems
//! that cannot hold a stream of the session API.
//!
//! `outbox` stores a note for each receiver (`note`) before the session ends. One replica has the lease of a receiver and pushes its events
//! in their order (`delivery`).
//!
//! Invariants
//! - A note is removed once its receiver has acknowledged it, and not before: each event is sent at least once, under one `jti`.
//! - No receiver delays an ending or another receiver; the notes of one are bounded.
//!
//! Deliberately absent: an API for receivers; the operator publishes metadata and keys. Events of sessions that expired, that began or that
//! are used.

mod delivery;
mod event;
mod measures;
mod note;
mod outbox;
mod receiver;

use std::sync::Arc;

use prometheus::Registry;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use delivery::{PUSH_TIMEOUT, QUEUED_MAX};
pub(crate) use outbox::Outbox;
pub use receiver::{Receiver, Receivers, SubjectFormat};

use self::delivery::Deliverer;
use self::measures::Measures;
use crate::keeper::Keeper;

/// The transmitter of a running service.
pub(crate) struct SignalTransmitter {
    outbox: Arc<Outbox>,
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
        let outbox = Outbox::new(receivers, keeper, Measures::new(metrics)?);
        Ok(Self {
            outbox: Arc::new(outbox),
            shutdown,
        })
    }

    /// Where use cases note events.
    pub(crate) fn outbox(&self) -> Arc<Outbox> {
        Arc::clone(&self.outbox)
    }

    /// Starts a task for each receiver. The tasks end when the service stops; then the tracker is empty.
    pub(crate) fn deliver(&self) -> TaskTracker {
        let tasks = TaskTracker::new();
        for receiver in &self.outbox.receivers.all {
            let (outbox, receiver) = (Arc::clone(&self.outbox), Arc::clone(receiver));
            tasks.spawn(Deliverer::new(outbox, receiver, self.shutdown.clone()).run());
        }
        tasks.close();
        tasks
    }
}
