//! Connections to upstreams that read the upstream's answer even after a write failed.
//!
//! A server that rejects an upload answers and closes. The next write fails before the answer is read. HTTP clients
//! then stop, although RFC 9112, section 9.5, asks them to watch for the answer. This stream discards such writes,
//! and reads on until the answer, the end, or the failure itself.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tower::util::MapResponse;

/// Connects to upstreams, and wraps each connection in a [`PatientStream`].
pub(super) type PatientConnector = MapResponse<HttpConnector, MakePatient>;

/// Wraps a connection.
type MakePatient = fn(TokioIo<TcpStream>) -> TokioIo<PatientStream>;

/// Wraps the connections of `connector`.
pub(super) fn patient(connector: HttpConnector) -> PatientConnector {
    MapResponse::new(connector, |stream| {
        TokioIo::new(PatientStream {
            stream: stream.into_inner(),
            write_failure: None,
        })
    })
}

/// A connection to an upstream.
pub(super) struct PatientStream {
    stream: TcpStream,
    /// Why the upstream accepts no more writes.
    write_failure: Option<io::ErrorKind>,
}

impl PatientStream {
    /// Reports a write to a closed upstream as successful; other failures stay errors.
    fn check_write(&mut self, written: Poll<io::Result<usize>>, bytes: usize) -> Poll<io::Result<usize>> {
        match ready!(written) {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
                ) =>
            {
                self.write_failure.get_or_insert(error.kind());
                Poll::Ready(Ok(bytes))
            }
            other => Poll::Ready(other),
        }
    }
}

impl AsyncRead for PatientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let is_end = buffer.filled().len() == before && buffer.remaining() > 0;
        match self.write_failure {
            // The failed write consumed the reset for this read, so the answer may be cut off.
            Some(reset @ io::ErrorKind::ConnectionReset) if is_end => Poll::Ready(Err(reset.into())),
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for PatientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check_write(written, bytes.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.check_write(written, pieces.iter().map(|piece| piece.len()).sum())
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Connection for PatientStream {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}
