//! Frames that are made together leave together, on either side of an HTTP/2 connection (docs/decisions/gathered-writes.md).
//!
//! HTTP/2 writes a message in pieces: what comes before its body, the body, what comes after. Each piece would be a system call and
//! a packet, and wake the other side once more. Here they are gathered, and the owner of the stream decides when they leave: after each turn of a connection that
//! it drives itself ([`GatheredWrites::poll_send`]), or else behind whatever else is ready to run
//! ([`GatheredWrites::poll_flush_behind_others`]). Nothing waits for time to pass.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

/// Bytes gathered at most: what is more is written at once.
const GATHERED_MAX: usize = 64 * 1024;

/// Capacity that is kept for the next bytes.
const KEPT: usize = 8 * 1024;

/// What is to be written to one stream, which is handed in with each call.
#[derive(Debug, Default)]
pub struct GatheredWrites {
    bytes: Vec<u8>,
    /// How many of them are written.
    written: usize,
    /// Whether the stream still has to pass on what was written to it.
    needs_flush: bool,
    has_yielded: bool,
}

impl GatheredWrites {
    /// Gathers bytes; writes first what is there when that is all there may be.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn poll_write<S: AsyncWrite>(
        &mut self,
        stream: Pin<&mut S>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.bytes.len() >= GATHERED_MAX {
            ready!(self.poll_send(stream, context))?;
        }
        Poll::Ready(Ok(slices.iter().map(|slice| self.append(slice)).sum()))
    }

    /// Writes what was gathered and flushes the stream; does nothing when nothing was.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn poll_send<S: AsyncWrite>(
        &mut self,
        mut stream: Pin<&mut S>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(rest) = self.bytes.get(self.written..).filter(|rest| !rest.is_empty()) {
            match ready!(stream.as_mut().poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
            self.needs_flush = true;
        }
        if self.written > 0 {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT);
            self.written = 0;
        }
        if self.needs_flush {
            ready!(stream.poll_flush(context))?;
            self.needs_flush = false;
        }
        Poll::Ready(Ok(()))
    }

    /// The same, after it has yielded once to everything else that is ready to run on this runtime: what that writes leaves in the same
    /// write.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn poll_flush_behind_others<S: AsyncWrite>(
        &mut self,
        stream: Pin<&mut S>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.bytes.is_empty() && !self.has_yielded {
            self.has_yielded = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(self.poll_send(stream, context))?;
        self.has_yielded = false;
        Poll::Ready(Ok(()))
    }

    /// Writes what was gathered and ends the stream.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn poll_shutdown<S: AsyncWrite>(
        &mut self,
        mut stream: Pin<&mut S>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_send(stream.as_mut(), context))?;
        stream.poll_shutdown(context)
    }

    fn append(&mut self, bytes: &[u8]) -> usize {
        let free = GATHERED_MAX.saturating_sub(self.bytes.len());
        let accepted = &bytes[..bytes.len().min(free)];
        self.bytes.extend_from_slice(accepted);
        accepted.len()
    }
}

#[cfg(test)]
mod tests;
