//! One connection to a replica, from its creation to its end.
//!
//! Invariants
//! - A call uses a connection only after it is established, and a connection is never re-established. So no
//!   call waits for a replica that is stopping or unreachable.
//! - A connection takes no more calls after it ended, or after a call failed because of the replica's GOAWAY
//!   (RFC 9113, section 6.8). Calls in flight continue.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, BufWriter, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tonic::Status;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::batching::Batcher;
use super::settings::ConnectInMemory;
use crate::v1::operator_session_service_client::OperatorSessionServiceClient;
use crate::v1::session_service_client::SessionServiceClient;

/// Longest wait for the first bytes after a connection is accepted. A slower server is down or unhealthy.
pub(super) const FIRST_WORD_MAX: Duration = Duration::from_secs(1);

/// The client rejects larger answers. A page of 200 sessions of the largest stored size fits.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The service behind a connection.
pub(super) type Service = SessionServiceClient<Channel>;

/// The service for operators behind the same connection.
type OperatorService = OperatorSessionServiceClient<Channel>;

/// The state of a connection.
#[derive(Debug, Default)]
pub(super) struct ConnectionState {
    /// It takes no further calls.
    going_away: AtomicBool,
    /// Notified by received bytes, and by the end.
    spoke_or_ended: Notify,
}

impl ConnectionState {
    /// The connection takes no further calls.
    pub(super) fn go_away(&self) {
        self.going_away.store(true, Ordering::Release);
    }

    /// Whether the connection takes no further calls.
    pub(super) fn is_going_away(&self) -> bool {
        self.going_away.load(Ordering::Acquire)
    }

    /// Waits for the server's first bytes, sent unasked (RFC 9113, section 3.4). False if none arrive in
    /// time.
    async fn speaks(&self) -> bool {
        let first = self.spoke_or_ended.notified();
        timeout(FIRST_WORD_MAX, first).await.is_ok() && !self.is_going_away()
    }
}

/// An established connection, and the reads over it.
#[derive(Debug)]
pub(super) struct ReplicaConnection {
    service: Service,
    operators: OperatorService,
    pub(super) reads: Batcher,
    pub(super) state: Arc<ConnectionState>,
    pub(super) made: Instant,
}

impl ReplicaConnection {
    /// Connects, including handshakes, on the current runtime.
    pub(super) async fn make(
        endpoint: &Endpoint,
        address: SocketAddr,
        in_memory: Option<ConnectInMemory>,
    ) -> Result<Self, Status> {
        let state = Arc::<ConnectionState>::default();
        let begun = AtomicBool::new(false);
        let of_connection = Arc::clone(&state);
        let connector = service_fn(move |_: Uri| {
            let again = begun.swap(true, Ordering::Relaxed);
            let (state, in_memory) = (Arc::clone(&of_connection), in_memory.clone());
            async move {
                if again {
                    state.go_away();
                    return Err(io::Error::from(io::ErrorKind::NotConnected));
                }
                let stream: Box<dyn Stream> = match in_memory {
                    Some(service) => Box::new(service.connect()),
                    None => Box::new(tcp(address).await?),
                };
                Ok(TokioIo::new(ObservedSocket::over(stream, state)))
            }
        });
        let made = endpoint.connect_with_connector(connector).await;
        let channel = made.map_err(|error| {
            tracing::debug!(%address, error = &error as &dyn std::error::Error, "a replica of the session service cannot be reached");
            unreachable()
        })?;
        // The kernel accepts connections for a suspended process, and a proxy does for a server that is down.
        if !state.speaks().await {
            tracing::debug!(%address, "a replica of the session service accepts connections but does not answer");
            return Err(unreachable());
        }
        let operators = OperatorService::new(channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX);
        let service = Service::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX);
        Ok(Self {
            reads: Batcher::over(service.clone()),
            service,
            operators,
            state,
            made: Instant::now(),
        })
    }

    pub(super) fn service(&self) -> Service {
        self.service.clone()
    }

    pub(super) fn operators(&self) -> OperatorService {
        self.operators.clone()
    }
}

fn unreachable() -> Status {
    Status::unavailable("no connection to the session service can be made")
}

async fn tcp(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The bytes of a connection.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// The socket of a connection: reports received bytes and its end, and combines writes.
struct ObservedSocket {
    stream: BufWriter<Box<dyn Stream>>,
    state: Arc<ConnectionState>,
    /// Whether a flush has let other tasks run.
    has_yielded: bool,
}

impl ObservedSocket {
    /// `state` belongs to the connection.
    fn over(stream: Box<dyn Stream>, state: Arc<ConnectionState>) -> Self {
        Self {
            stream: BufWriter::new(stream),
            state,
            has_yielded: false,
        }
    }
}

impl Drop for ObservedSocket {
    fn drop(&mut self) {
        self.state.go_away();
        self.state.spoke_or_ended.notify_one();
    }
}

impl AsyncRead for ObservedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.state.spoke_or_ended.notify_one();
        }
        polled
    }
}

impl AsyncWrite for ObservedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    /// Lets other tasks run once before a write. h2 flushes the head of a request before its body is added,
    /// which would be two writes that each wake the replica.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.stream.buffer().is_empty() && !std::mem::replace(&mut self.has_yielded, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.has_yielded = false;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
