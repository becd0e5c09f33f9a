//! The stream between the server and the socket or its TLS. All bytes pass through it.
//!
//! - It counts bytes, and detects the start of HTTP/2 ([`ConnectionProgress`]).
//! - It reports to the byte budget when the socket has accepted all of an answer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::sleep;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::byte_budget::{ByteBudget, BytesPermit};
use super::capacity::ConnectionPermit;
use super::progress::ConnectionProgress;

/// The stream of a connection; clones share it.
pub(super) struct ConnectionIo<S>(Arc<Mutex<Io<S>>>);

impl<S> Clone for ConnectionIo<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Io<S> {
    stream: S,
    progress: ConnectionProgress,
    budget: ByteBudget,
    /// Whether the socket refused bytes in the current poll.
    is_blocked: bool,
    /// Both permits last while the stream is open: the connection's, and that of a request that upgraded it.
    _permit: Option<(ConnectionPermit, TaskTrackerToken)>,
    upgraded: Option<BytesPermit>,
}

impl<S> ConnectionIo<S> {
    /// Wraps a socket, or the TLS over it.
    pub(super) fn over(
        stream: S,
        progress: ConnectionProgress,
        budget: ByteBudget,
        permit: Option<(ConnectionPermit, TaskTrackerToken)>,
    ) -> Self {
        Self(Arc::new(Mutex::new(Io {
            stream,
            progress,
            budget,
            is_blocked: false,
            _permit: permit,
            upgraded: None,
        })))
    }

    /// Holds these bytes until the stream is closed.
    pub(super) fn keep(&self, bytes: Option<BytesPermit>) {
        self.lock().upgraded = bytes;
    }

    fn lock(&self) -> MutexGuard<'_, Io<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> ConnectionIo<S> {
    /// Drives a connection over this stream. If the socket accepts all bytes of a poll, the budget releases them.
    pub(super) async fn drive<F, E>(&self, mut connection: Pin<&mut F>) -> Result<(), E>
    where
        F: Future<Output = Result<(), E>>,
    {
        std::future::poll_fn(|context| {
            self.lock().is_blocked = false;
            let turn = connection.as_mut().poll(context);
            let io = &mut *self.lock();
            if !io.is_blocked {
                io.budget.release_sent();
            }
            turn
        })
        .await
    }

    /// Resolves when the server's buffers are empty and no request was in flight for `idle`. Over HTTP/2 it never
    /// resolves: the server keeps more than buffers there.
    pub(super) async fn until_unused(&self, idle: Duration) {
        let mut pause = idle;
        loop {
            sleep(pause).await;
            let io = self.lock();
            let unused = io.progress.idle_since().map(|since| since.elapsed());
            let rest = idle.saturating_sub(unused.unwrap_or_default());
            if rest.is_zero() && !io.is_blocked && io.progress.take_head_end() {
                return;
            }
            pause = if rest.is_zero() { idle } else { rest };
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ConnectionIo<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let io = &mut *self.lock();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut io.stream).poll_read(context, buffer))?;
        io.progress.record_received(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ConnectionIo<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let io = &mut *self.lock();
        let polled = Pin::new(&mut io.stream).poll_write_vectored(context, slices);
        io.is_blocked |= polled.is_pending();
        let written = ready!(polled)?;
        io.progress.record_sent(written);
        Poll::Ready(Ok(written))
    }

    /// False over HTTP/2: h2 then copies bodies of up to 1,024 bytes behind their frame heads, so that small
    /// answers share one write. With vectored writes, each body above 256 bytes needs its own.
    fn is_write_vectored(&self) -> bool {
        let io = self.lock();
        io.stream.is_write_vectored() && !io.progress.begins_http2()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let io = &mut *self.lock();
        let polled = Pin::new(&mut io.stream).poll_flush(context);
        io.is_blocked |= polled.is_pending();
        polled
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_shutdown(context)
    }
}
