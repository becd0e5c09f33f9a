//! Notices a connection that never says what it speaks.
//!
//! The server's own timeouts begin once HTTP/1.1 and HTTP/2 can be told apart; before that, a client that sends
//! nothing, or only the beginning of HTTP/2's preface, would be kept for ever.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// With so many bytes the protocol is known: the length of HTTP/2's connection preface (RFC 9113, section 3.4).
const PREFACE_BYTES: usize = 24;

/// How far a connection has come; clones share it.
#[derive(Clone, Default)]
pub(super) struct Progress(Arc<AtomicUsize>);

impl Progress {
    /// A request was understood: the protocol is known, however few bytes it took.
    pub(super) fn request_came(&self) {
        self.0.fetch_max(PREFACE_BYTES, Ordering::Relaxed);
    }

    fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= PREFACE_BYTES
    }
}

/// A stream whose first bytes are counted.
pub(super) struct Opening<S> {
    stream: S,
    progress: Progress,
}

impl<S> Opening<S> {
    /// Counts from now on.
    pub(super) fn of(stream: S) -> (Self, Progress) {
        let progress = Progress::default();
        (
            Self {
                stream,
                progress: progress.clone(),
            },
            progress,
        )
    }
}

/// Resolves when the protocol is still unknown after `patience`, and never otherwise.
pub(super) async fn abandoned(progress: &Progress, patience: Duration) {
    tokio::time::sleep(patience).await;
    if progress.is_known() {
        std::future::pending::<()>().await;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Opening<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if !self.progress.is_known() {
            self.progress
                .0
                .fetch_add(buffer.filled().len() - before, Ordering::Relaxed);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Opening<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
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
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Whether a connection over which `sent` arrived is given up.
    async fn is_abandoned(sent: &[u8], asked: bool) -> bool {
        let (mut client, server) = tokio::io::duplex(64);
        let (mut server, progress) = Opening::of(server);
        client.write_all(sent).await.unwrap();
        server.read_exact(&mut vec![0; sent.len()]).await.unwrap();
        if asked {
            progress.request_came();
        }
        let given_up = abandoned(&progress, Duration::from_millis(1));
        tokio::time::timeout(Duration::from_millis(50), given_up)
            .await
            .is_ok()
    }

    #[tokio::test]
    async fn a_connection_is_given_up_only_while_its_protocol_is_unknown() {
        assert!(is_abandoned(b"", false).await);
        assert!(is_abandoned(b"PRI * HT", false).await);
        assert!(!is_abandoned(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false).await);
        assert!(!is_abandoned(b"GET / HTTP/1.1\r\n\r\n", true).await);
    }
}
