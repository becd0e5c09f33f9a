//! One port for everything a service speaks: HTTP/1.1, HTTP/2 with or without TLS, gRPC, gRPC-Web, WebSocket.
//!
//! Invariants: slow clients are cut off, streams and headers are bounded. A listener that is cancelled lets nobody new in, and
//! loses nobody who is: who waits to be accepted is, a connection that has just been opened gets its first answer, one that is
//! kept is told with its next answer that it is the last, and what is in flight finishes for a bounded time.

mod closing;
mod connection;
mod gathering;
mod progress;
mod socket;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::connection::Opened;
use self::progress::Progress;
use self::socket::Socket;
use crate::runtime::{PerScheduler, Workers};
use crate::tls::ServerTls;

/// Request extension: who opened the connection. A proxy, where one stands before us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// Connections at once: far above what one process serves well, below what its descriptors allow in a cluster.
const CONNECTIONS_MAX: usize = 16_384;

/// What is in flight when the listener is cancelled may take so long: below the 30 s Kubernetes grants by default.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(25);

/// A client takes something of what waits for it at least so often; what most servers grant.
const STALLED_TIMEOUT: Duration = Duration::from_secs(60);

/// The kernel is out of descriptors or memory: waiting a moment is all there is to do.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: choose another address with {setting}")]
pub struct BindError {
    address: SocketAddr,
    setting: &'static str,
    #[source]
    source: io::Error,
}

/// Listens on an address; `setting` is the variable that chooses it. Clients that take nothing are given up after a minute
/// ([`give_up_stalled`]).
///
/// # Errors
/// The address is taken, or not ours.
pub async fn bind(address: SocketAddr, setting: &'static str) -> Result<TcpListener, BindError> {
    let listener = TcpListener::bind(address).await.map_err(|source| BindError {
        address,
        setting,
        source,
    })?;
    give_up_stalled(&listener, STALLED_TIMEOUT);
    Ok(listener)
}

/// Gives up each client of a listener that takes nothing of what is sent for so long, be it that it reads no more or that it
/// has vanished: the kernel ends the connection (`TCP_USER_TIMEOUT`, RFC 5482), and whatever fed it is let go. Only what waits to be
/// taken counts: a connection with nothing to send stays. Does nothing where the system has no such option.
pub fn give_up_stalled(listener: &TcpListener, longest: Duration) {
    #[cfg(target_os = "linux")]
    // Connections inherit it.
    if let Err(error) = socket2::SockRef::from(listener).set_tcp_user_timeout(Some(longest)) {
        tracing::warn!(%error, "clients that take nothing cannot be given up");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (listener, longest);
}

/// Serves `router` on `listener`, each connection on the worker whose turn it is, until `shutdown`; then lets what is in
/// flight, or about to be, finish.
pub async fn serve(
    workers: Workers,
    listener: TcpListener,
    router: Router,
    tls: Option<ServerTls>,
    shutdown: CancellationToken,
) {
    serve_each(workers, listener, move || router.clone(), tls, shutdown).await;
}

/// The same with a router for each worker: what every request counts or holds for a moment (`Arc`s, metrics) is then touched by
/// one core alone, where cores that share it would wait for each other (docs/decisions/schedulers.md).
pub async fn serve_each(
    workers: Workers,
    listener: TcpListener,
    router: impl Fn() -> Router + Send + Sync + 'static,
    tls: Option<ServerTls>,
    shutdown: CancellationToken,
) {
    let house = House {
        workers,
        routers: Arc::new(PerScheduler::new(router)),
        tls,
        shutdown,
        connections: TaskTracker::new(),
    };
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let permit_and_connection = async {
            let permit = Arc::clone(&room).acquire_owned().await;
            (permit.ok(), listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            accepted = permit_and_connection => accepted,
            () = house.shutdown.cancelled() => break,
        };
        if let Err(error) = house.serve(accepted, permit) {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }
    let finished = async {
        closing::last(listener, |accepted| {
            // Without room, or without descriptors, the last ones fare no better than any other.
            let permit = Arc::clone(&room).try_acquire_owned().ok();
            let _ = permit.map(|permit| house.serve(accepted, Some(permit)));
        })
        .await;
        house.connections.close();
        house.connections.wait().await;
    };
    if tokio::time::timeout(DRAIN_TIMEOUT, finished).await.is_err() {
        tracing::warn!("work in flight did not finish in time and is cut off");
    }
}

/// Where the connections of one listener are served.
struct House {
    workers: Workers,
    routers: Arc<PerScheduler<Router>>,
    tls: Option<ServerTls>,
    shutdown: CancellationToken,
    connections: TaskTracker,
}

impl House {
    /// Serves a connection on the worker whose turn it is.
    fn serve(
        &self,
        accepted: io::Result<(TcpStream, SocketAddr)>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> io::Result<()> {
        let (stream, address) = accepted?;
        // A worker waits for the connection itself, so it has to leave the scheduler that accepted it.
        let stream = stream.into_std()?;
        let Some(worker) = self.workers.next() else {
            return Ok(());
        };
        let opened = Opened {
            peer: Peer(address),
            certificate: None,
            draining: self.shutdown.clone(),
            progress: Progress::default(),
        };
        let (routers, tls) = (Arc::clone(&self.routers), self.tls.clone());
        let serving = async move {
            let _permit = permit;
            let Ok(stream) = TcpStream::from_std(stream) else {
                return;
            };
            let _ = stream.set_nodelay(true);
            let stream = Socket::of(stream, opened.progress.clone());
            let router = Router::clone(&routers.here());
            match tls {
                None => connection::plain(stream, opened, router).await,
                Some(tls) => connection::secured(stream, opened, router, &tls).await,
            }
        };
        self.connections.spawn_on(serving, worker);
        Ok(())
    }
}
