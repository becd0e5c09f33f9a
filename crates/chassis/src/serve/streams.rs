//! HTTP/2 streams whose client does not read the answer.
//!
//! If a whole connection stalls, the kernel notices ([`give_up_stalled`](super::give_up_stalled)). If one
//! stream stalls, only its flow-control window is full (RFC 9113, section 5.2). Its answer holds memory, an
//! open file and an upstream connection. Such a stream is reset. Invariants: only the time that a stream waits
//! for its client counts, so event streams may be silent. An answer that a client reads slowly continues. Only
//! the last byte can stall unnoticed, so small answers are covered too.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hyper::rt::Executor;
use tokio::time::{Instant, Sleep};

use super::progress::ConnectionProgress;

/// How much of a stream's answer has been sent. Only the connection's worker writes it.
#[derive(Default)]
pub(super) struct AnswerProgress {
    pieces: AtomicU64,
    waits_for_client: AtomicBool,
}

impl AnswerProgress {
    /// Sets whether the next data is ready and waits only for the client.
    pub(super) fn waits_for_client(&self, waits: bool) {
        self.waits_for_client.store(waits, Ordering::Relaxed);
    }

    /// One more piece was passed on.
    pub(super) fn moved(&self) {
        // Only this connection's worker writes.
        let pieces = self.pieces.load(Ordering::Relaxed);
        self.pieces.store(pieces + 1, Ordering::Relaxed);
    }
}

/// How to run the stream of the next request.
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

    /// Creates the stream of the next request: hyper calls the service first, then the executor.
    pub(super) fn begin(&self) -> Arc<AnswerProgress> {
        let answer = Arc::<AnswerProgress>::default();
        self.set(NextStream::Admitted(Arc::clone(&answer)));
        answer
    }

    /// Marks the next request's stream as refused.
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
            // Refused at once: a hundred waiting streams on each of a thousand connections would use memory.
            (Some(NextStream::Refused), _) => run_now(stream),
            // Work that continues after the answer: a WebSocket.
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

/// Runs a stream whose answer is ready.
fn run_now(stream: impl Future<Output: Send> + Send + 'static) {
    let mut stream = Box::pin(stream);
    let mut context = Context::from_waker(Waker::noop());
    if stream.as_mut().poll(&mut context).is_pending() {
        tokio::spawn(stream);
    }
}

/// Runs a stream until its answer stalls for `longest`. Dropping the stream resets it.
async fn reset_if_stalled(stream: impl Future, answer: Arc<AnswerProgress>, longest: Duration) {
    let mut stream = pin!(stream);
    let mut seen = 0;
    // Set while the stream waits for the client.
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
            tracing::debug!("an answer is dropped: its client does not read it");
        }
        over
    })
    .await;
}
