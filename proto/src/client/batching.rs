//! Reads of sessions that come while another one is on its way go together, as one `BatchGetSessions`.
//!
//! A call costs its head, its stream and its tasks on both sides: several times what reading a session costs. Nobody waits for company:
//! a read that finds none on its way is a `GetSession` at once, and what comes meanwhile leaves when that one is answered.
//!
//! Invariants
//! - A read joins only a batch that has not been sent, so that no answer is older than its question.
//! - Whom a batch brings no answer, because it failed, takes long or has no room, asks by a call of their own.
//! - A caller that hangs up loses its own answer alone.
//! - A read whose metadata would be lost among others is a call of its own.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tonic::metadata::{KeyRef, MetadataMap};
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use super::pool::{Pool, timed};
use super::service;
use crate::error;
use crate::v1::batch_get_sessions_response::Result as BatchResult;
use crate::v1::batch_get_sessions_response::result::Outcome;
use crate::v1::{BatchGetSessionsRequest, ErrorReason, GetSessionRequest, GetSessionResponse};

/// Most sessions the service reads in one call.
const BATCH_MAX: usize = 50;

/// A call that takes longer holds nobody back: many times what a read takes, and not yet felt.
const HOLDS_BACK_MAX: Duration = Duration::from_millis(20);

/// How long a read waits for its batch before it asks by itself: many batches, and a small part of any deadline.
const BATCH_WAIT_MAX: Duration = Duration::from_millis(100);

type Answer = Result<GetSessionResponse, Status>;

/// The reads over one connection.
#[derive(Debug)]
pub(super) struct Batcher(Arc<Reads>);

#[derive(Debug)]
struct Reads {
    channel: Channel,
    queue: Mutex<Queue>,
    /// Whether the replica, of an earlier release, knows no batches.
    knows_no_batches: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    /// Whether a call is on its way that those who wait go after.
    in_flight: bool,
    waiting: Vec<Waiting>,
}

/// A read that has not been sent.
#[derive(Debug)]
struct Waiting {
    request: GetSessionRequest,
    until: Instant,
    answer: oneshot::Sender<Answer>,
}

/// How a read goes on.
enum Joined {
    /// By a call of its own, which holds others back.
    First(InFlight),
    /// With others.
    Waiting(oneshot::Receiver<Answer>),
}

/// A call on its way; when this is dropped, those who wait are sent.
struct InFlight(Arc<Reads>);

impl Batcher {
    pub(super) fn over(channel: Channel) -> Self {
        Self(Arc::new(Reads {
            channel,
            queue: Mutex::default(),
            knows_no_batches: AtomicBool::new(false),
        }))
    }

    /// Reads a session, to be answered by the time given. Panics outside a tokio runtime.
    pub(super) async fn get(&self, pool: &Pool, request: &GetSessionRequest, until: Instant) -> Answer {
        let metadata = pool.annotations();
        let in_flight = if may_go_with_others(&metadata) && !self.0.knows_no_batches.load(Ordering::Relaxed) {
            match self.join(request, until) {
                Joined::First(in_flight) => Some(in_flight),
                Joined::Waiting(answer) => match timeout(BATCH_WAIT_MAX, answer).await {
                    Ok(Ok(answer)) => return answer,
                    Ok(Err(_)) | Err(_) => None,
                },
            }
        } else {
            None
        };
        let mut client = service(self.0.channel.clone());
        let call = client.get_session(timed(metadata, request.clone(), until));
        let answer = match in_flight {
            Some(in_flight) => holding_back(in_flight, call).await,
            None => call.await,
        };
        answer.map(Response::into_inner)
    }

    fn join(&self, request: &GetSessionRequest, until: Instant) -> Joined {
        let mut queue = self.0.queue();
        if !queue.in_flight {
            queue.in_flight = true;
            return Joined::First(InFlight(Arc::clone(&self.0)));
        }
        let (answer, answered) = oneshot::channel();
        queue.waiting.push(Waiting {
            request: request.clone(),
            until,
            answer,
        });
        Joined::Waiting(answered)
    }
}

impl Reads {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.waiting.retain(|waiting| !waiting.answer.is_closed());
        let next = match Handle::try_current() {
            Ok(runtime) if !queue.waiting.is_empty() => runtime,
            Ok(_) | Err(_) => {
                queue.in_flight = false;
                queue.waiting.clear();
                return;
            }
        };
        let length = queue.waiting.len().min(BATCH_MAX);
        let batch: Vec<Waiting> = queue.waiting.drain(..length).collect();
        drop(queue);
        next.spawn(send(Self(Arc::clone(&self.0)), batch));
    }
}

/// Awaits a call; those who wait go when it is answered, or when it takes long.
async fn holding_back<T>(in_flight: InFlight, call: impl Future<Output = T>) -> T {
    let mut call = pin!(call);
    let answered = timeout(HOLDS_BACK_MAX, &mut call).await;
    drop(in_flight);
    match answered {
        Ok(answer) => answer,
        Err(_elapsed) => call.await,
    }
}

/// Sends a batch with the longest of its deadlines, and hands out what it brings.
async fn send(in_flight: InFlight, batch: Vec<Waiting>) {
    let Some(until) = batch.iter().map(|waiting| waiting.until).max() else {
        return;
    };
    let reads = Arc::clone(&in_flight.0);
    let mut client = service(reads.channel.clone());
    let (requests, answers): (Vec<_>, Vec<_>) = batch
        .into_iter()
        .map(|waiting| (waiting.request, waiting.answer))
        .unzip();
    let call = client.batch_get_sessions(timed(
        MetadataMap::new(),
        BatchGetSessionsRequest { requests },
        until,
    ));
    match holding_back(in_flight, call).await {
        Ok(response) => {
            for (answer, result) in answers.into_iter().zip(response.into_inner().results) {
                if let Some(told) = told(result) {
                    // Who gave up in this moment is not there to hear it.
                    let _ = answer.send(told);
                }
            }
        }
        Err(status) if status.code() == Code::Unimplemented => {
            reads.knows_no_batches.store(true, Ordering::Relaxed);
        }
        Err(status) => {
            tracing::debug!(
                error = &status as &dyn std::error::Error,
                "sessions are read one by one"
            );
        }
    }
}

/// What a result says of its session; none if that has to be asked for by itself.
fn told(result: BatchResult) -> Option<Answer> {
    match result.outcome? {
        Outcome::Response(response) => Some(Ok(response)),
        Outcome::Failure(failure) if failure.reason() == ErrorReason::ErrOverloaded => None,
        Outcome::Failure(failure) => Some(Err(error::status(
            failure.reason(),
            failure.message,
            failure.metadata,
        ))),
    }
}

/// Whether nothing is lost when a read goes without this metadata: there is none, or a trace that is not recorded (W3C Trace Context,
/// section 3.2.2.5).
fn may_go_with_others(metadata: &MetadataMap) -> bool {
    metadata.keys().all(|key| match key {
        KeyRef::Ascii(name) if name == "traceparent" => metadata.get(name).is_some_and(|trace| {
            let flags = trace.as_encoded_bytes().last();
            flags.is_some_and(|digit| matches!(digit, b'0' | b'2' | b'4' | b'6' | b'8' | b'a' | b'c' | b'e'))
        }),
        KeyRef::Ascii(name) => name == "tracestate",
        KeyRef::Binary(_) => false,
    })
}
