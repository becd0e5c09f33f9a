//! One connection to a replica, from when it is made until it goes.
//!
//! Invariants
//! - It is made before any call goes over it, and never a second time: a replica that is shutting down, or whose address answers
//!   nobody any more, keeps no call waiting. Another one is made where no call waits for it
//!   ([`Channels`](super::channels::Channels)).
//! - It counts as going from the first sign on: its end, or the replica's GOAWAY (RFC 9113, section 6.8) as the next call meets it. What is
//!   in flight on it goes on.
//! - Its writes are gathered: HTTP/2 flushes the head of a request before its message is at hand, and would write it by itself.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use gathered_writes::GatheredWrites;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tonic::Status;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::batching::Batcher;

/// Whether a connection takes no further calls; clones share it.
#[derive(Clone, Debug, Default)]
struct GoingAway(Arc<AtomicBool>);

impl GoingAway {
    /// It takes no further calls.
    fn go_away(&self) {
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
                GatheringStream::connect(address, going_away)
                    .await
                    .map(TokioIo::new)
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

/// The socket of a connection: gathers writes, and records its end.
struct GatheringStream {
    stream: TcpStream,
    gathered: GatheredWrites,
    going_away: GoingAway,
}

impl GatheringStream {
    /// Connects to `address`; `going_away` is set when the connection ends.
    async fn connect(address: SocketAddr, going_away: GoingAway) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            gathered: GatheredWrites::default(),
            going_away,
        })
    }
}

impl Drop for GatheringStream {
    fn drop(&mut self) {
        self.going_away.go_away();
    }
}

impl AsyncRead for GatheringStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for GatheringStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        this.gathered
            .poll_write(Pin::new(&mut this.stream), context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.gathered
            .poll_flush_behind_others(Pin::new(&mut this.stream), context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.gathered.poll_shutdown(Pin::new(&mut this.stream), context)
    }
}
