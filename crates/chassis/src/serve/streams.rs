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

use hyper::rt::Executor;
use tokio::time::{Instant, Sleep};

use super::progress::ConnectionProgress;

/// How far one stream's answer has been sent. Only the connection's worker writes it.
#[derive(Default)]
pub(super) struct AnswerProgress {
    pieces: AtomicU64,
    waits_for_client: AtomicBool,
}

impl AnswerProgress {
    /// Whether what comes next is there, and only the client is waited for.
    pub(super) fn waits_for_client(&self, waits: bool) {
        self.waits_for_client.store(waits, Ordering::Relaxed);
    }

    /// One piece more is handed over.
    pub(super) fn moved(&self) {
        // Only this connection's worker writes.
        let pieces = self.pieces.load(Ordering::Relaxed);
        self.pieces.store(pieces + 1, Ordering::Relaxed);
    }
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
