//! Frames that are made together leave together.
//!
//! HTTP/2 writes an answer of some size in pieces: what comes before its body, the body, what comes after. Each piece
//! would be a packet, and wake the other side once more. Here what one turn of a connection writes, answers of several
//! streams included, leaves in one write when the turn is over. HTTP/1.1 writes an answer in one piece by itself.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes gathered at most: what is more is written at once.
const GATHERED_MAX: usize = 64 * 1024;

/// Room that is kept for the next bytes.
const KEPT: usize = 8 * 1024;

/// The stream of a connection; clones share it.
pub(super) struct Gathering<S>(Arc<Mutex<Gathered<S>>>);

impl<S> Clone for Gathering<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Gathering<S> {
    fn lock(&self) -> MutexGuard<'_, Gathered<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Gathered<S> {
    stream: S,
    bytes: Vec<u8>,
    /// How many of them are written.
    written: usize,
    is_flushed: bool,
    /// Whether [`Gathering::drive`] writes them.
    is_driven: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Gathering<S> {
    /// Writes everything at once for now.
    pub(super) fn over(stream: S) -> Self {
        Self(Arc::new(Mutex::new(Gathered {
            stream,
            bytes: Vec::new(),
            written: 0,
            is_flushed: true,
            is_driven: false,
        })))
    }

    /// Gathers from now on what a connection that is driven writes.
    pub(super) fn begin(&self) {
        self.lock().is_driven = true;
    }

    /// Drives a connection over this stream, and writes after each of its turns what it has gathered.
    pub(super) async fn drive<F, E>(&self, mut connection: Pin<&mut F>) -> Result<(), E>
    where
        F: Future<Output = Result<(), E>>,
        E: From<io::Error>,
    {
        let driven = std::future::poll_fn(|context| {
            let turn = connection.as_mut().poll(context);
            match self.lock().poll_send(context) {
                Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
                Poll::Ready(Ok(())) | Poll::Pending => turn,
            }
        });
        let served = driven.await;
        // What goes on without the connection, an upgrade, writes by itself.
        self.lock().is_driven = false;
        std::future::poll_fn(|context| self.lock().poll_send(context)).await?;
        served
    }
}

impl<S: AsyncWrite + Unpin> Gathered<S> {
    fn take(&mut self, bytes: &[u8]) -> usize {
        let room = GATHERED_MAX.saturating_sub(self.bytes.len());
        let taken = &bytes[..bytes.len().min(room)];
        self.bytes.extend_from_slice(taken);
        taken.len()
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.bytes.get(self.written..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
        }
        if self.written > 0 {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT);
            (self.written, self.is_flushed) = (0, false);
        }
        if !self.is_flushed {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.is_flushed = true;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathering<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathering<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut gathered = self.lock();
        let full = gathered.bytes.len() >= GATHERED_MAX;
        if full || !gathered.is_driven {
            ready!(gathered.poll_send(context))?;
        }
        if gathered.is_driven {
            return Poll::Ready(Ok(slices.iter().map(|slice| gathered.take(slice)).sum()));
        }
        Pin::new(&mut gathered.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.lock().stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathered = self.lock();
        if gathered.is_driven {
            return Poll::Ready(Ok(()));
        }
        ready!(gathered.poll_send(context))?;
        Pin::new(&mut gathered.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathered = self.lock();
        ready!(gathered.poll_send(context))?;
        Pin::new(&mut gathered.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A stream that counts how often it is written to.
    struct Counted(tokio::io::DuplexStream, Arc<std::sync::atomic::AtomicUsize>);

    impl AsyncRead for Counted {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Counted {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Pin::new(&mut self.0).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(context)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(context)
        }
    }

    async fn writes_of(gathers: bool, pieces: &[&[u8]], room: usize) -> (usize, Vec<u8>) {
        let (mut client, server) = tokio::io::duplex(room);
        let writes = Arc::default();
        let gathering = Gathering::over(Counted(server, Arc::clone(&writes)));
        if gathers {
            gathering.begin();
        }
        let mut stream = gathering.clone();
        let serving = async move {
            for piece in pieces {
                stream.write_all(piece).await?;
                stream.flush().await?;
            }
            Ok::<_, io::Error>(())
        };
        let mut serving = Box::pin(serving);
        let mut read = vec![0; pieces.concat().len()];
        let (served, all) = tokio::join!(gathering.drive(serving.as_mut()), client.read_exact(&mut read));
        served.unwrap();
        all.unwrap();
        (writes.load(std::sync::atomic::Ordering::Relaxed), read)
    }

    #[tokio::test]
    async fn what_one_turn_writes_leaves_in_one_write() {
        let pieces: &[&[u8]] = &[b"head", b"body", b"end"];
        assert_eq!(writes_of(true, pieces, 64).await, (1, b"headbodyend".to_vec()));
        assert_eq!(writes_of(false, pieces, 64).await, (3, b"headbodyend".to_vec()));
    }

    #[tokio::test]
    async fn more_than_is_gathered_or_taken_at_once_arrives_whole_and_in_order() {
        static LARGE: [u8; 100_000] = [7; 100_000];
        let pieces: &[&[u8]] = &[b"head", &LARGE, b"end"];
        for gathers in [true, false] {
            let (_, read) = writes_of(gathers, pieces, 1_000).await;
            assert_eq!(read, pieces.concat());
        }
    }
}
