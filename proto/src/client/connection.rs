//! One connection to a replica, from when it is made until it goes.
//!
//! Invariants
//! - It is made before any call goes over it, and never a second time: a replica that is shutting down, or whose address answers
//!   nobody any more, keeps no call waiting. Another one is made where no call waits for it
//!   ([`Channels`](super::channels::Channels)).
//! - It counts as going from the first sign on: its end, or the replica's GOAWAY (RFC 9113, section 6.8) as the next call meets it. What is
//!   in flight on it goes on.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tonic::Status;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::batching::Batcher;
use super::gathering;

/// Whether a connection takes no further calls; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct GoingAway(Arc<AtomicBool>);

impl GoingAway {
    /// It takes no further calls.
    pub(super) fn go_away(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_going_away(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A connection that was made, and the reads over it.
#[derive(Debug)]
pub(super) struct ReplicaConnection {
    channel: Channel,
    reads: Batcher,
    going_away: GoingAway,
    made: Instant,
}

impl ReplicaConnection {
    /// Connects, handshakes included, on the runtime this is called on.
    pub(super) async fn make(endpoint: &Endpoint, address: SocketAddr) -> Result<Self, Status> {
        let going_away = GoingAway::default();
        let begun = AtomicBool::new(false);
        let of_connection = going_away.clone();
        let connector = service_fn(move |_: Uri| {
            let again = begun.swap(true, Ordering::Relaxed);
            let going_away = of_connection.clone();
            async move {
                if again {
                    going_away.go_away();
                    return Err(io::Error::from(io::ErrorKind::NotConnected));
                }
                gathering::connect(address, going_away).await
            }
        });
        let made = endpoint.connect_with_connector(connector).await;
        let channel = made.map_err(|error| {
            tracing::debug!(%address, error = &error as &dyn std::error::Error, "a replica of the session service cannot be reached");
            Status::unavailable("no connection to the session service can be made")
        })?;
        Ok(Self {
            reads: Batcher::over(channel.clone()),
            channel,
            going_away,
            made: Instant::now(),
        })
    }

    pub(super) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    pub(super) fn reads(&self) -> &Batcher {
        &self.reads
    }

    /// Whether it takes no further calls.
    pub(super) fn is_going_away(&self) -> bool {
        self.going_away.is_going_away()
    }

    /// It takes no further calls.
    pub(super) fn go_away(&self) {
        self.going_away.go_away();
    }

    /// Whether it was made less than `duration` ago.
    pub(super) fn is_younger_than(&self, duration: Duration) -> bool {
        self.made.elapsed() < duration
    }
}
