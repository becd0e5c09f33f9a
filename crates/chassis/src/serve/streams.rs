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
use std::task::{Context, Poll, Waker};
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

/// The stream that is about to be run.
enum NextStream {
    Admitted(Arc<AnswerProgress>),
    Refused,
}

/// Runs the streams of one connection.
#[derive(Clone)]
pub(super) struct StreamExecutor {
    next: Arc<Mutex<Option<NextStream>>>,
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
        self.set(NextStream::Admitted(Arc::clone(&answer)));
        answer
    }

    /// The stream of a request that is about to be refused.
    pub(super) fn refuse(&self) {
        self.set(NextStream::Refused);
    }

    fn set(&self, next: NextStream) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
    }
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (next, self.longest) {
            (Some(NextStream::Admitted(answer)), Some(longest)) => {
                tokio::spawn(reset_if_stalled(stream, answer, longest));
            }
            (Some(NextStream::Admitted(_)), None) => {
                tokio::spawn(stream);
            }
            // A hundred on each of a thousand connections would otherwise wait together for their turn to be refused.
            (Some(NextStream::Refused), _) => run_now(stream),
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

/// Runs a stream whose answer is there already.
fn run_now(stream: impl Future<Output: Send> + Send + 'static) {
    let mut stream = Box::pin(stream);
    let mut context = Context::from_waker(Waker::noop());
    if stream.as_mut().poll(&mut context).is_pending() {
        tokio::spawn(stream);
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
    admitted: AdmittedRequest,
    answer: Option<Arc<AnswerProgress>>,
}

/// What a request in flight holds, until its answer ends.
pub(super) struct AdmittedRequest {
    pub(super) budget: ByteBudget,
    /// Its own bytes, where they are counted here.
    pub(super) bytes: Option<BytesPermit>,
    /// Whether an answer ends whose connection is over its share.
    pub(super) ends_over_share: bool,
    pub(super) _busy: Busy,
}

/// An answer that its client does not read is kept no longer: others need the memory.
#[derive(Debug, thiserror::Error)]
#[error("the connection holds more than its share of memory")]
struct OverShare;

impl AnswerBody {
    /// Over HTTP/2 it records in `answer` how far it is sent.
    pub(super) fn new(body: Body, answer: Option<Arc<AnswerProgress>>, admitted: AdmittedRequest) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            held: None,
            admitted,
            answer,
        }
    }

    /// Holds the next piece.
    fn hold(&self, bytes: usize) -> Result<BytesPermit, axum::Error> {
        let budget = &self.admitted.budget;
        if self.admitted.ends_over_share {
            budget.hold(bytes).ok_or_else(|| axum::Error::new(OverShare))
        } else {
            Ok(budget.must_hold(bytes))
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
            let polled = Pin::new(&mut this.body).poll_frame(context);
            if let Poll::Ready(Some(Ok(frame))) = &polled
                && let Some(data) = frame.data_ref()
            {
                match this.hold(data.len()) {
                    Ok(held) => held.hand_over(),
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            }
            return polled;
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
                    this.held = match this.hold(data.len()) {
                        Ok(held) => Some(held),
                        Err(error) => return Poll::Ready(Some(Err(error))),
                    };
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
        if this.rest.is_empty()
            && let Some(held) = this.held.take()
        {
            held.hand_over();
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
