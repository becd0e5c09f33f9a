//! What leaves in which write.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::*;

/// A stream that gathers, and counts how often what is below it is written to.
struct Gathering {
    below: Counted,
    gathered: GatheredWrites,
}

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

impl AsyncWrite for Gathering {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let slices = [IoSlice::new(bytes)];
        this.gathered
            .poll_write(Pin::new(&mut this.below), context, &slices)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.gathered
            .poll_flush_behind_others(Pin::new(&mut this.below), context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.gathered.poll_shutdown(Pin::new(&mut this.below), context)
    }
}

/// The other side of a stream over a buffer of that many bytes, the stream, and how often it was written to.
fn gathering(buffer_bytes: usize) -> (DuplexStream, Gathering, Arc<AtomicUsize>) {
    let (other, stream) = tokio::io::duplex(buffer_bytes);
    let writes = Arc::default();
    let stream = Gathering {
        below: Counted(stream, Arc::clone(&writes)),
        gathered: GatheredWrites::default(),
    };
    (other, stream, writes)
}

#[tokio::test]
async fn what_is_ready_before_a_flush_has_its_turn_leaves_with_it() {
    let (mut other, stream, writes) = gathering(64);
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
    other.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"headmessage");
    assert_eq!(writes.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn more_than_is_gathered_or_written_at_once_arrives_whole_and_in_order() {
    let (mut other, mut stream, _) = gathering(1_000);
    let sent = [&b"head"[..], &[7; 2 * GATHERED_MAX], b"end"].concat();
    let mut read = Vec::new();
    let sending = async {
        for piece in [&sent[..4], &sent[4..sent.len() - 3], &sent[sent.len() - 3..]] {
            stream.write_all(piece).await?;
            stream.flush().await?;
        }
        stream.shutdown().await
    };
    let (done, all) = tokio::join!(sending, other.read_to_end(&mut read));
    done.unwrap();
    assert_eq!(all.unwrap(), sent.len());
    assert!(read == sent);
}
