//! One port for everything a service speaks: HTTP/1.1, HTTP/2 with or without TLS, gRPC, gRPC-Web, WebSocket.
//!
//! Invariants: slow and idle clients are cut off; connections, streams and headers are bounded, for each client too. A listener that is cancelled lets nobody new in, and
//! loses nobody who is: who waits to be accepted is, a connection that has just been opened gets its first answer, and what is in flight
//! finishes for a bounded time. One that is kept is shut down only when the address refuses, so that its client connects elsewhere.

mod answer_body;
mod bind;
mod byte_budget;
mod capacity;
mod closing;
mod connection;
mod connection_io;
mod limits;
mod lingering;
mod memory_share;
mod progress;
mod request_body;
mod streams;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::byte_budget::TotalBudget;
use self::capacity::{Capacity, ConnectionPermit, NoCapacity};
use self::connection::AcceptedConnection;
use self::progress::ConnectionProgress;
use crate::metrics::limit_hits::listener;
use crate::runtime::Workers;
use crate::tls::ServerTls;

pub use self::bind::{BindError, bind, give_up_stalled};
pub use self::byte_budget::{ByteBudget, BytesPermit};
pub use self::limits::{Limits, PerClientLimit, network, unavailable};
pub use self::memory_share::{ListenerRole, MemoryShare};

/// Request extension: who opened the connection. A proxy, where one stands before us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

impl PeerAddress {
    /// A client of IPv4 that a listener of both families accepts is one of IPv4 (RFC 4291, section 2.5.5.2).
    fn of(address: SocketAddr) -> Self {
        Self(SocketAddr::new(address.ip().to_canonical(), address.port()))
    }
}

/// What is in flight when the listener is cancelled may take so long: below the 30 s Kubernetes grants by default.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(25);

/// Streams that can end by themselves do so within this, at the end of the drain.
const LAST_WORD_TIMEOUT: Duration = Duration::from_secs(1);

/// The kernel is out of descriptors or memory: waiting a moment is all there is to do.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A full listener checks this often whether it has capacity again.
const FULL_PAUSE: Duration = Duration::from_millis(50);

/// A listener that has been full for so long says so: shorter is a burst.
const FULL_REPORTED_AFTER: Duration = Duration::from_secs(3);

/// The request that a listener stop, and its answer.
#[derive(Clone, Debug)]
pub struct Stopping {
    /// Cancelled by whoever wants it to stop.
    pub requested: CancellationToken,
    /// Cancelled by the listener once it lets nobody in and its address refuses: the moment to close kept connections. A client
    /// whose connection is closed sooner connects again to a listener that neither answers nor refuses, and tries again a second later.
    pub closed: CancellationToken,
    /// Cancelled by the listener when work in flight has had its time: what still goes on has [`LAST_WORD_TIMEOUT`] to end by itself.
    pub overdue: CancellationToken,
}

impl Stopping {
    /// When `requested` is cancelled.
    #[must_use]
    pub fn on(requested: CancellationToken) -> Self {
        Self {
            requested,
            closed: CancellationToken::new(),
            overdue: CancellationToken::new(),
        }
    }
}

/// Serves a listener within its limits, each connection on the worker whose turn it is, until it is stopped; then lets what is in flight, or
/// about to be, finish. Each worker has a router of its own, made at once and in the worker's context: the clients it calls with stay with
/// the worker, and the reference counts and metrics that every request changes are written by one core alone: shared, their cache lines
/// would move between the cores at each request (docs/decisions/workers.md).
pub async fn serve_each(
    workers: Workers,
    listener: TcpListener,
    router: impl Fn() -> Router,
    tls: Option<ServerTls>,
    limits: Limits,
    stopping: Stopping,
) {
    if let Some(capacity) = &limits.capacity {
        capacity.met();
    }
    let acceptor = Acceptor {
        routers: workers.each(router),
        workers,
        tls,
        capacity: Capacity::new(limits.connections, limits.per_client.clone()),
        total_budget: limits.waiting_bytes.map(TotalBudget::new),
        limits: Arc::new(limits),
        stopping,
        connections: TaskTracker::new(),
    };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = acceptor.stopping.requested.cancelled() => break,
        };
        if let Err(error) = acceptor.accept(accepted).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a connection could not be accepted"
            );
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }
    let overdue = acceptor.stopping.overdue.clone();
    let mut finished = pin!(async {
        // Without capacity, or without descriptors, the last ones fare no better than any other.
        closing::last(listener, |accepted| {
            let _ = accepted.map(|accepted| acceptor.admit_and_serve(accepted));
        })
        .await;
        acceptor.stopping.closed.cancel();
        acceptor.connections.close();
        acceptor.connections.wait().await;
    });
    if tokio::time::timeout(DRAIN_TIMEOUT, finished.as_mut())
        .await
        .is_ok()
    {
        return;
    }
    overdue.cancel();
    if tokio::time::timeout(LAST_WORD_TIMEOUT, finished).await.is_err() {
        tracing::warn!("work in flight did not finish in time and is cut off");
    }
}

