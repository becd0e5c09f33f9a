//! Frames that are made together leave together.
//!
//! HTTP/2 flushes the head of a request before its message is at hand, so that each call would cost two packets, and
//! wake the service twice. Here a flush steps back once behind everything else that is ready to run on this scheduler:
//! what that makes, other calls included, leaves in the same write. Nothing waits for time to pass.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::connection::AcceptsCalls;

/// Bytes gathered at most: what is more is written at once.
const GATHERED_MAX: usize = 64 * 1024;

/// Room that is kept for the next bytes.
const KEPT: usize = 8 * 1024;

/// A stream whose flushes gather.
pub(super) struct Gathering<S> {
    stream: S,
    gathered: Vec<u8>,
    /// How many of them are written.
    written: usize,
    stepped_back: bool,
    /// Told of the end of the stream.
    standing: AcceptsCalls,
}

/// Connects to `address`; `standing` is told when the connection ends.
pub(super) async fn connect(
    address: SocketAddr,
    standing: AcceptsCalls,
) -> io::Result<TokioIo<Gathering<TcpStream>>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(TokioIo::new(Gathering::over(stream, standing)))
}

impl<S> Drop for Gathering<S> {
    fn drop(&mut self) {
        self.standing.go();
    }
}

impl<S: AsyncWrite + Unpin> Gathering<S> {
    fn over(stream: S, standing: AcceptsCalls) -> Self {
        Self {
            stream,
            gathered: Vec::new(),
            written: 0,
            stepped_back: false,
            standing,
        }
    }

    fn take(&mut self, bytes: &[u8]) -> usize {
        let room = GATHERED_MAX.saturating_sub(self.gathered.len());
        let taken = &bytes[..bytes.len().min(room)];
        self.gathered.extend_from_slice(taken);
        taken.len()
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.gathered.get(self.written..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
        }
        self.gathered.clear();
        self.gathered.shrink_to(KEPT);
        (self.written, self.stepped_back) = (0, false);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathering<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.gathered.len() >= GATHERED_MAX {
            ready!(self.poll_send(context))?;
        }
        Poll::Ready(Ok(slices.iter().map(|slice| self.take(slice)).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.gathered.is_empty() && !self.stepped_back {
            self.stepped_back = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use super::*;

    /// A stream that counts how often it is written to.
    struct Counted(DuplexStream, Arc<AtomicUsize>);

    impl AsyncWrite for Counted {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.1.fetch_add(1, Ordering::Relaxed);
            Pin::new(&mut self.0).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(context)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(context)
        }
    }

    fn counted(room: usize) -> (DuplexStream, Gathering<Counted>, Arc<AtomicUsize>) {
        let (service, client) = tokio::io::duplex(room);
        let writes = Arc::default();
        let stream = Gathering::over(Counted(client, Arc::clone(&writes)), AcceptsCalls::default());
        (service, stream, writes)
    }

    #[tokio::test]
    async fn what_is_ready_before_a_flush_has_its_turn_leaves_with_it() {
        let (mut service, stream, writes) = counted(64);
        let stream = tokio::sync::Mutex::new(stream);
        let head = async {
            stream.lock().await.write_all(b"head").await?;
            std::future::poll_fn(|context| match stream.try_lock() {
                Ok(mut stream) => Pin::new(&mut *stream).poll_flush(context),
                Err(_) => Poll::Pending,
            })
            .await
        };
        let message = async { stream.lock().await.write_all(b"message").await };
        tokio::try_join!(head, message).unwrap();
        let mut read = [0; 11];
        service.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"headmessage");
        assert_eq!(writes.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn more_than_is_gathered_or_taken_at_once_arrives_whole_and_in_order() {
        let (mut service, mut stream, _) = counted(1_000);
        let sent = [&b"head"[..], &[7; 2 * GATHERED_MAX], b"end"].concat();
        let mut read = Vec::new();
        let sending = async {
            for piece in [&sent[..4], &sent[4..sent.len() - 3], &sent[sent.len() - 3..]] {
                stream.write_all(piece).await?;
                stream.flush().await?;
            }
            stream.shutdown().await
        };
        let (done, all) = tokio::join!(sending, service.read_to_end(&mut read));
        done.unwrap();
        assert_eq!(all.unwrap(), sent.len());
        assert!(read == sent);
    }
}
