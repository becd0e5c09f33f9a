//! A connection to a replica whose writes are gathered: HTTP/2 flushes the head of a request before its message is at hand, and would
//! write it by itself.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use gathered_writes::GatheredWrites;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::connection::GoingAway;

/// A stream that gathers its writes, and records its end.
pub(super) struct Gathering {
    stream: TcpStream,
    gathered: GatheredWrites,
    going_away: GoingAway,
}

/// Connects to `address`; `going_away` is set when the connection ends.
pub(super) async fn connect(address: SocketAddr, going_away: GoingAway) -> io::Result<TokioIo<Gathering>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(TokioIo::new(Gathering {
        stream,
        gathered: GatheredWrites::default(),
        going_away,
    }))
}

impl Drop for Gathering {
    fn drop(&mut self) {
        self.going_away.go_away();
    }
}

impl AsyncRead for Gathering {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Gathering {
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
