//! One connection to a replica, from when it is made until it goes.
//!
//! Invariants
//! - It is made before any call goes over it, and never a second time: a replica that is on its way out, or whose address answers
//!   nobody any more, keeps no call waiting. Who needs another one makes it where no call waits for it
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

/// Whether a connection still takes calls; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct AcceptsCalls(Arc<AtomicBool>);

impl AcceptsCalls {
    /// It takes no further calls.
    pub(super) fn go(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_going(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A connection that was made, and the reads over it.
#[derive(Debug)]
pub(super) struct Connection {
    channel: Channel,
    reads: Batcher,
    standing: AcceptsCalls,
    made: Instant,
}

impl Connection {
    /// Connects, handshakes included, on the scheduler this is called on.
    pub(super) async fn make(endpoint: &Endpoint, address: SocketAddr) -> Result<Self, Status> {
        let standing = AcceptsCalls::default();
        let begun = AtomicBool::new(false);
        let told = standing.clone();
        let connector = service_fn(move |_: Uri| {
            let again = begun.swap(true, Ordering::Relaxed);
            let standing = told.clone();
            async move {
                if again {
                    standing.go();
                    return Err(io::Error::from(io::ErrorKind::NotConnected));
                }
                gathering::connect(address, standing).await
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
            standing,
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
    pub(super) fn is_going(&self) -> bool {
        self.standing.is_going()
    }

    /// It takes no further calls.
    pub(super) fn go(&self) {
        self.standing.go();
    }

    /// Whether it was made less than `duration` ago.
    pub(super) fn is_younger_than(&self, duration: Duration) -> bool {
        self.made.elapsed() < duration
    }
}
