//! The socket below a connection, which notices that a client has left while the server does not look.
//!
//! The HTTP/1.1 server reads nothing while a request is worked on and the next one, pipelined behind it (RFC 9112, section
//! 9.3.2), has come already; a client that leaves then would keep its request running until a timeout. So what comes
//! meanwhile is read here, ahead and bounded, up to the end that says so. While the server reads by itself, this does nothing.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::progress::Progress;
use super::room::Seat;

/// Bytes read ahead; a client that pipelines more is noticed later.
const AHEAD_MAX: usize = 16 * 1024;

/// Bytes read at once.
const PIECE: usize = 4096;

/// A socket that reads ahead.
pub(super) struct Socket<S> {
    stream: S,
    progress: Progress,
    ahead: Vec<u8>,
    /// Whether the server waits for bytes itself.
    is_read: bool,
    /// As long as the socket is open its connection counts.
    _seat: Option<Seat>,
}

impl<S: AsyncRead + Unpin> Socket<S> {
    pub(super) fn of(stream: S, progress: Progress, seat: Option<Seat>) -> Self {
        Self {
            stream,
            progress,
            ahead: Vec::new(),
            is_read: false,
            _seat: seat,
        }
    }

    /// Reads what has come, as far as there is room; resolves with the end, as an error.
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

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let length = buffer.remaining().min(self.ahead.len());
            buffer.put_slice(&self.ahead[..length]);
            self.ahead.drain(..length);
            return Poll::Ready(Ok(()));
        }
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.is_read = polled.is_pending();
        polled
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    /// The server flushes whenever it has nothing else to do, so this is where to look.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_read
            && self.progress.is_working()
            && let Poll::Ready(left) = self.read_ahead(context)
        {
            return Poll::Ready(Err(left));
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn no_more_is_read_ahead_than_there_is_room_for() {
        let (mut client, server) = tokio::io::duplex(1024 * 1024);
        let progress = Progress::default();
        let mut socket = Socket::of(server, progress.clone(), None);
        client.write_all(&[0; 10 * AHEAD_MAX]).await.unwrap();
        let _working = progress.works();
        socket.flush().await.unwrap();
        assert!((AHEAD_MAX..AHEAD_MAX + PIECE).contains(&socket.ahead.len()));
    }
}
