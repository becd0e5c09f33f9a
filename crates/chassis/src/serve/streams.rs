//! Streams of an HTTP/2 connection whose answer its client does not read.
//!
//! Where a whole connection stalls, the kernel notices ([`give_up_stalled`](super::give_up_stalled)). Within a connection that
//! lives, only the stream's flow-control window is exhausted (RFC 9113, section 5.2), and with it stalls all that the answer holds:
//! memory, an open file, an upstream's connection. Such a stream is reset. Invariants: only waiting for the client counts, so that a stream
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

use super::byte_budget::{ByteBudget, BytesPermit};
use super::progress::{Busy, ConnectionProgress};

/// A larger piece is handed over in parts, so that a slow client's progress shows.
const PIECE: usize = 16 * 1024;

/// How far one stream's answer has been sent. Only the connection's worker writes it.
#[derive(Default)]
pub(super) struct AnswerProgress {
    pieces: AtomicU64,
    waits_for_client: AtomicBool,
}

/// Runs the streams of one connection.
#[derive(Clone)]
pub(super) struct StreamExecutor {
    next: Arc<Mutex<Option<Arc<AnswerProgress>>>>,
    progress: ConnectionProgress,
    longest: Option<Duration>,
}

impl StreamExecutor {
    /// Resets a stream whose answer has stalled for `longest`.
    pub(super) fn new(progress: ConnectionProgress, longest: Option<Duration>) -> Self {
        Self {
            next: Arc::default(),
            progress,
            longest,
        }
    }

    /// The stream of the request that is about to be run: hyper calls the service, then the executor.
    pub(super) fn begin(&self) -> Arc<AnswerProgress> {
        let answer = Arc::<AnswerProgress>::default();
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&answer));
        answer
    }
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let answer = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (answer, self.longest) {
            (Some(answer), Some(longest)) => {
                tokio::spawn(reset_if_stalled(stream, answer, longest));
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

/// Runs a stream until its answer has stalled for `longest`: a stream that is dropped is reset.
async fn reset_if_stalled(stream: impl Future, answer: Arc<AnswerProgress>, longest: Duration) {
    let mut stream = pin!(stream);
    let mut seen = 0;
    // Runs while the client is waited for.
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    std::future::poll_fn(|context| {
        if stream.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let pieces = answer.pieces.load(Ordering::Relaxed);
        if !answer.waits_for_client.load(Ordering::Relaxed) || pieces != seen {
            (seen, timer) = (pieces, None);
        }
        if !answer.waits_for_client.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        let until = Instant::now() + longest;
        let over = timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)))
            .as_mut()
            .poll(context);
        if over.is_ready() {
            tracing::debug!("an answer that its client does not read is given up");
        }
        over
    })
    .await;
}

/// The body of an answer that is being sent: its connection is busy until it ends.
pub(super) struct AnswerBody {
    body: Body,
    /// What is left of a piece, and the permit for its bytes.
    rest: Bytes,
    held: Option<BytesPermit>,
    budget: ByteBudget,
    answer: Option<Arc<AnswerProgress>>,
    _busy: Busy,
}

impl AnswerBody {
    /// Over HTTP/2 it records in `answer` how far it is sent.
    pub(super) fn new(
        body: Body,
        answer: Option<Arc<AnswerProgress>>,
        budget: ByteBudget,
        busy: Busy,
    ) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            held: None,
            budget,
            answer,
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

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let Some(answer) = &this.answer else {
            return Pin::new(&mut this.body).poll_frame(context);
        };
        if this.rest.is_empty() {
            let polled = Pin::new(&mut this.body).poll_frame(context);
            answer
                .waits_for_client
                .store(polled.is_ready(), Ordering::Relaxed);
            let Poll::Ready(Some(Ok(frame))) = polled else {
                return polled;
            };
            match frame.into_data() {
                Ok(data) => {
                    this.held = Some(this.budget.must_hold(data.len()));
                    this.rest = data;
                }
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        // Only this connection's worker writes.
        answer
            .pieces
            .store(answer.pieces.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
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
