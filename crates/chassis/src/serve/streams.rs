//! Streams of an HTTP/2 connection whose answer nobody takes.
//!
//! Where a whole connection stands still, the kernel notices ([`give_up_stalled`](super::give_up_stalled)). Within a connection that
//! lives, only the stream's window stands still (RFC 9113, section 5.2), and with it all that the answer holds: memory, an open
//! file, an upstream's connection. Such a stream is reset. Invariants: only waiting for the client counts, so that a stream
//! of events may be silent; an answer that moves, however slowly, goes on; what is handed over for good is a single byte, so that
//! the size of an answer excepts nobody.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::rt::Executor;
use tokio::time::{Instant, Sleep};

use super::progress::{Busy, Progress};
use super::waiting::{BytesPermit, Waiting};

/// A larger piece is given away in parts, so that a slow client is seen to take them.
const PIECE: usize = 16 * 1024;

/// What is known of one stream's answer. All of it happens on the connection's worker.
#[derive(Default)]
pub(super) struct AnswerProgress {
    pieces: AtomicU64,
    waits_for_client: AtomicBool,
}

/// Runs the streams of one connection.
#[derive(Clone)]
pub(super) struct Streams {
    next: Arc<Mutex<Option<Arc<AnswerProgress>>>>,
    progress: Progress,
    longest: Option<Duration>,
}

impl Streams {
    /// Gives a stream up whose answer has stood still for `longest`.
    pub(super) fn new(progress: Progress, longest: Option<Duration>) -> Self {
        Self {
            next: Arc::default(),
            progress,
            longest,
        }
    }

    /// The stream of the request that is about to be run: the server asks for both in turn.
    pub(super) fn begin(&self) -> Arc<AnswerProgress> {
        let taken = Arc::<AnswerProgress>::default();
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&taken));
        taken
    }
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let taken = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (taken, self.longest) {
            (Some(taken), Some(longest)) => {
                tokio::spawn(watched(stream, taken, longest));
            }
            (Some(_), None) => {
                tokio::spawn(stream);
            }
            // What goes on after an answer: a WebSocket.
            (None, _) => {
                let busy = self.progress.begin(0);
                tokio::spawn(async move {
                    let _busy = busy;
                    stream.await;
                });
            }
        }
    }
}

/// Runs a stream until its answer has stood still for `longest`: a stream that is dropped is reset.
async fn watched(stream: impl Future, taken: Arc<AnswerProgress>, longest: Duration) {
    let mut stream = pin!(stream);
    let mut seen = 0;
    // Runs while the client is waited for.
    let mut waiting: Option<Pin<Box<Sleep>>> = None;
    std::future::poll_fn(|context| {
        if stream.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let pieces = taken.pieces.load(Ordering::Relaxed);
        if !taken.waits_for_client.load(Ordering::Relaxed) || pieces != seen {
            (seen, waiting) = (pieces, None);
        }
        if !taken.waits_for_client.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        let until = Instant::now() + longest;
        let over = waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)))
            .as_mut()
            .poll(context);
        if over.is_ready() {
            tracing::debug!("an answer that its client does not take is given up");
        }
        over
    })
    .await;
}

/// The body of an answer on its way to the client: its connection is busy until it ends.
pub(super) struct Sending {
    body: Body,
    /// What is left of a piece, and its place among what waits.
    rest: Bytes,
    held: Option<BytesPermit>,
    waiting: Waiting,
    taken: Option<Arc<AnswerProgress>>,
    _busy: Busy,
}

impl Sending {
    /// Over HTTP/2 it tells its stream how far it is taken.
    pub(super) fn new(body: Body, taken: Option<Arc<AnswerProgress>>, waiting: Waiting, busy: Busy) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            held: None,
            waiting,
            taken,
            _busy: busy,
        }
    }

    /// The next part of what is left. The very last byte of the answer comes by itself: the server asks for it once all before it
    /// may be sent, and holds no more than it when it has done its part.
    fn part(&mut self) -> Frame<Bytes> {
        let left = self.rest.len();
        let length = match left {
            2..=PIECE if self.body.is_end_stream() => left - 1,
            _ => left.min(PIECE),
        };
        Frame::data(self.rest.split_to(length))
    }
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let Some(taken) = &this.taken else {
            return Pin::new(&mut this.body).poll_frame(context);
        };
        if this.rest.is_empty() {
            let polled = Pin::new(&mut this.body).poll_frame(context);
            taken.waits_for_client.store(polled.is_ready(), Ordering::Relaxed);
            let Poll::Ready(Some(Ok(frame))) = polled else {
                return polled;
            };
            match frame.into_data() {
                Ok(data) => {
                    this.held = Some(this.waiting.must_hold(data.len()));
                    this.rest = data;
                }
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        // Only this connection's worker writes.
        taken
            .pieces
            .store(taken.pieces.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let part = this.part();
        if this.rest.is_empty() {
            this.held = None;
        }
        Poll::Ready(Some(Ok(part)))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}
