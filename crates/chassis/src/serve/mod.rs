//! One port for everything a service speaks: HTTP/1.1, HTTP/2 with or without TLS, gRPC, gRPC-Web, WebSocket.
//!
//! Invariants: slow clients are cut off, streams and headers are bounded, a cancelled listener stops accepting at once
//! and lets what is in flight finish for a bounded time.

mod opening;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use self::opening::{Opening, abandoned};
use crate::tls::ServerTls;

/// Request extension: who opened the connection. A proxy, where one stands before us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// Request extension: the certificates the client showed, its own first; verified by the TLS handshake.
#[derive(Clone, Debug)]
pub struct PeerCertificates(pub Arc<[CertificateDer<'static>]>);

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

/// Serves `router` on `listener` until `shutdown`, then lets what is in flight finish.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    tls: Option<ServerTls>,
    shutdown: CancellationToken,
) {
    let graceful = GracefulShutdown::new();
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
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (router, tls, watcher) = (router.clone(), tls.clone(), graceful.watcher());
        tokio::spawn(async move {
            let _permit = permit;
            let _ = stream.set_nodelay(true);
            match tls {
                None => connection(stream, Peer(address), None, router, watcher).await,
                Some(tls) => {
                    if let Some((stream, certificates)) = handshake(stream, &tls).await {
                        connection(stream, Peer(address), certificates, router, watcher).await;
                    }
                }
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_TIMEOUT, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("work in flight did not finish in time and is cut off");
    }
}

type Certificates = Option<PeerCertificates>;

async fn handshake(
    stream: TcpStream,
    tls: &ServerTls,
) -> Option<(tokio_rustls::server::TlsStream<TcpStream>, Certificates)> {
    let accepting = TlsAcceptor::from(tls.current()).accept(stream);
    // A failed handshake is the client's affair; it is told on the wire and worth no record here.
    let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, accepting)
        .await
        .ok()?
        .ok()?;
    let shown = stream.get_ref().1.peer_certificates();
    let certificates =
        shown.map(|chain| PeerCertificates(chain.iter().map(|c| c.clone().into_owned()).collect()));
    Some((stream, certificates))
}

async fn connection<S>(
    stream: S,
    peer: Peer,
    certificates: Certificates,
    router: Router,
    watcher: hyper_util::server::graceful::Watcher,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (stream, opening) = Opening::of(stream);
    let asked = opening.clone();
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        asked.request_came();
        request.extensions_mut().insert(peer);
        if let Some(certificates) = &certificates {
            request.extensions_mut().insert(certificates.clone());
        }
        let mut router = router.clone();
        async move { tower_service::Service::<Request>::call(&mut router, request.map(Body::new)).await }
    });
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
    let serving = watcher.watch(
        builder
            .serve_connection_with_upgrades(TokioIo::new(stream), service)
            .into_owned(),
    );
    tokio::select! {
        // A connection that breaks is the client's affair; what a request did has its own record.
        served = serving => if let Err(error) = served {
            tracing::debug!(error = &*error, "a connection ended early");
        },
        () = abandoned(&opening, HEADER_READ_TIMEOUT) => {}
    }
}
