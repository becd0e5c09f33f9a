//! The stream of a connection, between the server and the socket or its TLS: every byte goes through it.
//!
//! - It counts what moves, and sees whether HTTP/2 begins ([`ConnectionProgress`]).
//! - It notices that a client has left while the server does not look. The HTTP/1.1 server reads nothing while a request is worked on and
//!   the next one, pipelined behind it (RFC 9112, section 9.3.2), has come already; a client that leaves then would keep its request
//!   running until a timeout. So what comes meanwhile is read here, ahead and bounded, up to the end that says so. While the server
//!   reads by itself, this does nothing.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::byte_budget::{ByteBudget, BytesPermit};
use super::capacity::ConnectionPermit;
use super::progress::ConnectionProgress;

/// Bytes read ahead; a client that pipelines more is noticed later.
const AHEAD_MAX: usize = 16 * 1024;

/// Bytes read at once.
const PIECE: usize = 4096;

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
    ahead: Vec<u8>,
    /// Whether the server waits for bytes itself.
    is_read: bool,
    budget: ByteBudget,
    /// Whether the socket has refused bytes in this turn.
    is_blocked: bool,
    /// As long as the stream is open its connection counts, and what the request holds that it was upgraded by.
    _permit: Option<(ConnectionPermit, TaskTrackerToken)>,
    upgraded: Option<BytesPermit>,
}

impl<S> ConnectionIo<S> {
    /// Over a socket, or the TLS over it.
    pub(super) fn over(
        stream: S,
        progress: ConnectionProgress,
        budget: ByteBudget,
        permit: Option<(ConnectionPermit, TaskTrackerToken)>,
    ) -> Self {
        Self(Arc::new(Mutex::new(Io {
            stream,
            progress,
            ahead: Vec::new(),
            is_read: false,
            budget,
            is_blocked: false,
            _permit: permit,
            upgraded: None,
        })))
    }

    /// Holds these bytes for as long as the stream is open.
    pub(super) fn keep(&self, bytes: Option<BytesPermit>) {
        self.lock().upgraded = bytes;
    }

    fn lock(&self) -> MutexGuard<'_, Io<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> ConnectionIo<S> {
    /// Drives a connection over this stream. Bytes of the budget are sent once a turn ends without the socket refusing any.
    pub(super) async fn drive<F, E>(&self, mut connection: Pin<&mut F>) -> Result<(), E>
    where
        F: Future<Output = Result<(), E>>,
    {
        std::future::poll_fn(|context| {
            self.lock().is_blocked = false;
            let turn = connection.as_mut().poll(context);
            let io = &mut *self.lock();
            if !io.is_blocked {
                io.budget.sent();
            }
            turn
        })
        .await
    }
}

impl<S: AsyncRead + Unpin> Io<S> {
    /// Reads what has come, as far as the buffer goes; resolves with the end, as an error.
    fn read_ahead(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        while self.ahead.len() < AHEAD_MAX {
            let mut piece = [0; PIECE];
            let mut buffer = ReadBuf::new(&mut piece);
            match ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer)) {
                Ok(()) if buffer.filled().is_empty() => {
                    return Poll::Ready(io::ErrorKind::ConnectionAborted.into());
                }
                Ok(()) => self.ahead.extend_from_slice(buffer.filled()),
                Err(error) => return Poll::Ready(error),
            }
        }
        Poll::Pending
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
        if io.ahead.is_empty() {
            let polled = Pin::new(&mut io.stream).poll_read(context, buffer);
            io.is_read = polled.is_pending();
            ready!(polled)?;
        } else {
            let length = buffer.remaining().min(io.ahead.len());
            buffer.put_slice(&io.ahead[..length]);
            io.ahead.drain(..length);
        }
        io.progress.received(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ConnectionIo<S> {
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
        io.progress.sent(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.lock().stream.is_write_vectored()
    }

    /// The server flushes whenever it has nothing else to do, so this is where to look whether the client has left.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let io = &mut *self.lock();
        if !io.progress.begins_http2()
            && !io.is_read
            && io.progress.is_working()
            && let Poll::Ready(left) = io.read_ahead(context)
        {
            return Poll::Ready(Err(left));
        }
        let polled = Pin::new(&mut io.stream).poll_flush(context);
        io.is_blocked |= polled.is_pending();
        polled
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn no_more_is_read_ahead_than_the_buffer_holds() {
        let (mut client, server) = tokio::io::duplex(1024 * 1024);
        let progress = ConnectionProgress::default();
        let mut stream = ConnectionIo::over(server, progress.clone(), ByteBudget::default(), None);
        client.write_all(&[0; 10 * AHEAD_MAX]).await.unwrap();
        let _working = progress.works();
        stream.flush().await.unwrap();
        assert!((AHEAD_MAX..AHEAD_MAX + PIECE).contains(&stream.lock().ahead.len()));
    }
}
