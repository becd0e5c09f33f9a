//! How far a connection has come: whether it ever said what it speaks, whether it moves, whether it has been asked.
//!
//! The server's own timeouts begin once HTTP/1.1 and HTTP/2 can be told apart; before that, a client that sends
//! nothing, or only the beginning of HTTP/2's preface, would be kept for ever. And the server closes an idle connection
//! at once when it is told to stop, with a request that is on its way to it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// With so many bytes the protocol is known: the length of HTTP/2's connection preface (RFC 9113, section 3.4).
const PREFACE_BYTES: u64 = 24;

/// How far a connection has come; clones share it. All of it happens in the connection's own task.
#[derive(Clone, Default)]
pub(super) struct Progress(Arc<Steps>);

#[derive(Default)]
struct Steps {
    received: AtomicU64,
    sent: AtomicU64,
    asked: AtomicBool,
    speaks_http2: AtomicBool,
    works: AtomicBool,
    is_last: AtomicBool,
}

impl Progress {
    /// A request was understood: the protocol is known, however few bytes it took.
    pub(super) fn request_came(&self, version: hyper::Version) {
        self.0.asked.store(true, Ordering::Relaxed);
        if version == hyper::Version::HTTP_2 {
            self.0.speaks_http2.store(true, Ordering::Relaxed);
        }
    }

    /// A request of HTTP/1.1 is being answered, until what this gives is dropped.
    pub(super) fn works(&self) -> Working {
        self.0.works.store(true, Ordering::Relaxed);
        Working(self.clone())
    }

    /// Whether a request of HTTP/1.1 waits for its answer to begin.
    pub(super) fn is_working(&self) -> bool {
        self.0.works.load(Ordering::Relaxed)
    }

    /// From now on each answer is the connection's last.
    pub(super) fn end_with_next_answer(&self) {
        self.0.is_last.store(true, Ordering::Relaxed);
    }

    /// Whether an answer is the connection's last.
    pub(super) fn ends_with_next_answer(&self) -> bool {
        self.0.is_last.load(Ordering::Relaxed)
    }

    fn is_known(&self) -> bool {
        self.0.asked.load(Ordering::Relaxed) || self.0.received.load(Ordering::Relaxed) >= PREFACE_BYTES
    }

    /// Bytes both ways so far.
    fn moved(&self) -> u64 {
        self.0.received.load(Ordering::Relaxed) + self.0.sent.load(Ordering::Relaxed)
    }
}

/// A request whose answer has not begun.
pub(super) struct Working(Progress);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.0.works.store(false, Ordering::Relaxed);
    }
}

/// Resolves when the protocol is still unknown after `patience`, and never otherwise.
pub(super) async fn abandoned(progress: &Progress, patience: Duration) {
    tokio::time::sleep(patience).await;
    if progress.is_known() {
        std::future::pending::<()>().await;
    }
}

/// Resolves when the connection can be told to stop without losing a request: at once if it speaks HTTP/2, which says which
/// requests it still takes; otherwise once nothing has moved for `quiet`, or for `first` if it has not been asked at all.
pub(super) async fn may_stop(progress: &Progress, first: Duration, quiet: Duration) {
    while !progress.0.speaks_http2.load(Ordering::Relaxed) {
        let moved = progress.moved();
        let was_asked = progress.0.asked.load(Ordering::Relaxed);
        tokio::time::sleep(if was_asked { quiet } else { first }).await;
        if progress.moved() == moved {
            return;
        }
    }
}

/// Counts without a locked instruction: only the connection's own task writes.
fn add(count: &AtomicU64, bytes: usize) {
    count.store(count.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
}

/// A stream whose bytes are counted.
pub(super) struct Counted<S> {
    stream: S,
    progress: Progress,
}

impl<S> Counted<S> {
    /// Counts from now on.
    pub(super) fn of(stream: S, progress: Progress) -> Self {
        Self { stream, progress }
    }

    fn sent(&self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &polled {
            add(&self.progress.0.sent, *bytes);
        }
        polled
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        add(&self.progress.0.received, buffer.filled().len() - before);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, buffer);
        self.sent(polled)
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
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.sent(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use hyper::Version;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;

    use super::*;

    /// Whether a connection over which `sent` arrived is given up.
    async fn is_abandoned(sent: &[u8], asked: bool) -> bool {
        let (mut client, server) = tokio::io::duplex(64);
        let progress = Progress::default();
        let mut server = Counted::of(server, progress.clone());
        client.write_all(sent).await.unwrap();
        server.read_exact(&mut vec![0; sent.len()]).await.unwrap();
        if asked {
            progress.request_came(Version::HTTP_11);
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

    #[tokio::test(start_paused = true)]
    async fn a_connection_may_stop_once_it_is_quiet_and_at_once_over_http2() {
        let (first, quiet) = (Duration::from_secs(5), Duration::from_secs(1));
        let stopped_after = async |progress: &Progress| {
            let began = Instant::now();
            may_stop(progress, first, quiet).await;
            began.elapsed()
        };
        let (mut client, server) = tokio::io::duplex(64);
        let progress = Progress::default();
        let mut server = Counted::of(server, progress.clone());
        assert_eq!(stopped_after(&progress).await, first);

        progress.request_came(Version::HTTP_11);
        assert_eq!(stopped_after(&progress).await, quiet);
        let moving = async {
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_millis(900)).await;
                server.write_all(b"x").await.unwrap();
                client.read_u8().await.unwrap();
            }
        };
        let ((), took) = tokio::join!(moving, stopped_after(&progress));
        assert!(took > Duration::from_secs(9), "not while bytes move: {took:?}");

        progress.request_came(Version::HTTP_2);
        assert_eq!(stopped_after(&progress).await, Duration::ZERO);
    }
}
