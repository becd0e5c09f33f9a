//! One port for everything a service speaks: HTTP/1.1, HTTP/2 with or without TLS, gRPC, gRPC-Web, WebSocket.
//!
//! Invariants: slow clients are cut off, streams and headers are bounded, a cancelled listener stops accepting at once
//! and lets what is in flight finish for a bounded time.

mod opening;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::opening::{Opening, abandoned};
use crate::runtime::Workers;
use crate::tls::{PeerCertificate, ServerTls};

/// Request extension: who opened the connection. A proxy, where one stands before us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// A browser sends its headers in one packet; ten seconds are for the slowest network, not for a slowloris.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections at once: far above what one process serves well, below what its descriptors allow in a cluster.
const CONNECTIONS_MAX: usize = 16_384;

/// A TLS handshake takes two round trips.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// All headers together: several cookies of 4 KiB, as browsers send them, and room for the rest.
const HEADER_BYTES_MAX: usize = 64 * 1024;

/// Streams of one HTTP/2 connection at once: a service's connection carries many calls, a browser's a hundred.
const STREAMS_MAX: u32 = 1024;

/// Streams a peer may open and reset before they are accepted (the rapid-reset attack).
const PENDING_RESETS_MAX: usize = 64;

/// An idle HTTP/2 connection is asked so often whether it is alive.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);

/// An HTTP/2 connection that does not answer for so long is dead.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// What is in flight when the listener is cancelled may take so long: below the 30 s Kubernetes grants by default.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(25);

/// What is in flight on a connection whose certificate is not believed any more may take so long: as long as a short call
/// may, while streams are told to end.
const DISBELIEVED_TIMEOUT: Duration = Duration::from_secs(5);

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

/// Listens on an address; `setting` is the variable that chooses it.
///
/// # Errors
/// The address is taken, or not ours.
pub async fn bind(address: SocketAddr, setting: &'static str) -> Result<TcpListener, BindError> {
    TcpListener::bind(address).await.map_err(|source| BindError {
        address,
        setting,
        source,
    })
}

/// Serves `router` on `listener`, each connection on the worker whose turn it is, until `shutdown`; then lets what is in
/// flight finish.
pub async fn serve(
    workers: Workers,
    listener: TcpListener,
    router: Router,
    tls: Option<ServerTls>,
    shutdown: CancellationToken,
) {
    let connections = TaskTracker::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let permit_and_connection = async {
            let permit = Arc::clone(&room).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            accepted = permit_and_connection => accepted,
            () = shutdown.cancelled() => break,
        };
        // A worker waits for the connection itself, so it has to leave the scheduler that accepted it.
        let accepted = accepted.and_then(|(stream, address)| Ok((stream.into_std()?, address)));
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (router, tls, draining) = (router.clone(), tls.clone(), shutdown.clone());
        let Some(worker) = workers.next() else { break };
        let serving = async move {
            let _permit = permit;
            let Ok(stream) = TcpStream::from_std(stream) else {
                return;
            };
            let _ = stream.set_nodelay(true);
            let opened = Opened {
                peer: Peer(address),
                certificate: None,
                draining,
            };
            match tls {
                None => connection(stream, opened, router, std::future::pending()).await,
                Some(tls) => secured(stream, opened, router, &tls).await,
            }
        };
        connections.spawn_on(serving, worker);
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(DRAIN_TIMEOUT, connections.wait())
        .await
        .is_err()
    {
        tracing::warn!("work in flight did not finish in time and is cut off");
    }
}

/// What is known of a connection before its first request.
struct Opened {
    peer: Peer,
    certificate: Option<PeerCertificate>,
    draining: CancellationToken,
}

/// Serves a connection over TLS, while the certificate it was opened with is believed.
async fn secured(stream: TcpStream, mut opened: Opened, router: Router, tls: &ServerTls) {
    let accepting = TlsAcceptor::from(tls.current()).accept(stream);
    // A failed handshake is the client's affair; it is told on the wire and worth no record here.
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIMEOUT, accepting).await else {
        return;
    };
    let shown = stream.get_ref().1.peer_certificates();
    let chain: Option<Vec<CertificateDer<'static>>> =
        shown.map(|chain| chain.iter().map(|one| one.clone().into_owned()).collect());
    let Some(chain) = chain else {
        return connection(stream, opened, router, std::future::pending()).await;
    };
    // A resumed session shows a certificate that was verified then, not now.
    if !tls.believes(&chain) {
        return;
    }
    opened.certificate = chain.first().map(PeerCertificate::of);
    connection(stream, opened, router, tls.disbelieves(&chain)).await;
}

async fn connection<S>(stream: S, opened: Opened, router: Router, disbelieved: impl Future<Output = ()>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (stream, opening) = Opening::of(stream);
    let asked = opening.clone();
    let (peer, certificate) = (opened.peer, opened.certificate.clone());
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        asked.request_came();
        request.extensions_mut().insert(peer);
        if let Some(certificate) = &certificate {
            request.extensions_mut().insert(certificate.clone());
        }
        let mut router = router.clone();
        async move { tower_service::Service::<Request>::call(&mut router, request.map(Body::new)).await }
    });
    let builder = protocols();
    let mut serving = pin!(
        builder
            .serve_connection_with_upgrades(TokioIo::new(stream), service)
            .into_owned()
    );
    tokio::select! {
        served = serving.as_mut() => return told(served),
        () = abandoned(&opening, HEADER_READ_TIMEOUT) => return,
        () = opened.draining.cancelled() => serving.as_mut().graceful_shutdown(),
        () = disbelieved => {
            if let Some(certificate) = &opened.certificate {
                certificate.disbelieved.cancel();
            }
            serving.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(DISBELIEVED_TIMEOUT, serving.as_mut()).await;
            return;
        }
    }
    told(serving.await);
}

/// A connection that breaks is the client's affair; what a request did has its own record.
fn told(served: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = served {
        tracing::debug!(error = &*error, "a connection ended early");
    }
}

/// HTTP/1.1 and HTTP/2, bounded.
fn protocols() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_READ_TIMEOUT)
        .max_buf_size(HEADER_BYTES_MAX)
        .half_close(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(PENDING_RESETS_MAX)
        .max_header_list_size(u32::try_from(HEADER_BYTES_MAX).unwrap_or(u32::MAX))
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .enable_connect_protocol();
    builder
}
