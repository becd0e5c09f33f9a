//! One port for all protocols of a service: HTTP/1.1, HTTP/2 with or without TLS, gRPC, gRPC-Web, WebSocket.
//!
//! Invariants: slow and idle clients are disconnected; connections, streams and headers are bounded, also for
//! each client. A stopping listener rejects new clients, but serves queued connections and first requests.
//! Work in flight finishes in a bounded time. Idle connections close once the address refuses new ones.

mod answer_body;
mod bind;
mod byte_budget;
mod capacity;
mod closing;
mod connection;
mod connection_io;
mod in_memory;
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
pub use self::in_memory::connect_in_memory;
pub use self::limits::{Limits, PerClientLimit, network, unavailable};
pub use self::memory_share::{ListenerRole, MemoryShare};

/// Request extension: the address that opened the connection. Behind a proxy it is the proxy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

impl PeerAddress {
    /// An IPv4 client of a dual-stack listener has an IPv4 address (RFC 4291, section 2.5.5.2).
    fn of(address: SocketAddr) -> Self {
        Self(SocketAddr::new(address.ip().to_canonical(), address.port()))
    }
}

/// How long work in flight may take after the stop: less than the 30 s that Kubernetes grants by default.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(25);

/// At the end of the drain, streams have this long to end by themselves.
const LAST_WORD_TIMEOUT: Duration = Duration::from_secs(1);

/// Pause after a failed accept: the kernel has no descriptors or memory, and only waiting helps.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A full listener checks this often whether it has capacity again.
const FULL_PAUSE: Duration = Duration::from_millis(50);

/// A listener that is full for this long reports it; shorter times are bursts.
const FULL_REPORTED_AFTER: Duration = Duration::from_secs(3);

/// The request to stop a listener, and its progress.
#[derive(Clone, Debug)]
pub struct Stopping {
    /// Cancelled by the caller to stop the listener.
    pub requested: CancellationToken,
    /// Cancelled once the listener's address refuses connections: then idle connections may close. Earlier, their
    /// clients would reconnect to a listener that neither answers nor refuses, and lose a second.
    pub closed: CancellationToken,
    /// Cancelled when the time for work in flight is over. The work then has [`LAST_WORD_TIMEOUT`] to end itself.
    pub overdue: CancellationToken,
}

impl Stopping {
    /// Stops the listener when `requested` is cancelled.
    #[must_use]
    pub fn on(requested: CancellationToken) -> Self {
        Self {
            requested,
            closed: CancellationToken::new(),
            overdue: CancellationToken::new(),
        }
    }
}

/// Serves a listener within its limits until it is stopped, then lets work in flight finish. Workers receive
/// connections in turn. Each worker has its own router, made at the start in the worker's context, so that its
/// upstream clients stay on this worker. Then only one core writes the reference counts and metrics of a request.
/// Shared counts would move between the caches of cores (docs/decisions/workers.md).
pub async fn serve_each(
    workers: Workers,
    listener: TcpListener,
    router: impl Fn() -> Router,
    tls: Option<ServerTls>,
    limits: Limits,
    stopping: Stopping,
) {
    if let Some(capacity) = &limits.capacity {
        capacity.mark_met();
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
        // Without capacity or descriptors, the last connections are dropped like any other.
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

/// Hands a listener's connections to workers.
struct Acceptor {
    workers: Workers,
    /// Indexed by the worker's number.
    routers: Arc<[Router]>,
    tls: Option<ServerTls>,
    capacity: Arc<Capacity>,
    total_budget: Option<Arc<TotalBudget>>,
    limits: Arc<Limits>,
    stopping: Stopping,
    connections: TaskTracker,
}

impl Acceptor {
    /// Serves a connection as soon as there is capacity.
    async fn accept(&self, accepted: io::Result<(TcpStream, SocketAddr)>) -> io::Result<()> {
        let mut connection = accepted?;
        let since = Instant::now();
        let (mut is_counted, mut is_reported) = (false, false);
        // Later connections wait in the kernel's queue.
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
                    "the limit of connections is reached"
                );
                if let Some(capacity) = &self.limits.capacity {
                    capacity.unmet("the limit of connections is reached");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(FULL_PAUSE) => {}
                () = self.stopping.requested.cancelled() => break,
            }
        }
        if let Some(capacity) = self.limits.capacity.as_ref().filter(|_| is_reported) {
            capacity.mark_met();
        }
        Ok(())
    }

    /// Serves a connection, or closes it if its client is at its limit.
    ///
    /// # Errors
    /// `Ok` returns the connection: there is no capacity. `Err` means that no worker could take it.
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

    /// Serves a connection on the next worker.
    fn serve(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        progress: ConnectionProgress,
        permit: ConnectionPermit,
    ) -> io::Result<()> {
        // The worker's runtime polls the socket, so the runtime that accepted it must deregister it.
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
            // Cloned here, so that only this worker's core writes the router's reference count.
            let Some(router) = routers.get(number).cloned() else {
                return;
            };
            match tls {
                None => connection::plain(stream, accepted, router).await,
                // Boxed, because its state is large, and a connection without TLS would keep as much.
                Some(tls) => Box::pin(connection::secured(stream, accepted, router, &tls)).await,
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
