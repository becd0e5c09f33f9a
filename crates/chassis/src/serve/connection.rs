//! One connection, from handshake to end.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::PeerAddress;
use super::answer_body::{AdmittedRequest, AnswerBody};
use super::byte_budget::ByteBudget;
use super::capacity::ConnectionPermit;
use super::connection_io::ConnectionIo;
use super::limits::Limits;
use super::lingering::linger;
use super::progress::{ConnectionProgress, may_stop, unused};
use super::request_body::watched;
use super::streams::{AnswerProgress, StreamExecutor};
use crate::metrics::limit_hits::listener;
use crate::tls::{PeerCertificate, ServerTls};

/// Browsers send a request as soon as they connect. Ten seconds suffice for the slowest network.
const FIRST_HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection without a request for this long is closed: nginx's `keepalive_timeout`, and longer than the
/// 60 s that load balancers keep idle connections.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);

/// An HTTP/1.1 connection without a request for this long gives its buffers back, 16 KiB. Browsers send the
/// requests of a page within this time.
const BUFFERS_KEPT: Duration = Duration::from_secs(5);

/// Time to end an idle connection properly.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

/// A TLS handshake takes at most two round trips.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Bound on streams that a peer opens and resets before they are accepted (rapid-reset attack).
const PENDING_RESETS_MAX: usize = 64;

/// An idle HTTP/2 connection is pinged this often.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);

/// An HTTP/2 connection that does not answer a ping within this time is dead.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// Work in flight may take this long after the certificate stops being trusted: enough for a short call.
/// Longer streams are cut.
const DISBELIEVED_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a closing connection waits for its first request: a few round trips after connecting.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// After this long without bytes, a stopping server assumes that no request is in transit: a busy client is faster.
const QUIET: Duration = Duration::from_secs(1);

/// Bytes of an HTTP/2 stream's answer that are buffered before the socket accepts them.
const SEND_BUFFER_BYTES: usize = 64 * 1024;

/// A connection over its share is closed after this many refused requests.
const REFUSALS_MAX: usize = 32;

/// A connection before its first request.
pub(super) struct AcceptedConnection {
    pub(super) peer: PeerAddress,
    pub(super) certificate: Option<PeerCertificate>,
    pub(super) draining: CancellationToken,
    pub(super) progress: ConnectionProgress,
    pub(super) budget: ByteBudget,
    pub(super) limits: Arc<Limits>,
    /// Counts the connection for the limits, and for the stop, which waits for open connections.
    pub(super) permit: Option<(ConnectionPermit, TaskTrackerToken)>,
}

/// Serves a connection over TLS, for as long as its client's certificate is trusted.
pub(super) async fn secured(
    stream: TcpStream,
    mut accepted: AcceptedConnection,
    router: Router,
    tls: &ServerTls,
) {
    let accepting = TlsAcceptor::from(tls.current()).accept(stream);
    // A failed handshake is not logged: TLS sends the client an alert.
    let handshake = tokio::select! {
        handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, accepting) => handshake,
        () = accepted.progress.evicted.cancelled() => return,
    };
    let Ok(Ok(stream)) = handshake else {
        return;
    };
    let certificates = stream.get_ref().1.peer_certificates();
    let chain: Option<Vec<CertificateDer<'static>>> =
        certificates.map(|chain| chain.iter().map(|one| one.clone().into_owned()).collect());
    let Some(chain) = chain else {
        return plain(stream, accepted, router).await;
    };
    // A resumed session has a certificate that was verified earlier, not now.
    if !tls.believes(&chain) {
        return;
    }
    accepted.certificate = chain.first().map(PeerCertificate::of);
    connection(stream, accepted, router, tls.disbelieves(&chain)).await;
}

/// Serves a connection without client authentication.
pub(super) async fn plain<S>(stream: S, accepted: AcceptedConnection, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    connection(stream, accepted, router, std::future::pending()).await;
}