/// Where the connections of one listener are served.
struct Acceptor {
    workers: Workers,
    /// By the worker's number.
    routers: Arc<[Router]>,
    tls: Option<ServerTls>,
    capacity: Arc<Capacity>,
    total_budget: Option<Arc<TotalBudget>>,
    limits: Arc<Limits>,
    stopping: Stopping,
    connections: TaskTracker,
}

impl Acceptor {
    /// Serves a connection as soon as there is capacity for it.
    async fn accept(&self, accepted: io::Result<(TcpStream, SocketAddr)>) -> io::Result<()> {
        let mut connection = accepted?;
        let since = Instant::now();
        let (mut is_counted, mut is_reported) = (false, false);
        // Those behind it wait in the kernel's queue meanwhile.
        while let Err(full) = self.admit_and_serve(connection) {
            connection = full?;
            if !is_counted {
                is_counted = true;
                self.limits.hit(listener::CONNECTIONS);
            }
            if !is_reported && since.elapsed() >= FULL_REPORTED_AFTER {
                is_reported = true;
                tracing::warn!(
                    connections = self.limits.connections,
                    "every connection there may be is busy"
                );
                if let Some(capacity) = &self.limits.capacity {
                    capacity.unmet("every connection there may be is busy");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(FULL_PAUSE) => {}
                () = self.stopping.requested.cancelled() => break,
            }
        }
        if let Some(capacity) = self.limits.capacity.as_ref().filter(|_| is_reported) {
            capacity.met();
        }
        Ok(())
    }

    /// Serves a connection, unless its client has its share, which ends it.
    ///
    /// # Errors
    /// There is no capacity: the connection is given back. Or it cannot be handed to a worker.
    fn admit_and_serve(
        &self,
        (stream, address): (TcpStream, SocketAddr),
    ) -> Result<(), io::Result<(TcpStream, SocketAddr)>> {
        let progress = ConnectionProgress::default();
        match self.capacity.admit(address.ip(), &progress) {
            Ok(permit) => self.serve(stream, address, progress, permit).map_err(Err),
            Err(NoCapacity::OfClient) => {
                self.limits.hit(listener::CONNECTIONS_OF_CLIENT);
                Ok(())
            }
            Err(NoCapacity::Full) => Err(Ok((stream, address))),
        }
    }

    /// Serves a connection on the worker whose turn it is.
    fn serve(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        progress: ConnectionProgress,
        permit: ConnectionPermit,
    ) -> io::Result<()> {
        // The worker's own runtime polls the socket, so it has to be deregistered from the one that accepted it.
        let stream = stream.into_std()?;
        let Some((number, worker)) = self.workers.next() else {
            return Ok(());
        };
        let accepted = AcceptedConnection {
            peer: PeerAddress::of(address),
            certificate: None,
            draining: self.stopping.closed.clone(),
            progress,
            budget: self.total_budget.as_ref().map(ByteBudget::of).unwrap_or_default(),
            limits: Arc::clone(&self.limits),
            permit: Some((permit, self.connections.token())),
        };
        let (routers, tls) = (Arc::clone(&self.routers), self.tls.clone());
        let serving = async move {
            let Ok(stream) = TcpStream::from_std(stream) else {
                return;
            };
            let _ = stream.set_nodelay(true);
            // Cloned here: only this worker's core writes the router's reference count.
            let Some(router) = routers.get(number).cloned() else {
                return;
            };
            match tls {
                None => connection::plain(stream, accepted, router).await,
                Some(tls) => connection::secured(stream, accepted, router, &tls).await,
            }
        };
        worker.spawn(serving);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_ipv4_is_one_at_a_listener_of_both_families() {
        for (accepted, peer) in [
            ("[::ffff:192.0.2.1]:7", "192.0.2.1:7"),
            ("192.0.2.1:7", "192.0.2.1:7"),
            ("[2001:db8::1]:7", "[2001:db8::1]:7"),
        ] {
            let address = PeerAddress::of(accepted.parse().unwrap());
            assert_eq!(address.0.to_string(), peer);
        }
    }
}
