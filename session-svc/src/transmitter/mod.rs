//! Telling other systems of endings, as a transmitter of Shared Signals (OpenID SSF 1.0, CAEP 1.0): for those that cannot hold
//! a stream of the session API.
//!
//! What is to be told is noted in the store before it happens (`outbox`), a note for each receiver (`note`); one replica has the
//! lease of a receiver and pushes its notes in their order (`delivery`, `push`), or a receiver fetches them itself (`poll`). A receiver manages its own stream
//! by the standard's API (`api`), and what it changes is kept in the store (`stream`).
//!
//! Invariants
//! - A note is removed once its receiver has acknowledged it, and not before: it is told at least once, under one `jti`.
//! - No receiver holds up an ending or another receiver; what is kept for one is bounded (`queue`).
//! - A receiver is known by its own token, and sees nothing of the others.
//!
//! Deliberately absent: streams beyond the one that the file gives each receiver; adding and removing subjects; events of sessions that
//! expired, since nobody chose so.

mod api;
mod delivery;
mod event;
mod holder;
mod measures;
mod note;
mod outbox;
mod poll;
mod push;
mod queue;
mod reading;
mod receiver;
mod receivers_file;
mod stream;
mod token;
mod unreached;

use std::sync::Arc;

use axum::Router;
use chassis::readiness::{Readiness, Weight};
use chassis::tls::TlsFiles;
use prometheus::Registry;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use receiver::Receivers;
pub use receivers_file::parse;

use self::delivery::Deliverer;
use self::measures::Measures;
use self::outbox::Outbox;
use self::stream::Streams;
use self::unreached::Unreached;
use crate::keeper::Keeper;
use crate::sessions::ports::SignalOutbox;

/// What the settings say of the transmitter.
#[derive(Clone, Debug)]
pub struct SignalTransmitterSettings {
    /// Where receivers manage their streams and fetch events.
    pub listen: std::net::SocketAddr,
    /// TLS on that address.
    pub tls: Option<TlsFiles>,
    /// Whom we tell.
    pub receivers: Receivers,
}

/// The transmitter of a running service. Clones share everything.
#[derive(Clone)]
pub struct SignalTransmitter {
    context: Arc<Context>,
}

/// What the parts of the transmitter share.
struct Context {
    receivers: Receivers,
    keeper: Keeper,
    streams: Streams,
    outbox: Arc<Outbox>,
    measures: Measures,
    shutdown: CancellationToken,
}

impl SignalTransmitter {
    /// Tells these receivers of the sessions of a keeper.
    ///
    /// # Errors
    /// It measures already.
    pub fn new(
        receivers: Receivers,
        keeper: Keeper,
        metrics: &Registry,
        shutdown: CancellationToken,
    ) -> Result<Self, prometheus::Error> {
        let measures = Measures::new(metrics)?;
        let streams = Streams::new(keeper.clone());
        let outbox = Outbox::new(&receivers, keeper.clone(), streams.clone(), measures.clone());
        let context = Context {
            receivers,
            keeper,
            streams,
            outbox: Arc::new(outbox),
            measures,
            shutdown,
        };
        Ok(Self {
            context: Arc::new(context),
        })
    }

    /// Where use cases note what is to be told.
    pub(crate) fn outbox(&self) -> Arc<dyn SignalOutbox> {
        Arc::clone(&self.context.outbox) as Arc<dyn SignalOutbox>
    }

    /// The API of receivers.
    pub(crate) fn router(&self) -> Router {
        api::router(Arc::clone(&self.context))
    }

    /// Begins to tell, until the service stops; the tracker is empty once all has come to an end.
    pub(crate) fn deliver(&self, readiness: &Readiness) -> TaskTracker {
        let condition = readiness.condition("signal_receivers", Weight::Informative);
        let unreached = Unreached::new(condition);
        let tasks = TaskTracker::new();
        for receiver in &self.context.receivers.all {
            let deliverer =
                Deliverer::new(Arc::clone(&self.context), Arc::clone(receiver), unreached.clone());
            tasks.spawn(deliverer.run());
        }
        tasks.close();
        tasks
    }
}