async fn connection<S>(
    stream: S,
    mut accepted: AcceptedConnection,
    router: Router,
    disbelieved: impl Future<Output = ()>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (progress, limits) = (accepted.progress.clone(), Arc::clone(&accepted.limits));
    let budget = accepted.budget.clone();
    let stream = ConnectionIo::over(stream, progress.clone(), budget.clone(), accepted.permit.take());
    let streams = StreamExecutor::new(progress.clone(), limits.send_timeout);
    let builder = protocols(&limits, streams.clone());
    let served = Arc::new(ServedConnection {
        router,
        peer: accepted.peer,
        certificate: accepted.certificate.clone(),
        upgradable: stream.clone(),
        streams,
        progress: progress.clone(),
        limits,
        budget,
        refusals: AtomicUsize::new(0),
    });
    let start = || {
        let served = Arc::clone(&served);
        let service = service_fn(move |request| served.call(request));
        Box::pin(builder.serve_connection_with_upgrades(TokioIo::new(stream.clone()), service))
    };
    let mut serving = start();
    let reused = async {
        loop {
            tokio::select! {
                served = stream.drive(serving.as_mut()) => return served,
                // hyper allocates its buffers once bytes arrive.
                () = stream.until_unused(BUFFERS_KEPT) => serving = start(),
            }
        }
    };
    tokio::select! {
        served = reused => return end(served, stream, &progress).await,
        had_request = unused(&progress, FIRST_HEAD_TIMEOUT, IDLE_TIMEOUT, accepted.limits.keeps_http2) => {
            if !had_request {
                return;
            }
            serving.as_mut().graceful_shutdown();
            let ending = async { end(stream.drive(serving.as_mut()).await, stream.clone(), &progress).await };
            let _ = tokio::time::timeout(GOODBYE_TIMEOUT, ending).await;
            return;
        }
        () = progress.evicted.cancelled() => return,
        () = accepted.draining.cancelled() => {}
        () = disbelieved => {
            if let Some(certificate) = &accepted.certificate {
                certificate.disbelieved.cancel();
            }
            serving.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(DISBELIEVED_TIMEOUT, stream.drive(serving.as_mut())).await;
            return;
        }
    }
    progress.is_last.set();
    tokio::select! {
        served = stream.drive(serving.as_mut()) => return end(served, stream, &progress).await,
        () = may_stop(&progress, FIRST_REQUEST_TIMEOUT, QUIET) => serving.as_mut().graceful_shutdown(),
    }
    let served = stream.drive(serving.as_mut()).await;
    end(served, stream, &progress).await;
}

/// The connection, as its requests see it.
struct ServedConnection<S> {
    router: Router,
    peer: PeerAddress,
    certificate: Option<PeerCertificate>,
    upgradable: ConnectionIo<S>,
    streams: StreamExecutor,
    progress: ConnectionProgress,
    limits: Arc<Limits>,
    budget: ByteBudget,
    /// Requests refused since the last admitted one.
    refusals: AtomicUsize,
}

/// The future of an answer.
type Answering = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

impl<S: Send + 'static> ServedConnection<S> {
    fn call(&self, mut request: hyper::Request<Incoming>) -> Answering {
        self.progress.request_received(request.version());
        let is_http2 = request.version() == Version::HTTP_2;
        // Checked first, so that refused requests use no memory.
        let admitted = match self.admit(&request) {
            Ok(admitted) => admitted,
            Err(mut refusal) => {
                if is_http2 {
                    self.streams.refuse();
                } else if !request.body().is_end_stream() {
                    self.progress.leaves_body.set();
                    self.progress.is_last.set();
                    say_last(&mut refusal);
                }
                return Box::pin(std::future::ready(Ok(*refusal)));
            }
        };
        let stream = is_http2.then(|| self.streams.begin());
        request.extensions_mut().insert(self.peer);
        if self.budget.is_counted() {
            request.extensions_mut().insert(self.budget.clone());
        }
        if let Some(certificate) = &self.certificate {
            request.extensions_mut().insert(certificate.clone());
        }
        let (router, connection) = (self.router.clone(), self.upgradable.clone());
        Box::pin(answer(
            request,
            router,
            self.progress.clone(),
            admitted,
            connection,
            stream,
        ))
    }

    /// Admits a request, unless the connection is over its share.
    ///
    /// # Errors
    /// The refusal. It has no body, which a client could leave unread.
    fn admit(&self, request: &hyper::Request<Incoming>) -> Result<AdmittedRequest, Box<Response>> {
        let is_http2 = request.version() == Version::HTTP_2;
        let header_bytes = list_bytes(request.headers());
        let busy = self.progress.begin(if is_http2 { header_bytes } else { 0 });
        if self.progress.header_bytes() > self.limits.open_header_bytes {
            return Err(Box::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response(),
            ));
        }
        let wanted = self.limits.request_bytes + header_bytes;
        let Some(bytes) = self.budget.hold(wanted) else {
            self.limits.hit(listener::WAITING_BYTES);
            let refused = self.refusals.fetch_add(1, Ordering::Relaxed);
            if self.limits.ends_over_share && refused >= REFUSALS_MAX {
                self.progress.evicted.cancel();
            }
            return Err(Box::new((self.limits.refusal)()));
        };
        self.refusals.store(0, Ordering::Relaxed);
        Ok(AdmittedRequest {
            budget: self.budget.clone(),
            bytes: Some(bytes),
            ends_over_share: self.limits.ends_over_share,
            busy,
        })
    }
}

/// The router's answer. With a `stream` the request came over HTTP/2. Over HTTP/1.1 the connection may be
/// upgraded, and the last answer says `connection: close`; HTTP/2 uses GOAWAY instead.
async fn answer<S>(
    request: hyper::Request<Incoming>,
    mut router: Router,
    progress: ConnectionProgress,
    mut admitted: AdmittedRequest,
    connection: ConnectionIo<S>,
    stream: Option<Arc<AnswerProgress>>,
) -> Result<Response, Infallible> {
    let (request, rest) = match stream {
        None => watched(request),
        Some(_) => (request.map(Body::new), None),
    };
    let mut response = tower_service::Service::call(&mut router, request).await?;
    if stream.is_none() {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            progress.switch();
            connection.keep(admitted.bytes.take());
        } else {
            if let Some(rest) = rest
                && !rest.is_read()
            {
                progress.leaves_body.set();
                progress.is_last.set();
            }
            if progress.is_last.is_set() {
                say_last(&mut response);
            }
        }
    }
    if response.body().is_end_stream() {
        return Ok(response);
    }
    Ok(response.map(|body| Body::new(AnswerBody::new(body, stream, admitted))))
}

/// Marks an HTTP/1.1 answer as the last of its connection.
fn say_last(response: &mut Response) {
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
}

/// The size of the headers as HTTP/2 defines it (RFC 9113, section 6.5.2).
fn list_bytes(headers: &HeaderMap) -> usize {
    const EACH: usize = 32;
    headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + EACH)
        .sum()
}

/// Does not log broken connections: requests have records of their own. If the server ends a connection while
/// its client may be sending, it closes the connection in stages (`lingering`).
async fn end<S>(
    served: Result<(), Box<dyn std::error::Error + Send + Sync>>,
    stream: ConnectionIo<S>,
    progress: &ConnectionProgress,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut is_unreadable = false;
    if let Err(error) = served {
        let stopped = error.downcast_ref::<io::Error>();
        if stopped.is_some_and(|error| error.kind() == io::ErrorKind::Interrupted) {
            // Ended before hyper began to read, so hyper does not end TLS.
            let _ = tokio::time::timeout(GOODBYE_TIMEOUT, stream.clone().shutdown()).await;
            return;
        }
        tracing::debug!(error = &*error, "a connection ended early");
        is_unreadable = error
            .downcast_ref::<hyper::Error>()
            .is_some_and(hyper::Error::is_parse);
    }
    if is_unreadable || progress.leaves_body.is_set() {
        tokio::select! {
            () = linger(stream) => {}
            () = progress.evicted.cancelled() => {}
        }
    }
}

/// HTTP/1.1 and HTTP/2, with limits.
fn protocols(limits: &Limits, streams: StreamExecutor) -> auto::Builder<StreamExecutor> {
    let mut builder = auto::Builder::new(streams);
    builder
        .http1()
        .timer(TokioTimer::new())
        // A missing request head is handled as an idle connection.
        .header_read_timeout(None)
        .max_buf_size(limits.http1_buffer_bytes)
        .half_close(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_pending_accept_reset_streams(PENDING_RESETS_MAX)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .max_header_list_size(u32::try_from(limits.header_list_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT);
    if let Some(bytes) = limits.window_bytes {
        builder
            .http2()
            .initial_connection_window_size(bytes)
            .initial_stream_window_size(bytes);
    }
    builder
}

#[cfg(test)]
#[path = "abuse_tests.rs"]
mod abuse;

#[cfg(test)]
#[path = "share_tests.rs"]
mod share;

#[cfg(test)]
#[path = "connection_tests.rs"]
pub(super) mod tests;
