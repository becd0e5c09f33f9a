//! Sends reads of sessions that arrive during another read as one `BatchGetSessions`.
//!
//! A call's headers, stream and tasks cost several times as much as reading a session. No read waits for a
//! timer. Without a call in flight, a read yields once to other ready tasks. If no other read arrives, it
//! becomes a `GetSession`. Reads that arrive during a call are sent after its answer.
//!
//! Invariants
//! - A read joins only a batch that was not sent yet, so that no answer is older than its request.
//! - A read without an answer from its batch (failed, slow or left out) is sent again as a separate call.
//! - A caller that cancels loses only its own answer.
//! - A read whose metadata a batch would lose is a separate call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tonic::metadata::{Ascii, KeyRef, MetadataMap, MetadataValue};
use tonic::{Response, Status};

use super::connection::Service;
use super::request::timed;
use crate::error;
use crate::v1::batch_get_sessions_response::Result as BatchResult;
use crate::v1::batch_get_sessions_response::result::Outcome;
use crate::v1::{BatchGetSessionsRequest, ErrorReason, GetSessionRequest, GetSessionResponse};

/// Most sessions that the service reads in one call.
const BATCH_MAX: usize = 50;

/// Longest wait of a read for its batch before it is sent separately. A batch is many times faster, and a
/// deadline many times longer.
const BATCH_WAIT_MAX: Duration = Duration::from_millis(100);

/// The metadata with the ID of the request that caused a read.
const X_REQUEST_ID: &str = "x-request-id";

type ReadAnswer = Result<GetSessionResponse, Status>;

/// The reads over one connection.
#[derive(Debug)]
pub(super) struct Batcher(Arc<BatcherState>);

#[derive(Debug)]
struct BatcherState {
    service: Service,
    queue: Mutex<ReadQueue>,
}

#[derive(Debug, Default)]
struct ReadQueue {
    /// Whether a call is in flight; its end sends the waiting reads.
    in_flight: bool,
    waiting: Vec<PendingRead>,
}

/// A read that has not been sent.
#[derive(Debug)]
struct PendingRead {
    request: GetSessionRequest,
    /// The ID of the request that caused it.
    request_id: Option<MetadataValue<Ascii>>,
    until: Instant,
    answer: oneshot::Sender<ReadAnswer>,
}

/// A call in flight. Dropping it sends the waiting reads.
struct InFlight(Arc<BatcherState>);

impl Batcher {
    pub(super) fn over(service: Service) -> Self {
        Self(Arc::new(BatcherState {
            service,
            queue: Mutex::default(),
        }))
    }

    /// Reads a session before the given time. Panics outside a tokio runtime.
    pub(super) async fn get(
        &self,
        metadata: MetadataMap,
        request: &GetSessionRequest,
        until: Instant,
    ) -> ReadAnswer {
        let mut in_flight = None;
        if may_be_batched(&metadata) {
            in_flight = self.0.begin();
            if in_flight.is_some() {
                tokio::task::yield_now().await;
            }
            if (in_flight.is_none() || self.0.has_pending())
                && let Some(answer) = self.in_batch(in_flight.take(), request, &metadata, until).await
            {
                return answer;
            }
        }
        let answer = self
            .0
            .service
            .clone()
            .get_session(timed(metadata, request.clone(), until))
            .await;
        drop(in_flight);
        answer.map(Response::into_inner)
    }

    /// Adds a read to the waiting ones. Dropping `first` sends them. `None` if no answer arrives in time.
    async fn in_batch(
        &self,
        first: Option<InFlight>,
        request: &GetSessionRequest,
        metadata: &MetadataMap,
        until: Instant,
    ) -> Option<ReadAnswer> {
        let (answer, answered) = oneshot::channel();
        self.0.queue().waiting.push(PendingRead {
            request: request.clone(),
            request_id: metadata.get(X_REQUEST_ID).cloned(),
            until,
            answer,
        });
        drop(first);
        let answer = timeout(BATCH_WAIT_MAX, answered).await;
        answer.ok()?.ok()
    }
}

impl BatcherState {
    fn queue(&self) -> MutexGuard<'_, ReadQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks a call as in flight until the result is dropped. `None` if there is one already.
    fn begin(self: &Arc<Self>) -> Option<InFlight> {
        let is_first = !std::mem::replace(&mut self.queue().in_flight, true);
        is_first.then(|| InFlight(Arc::clone(self)))
    }

    fn has_pending(&self) -> bool {
        !self.queue().waiting.is_empty()
    }

    /// Sends the waiting reads, as many as fit into a batch. If none waits, no call is in flight any more.
    fn send_waiting(self: &Arc<Self>) {
        let mut queue = self.queue();
        queue.waiting.retain(|waiting| !waiting.answer.is_closed());
        let length = queue.waiting.len().min(BATCH_MAX);
        let batch: Vec<PendingRead> = queue.waiting.drain(..length).collect();
        let runtime = Handle::try_current().ok();
        match runtime.filter(|_| !batch.is_empty()) {
            Some(runtime) => {
                queue.in_flight = true;
                drop(runtime.spawn(send(InFlight(Arc::clone(self)), batch)));
            }
            None => queue.in_flight = false,
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.send_waiting();
    }
}

/// Sends a batch with the longest of its deadlines, and distributes the answers.
async fn send(in_flight: InFlight, batch: Vec<PendingRead>) {
    let Some(until) = batch.iter().map(|waiting| waiting.until).max() else {
        return;
    };
    let mut service = in_flight.0.service.clone();
    let mut metadata = MetadataMap::new();
    let (mut requests, mut answers) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
    for waiting in batch {
        if let Some(id) = waiting.request_id {
            metadata.append(X_REQUEST_ID, id);
        }
        requests.push(waiting.request);
        answers.push(waiting.answer);
    }
    let request = timed(metadata, BatchGetSessionsRequest { requests }, until);
    let answer = service.batch_get_sessions(request).await;
    drop(in_flight);
    match answer {
        Ok(response) => {
            for (answer, result) in answers.into_iter().zip(response.into_inner().results) {
                if let Some(read) = answer_of(result) {
                    // The caller may have cancelled.
                    let _ = answer.send(read);
                }
            }
        }
        Err(status) => {
            tracing::debug!(
                error = &status as &dyn std::error::Error,
                "a batch cannot be read: its sessions are read one by one"
            );
        }
    }
}

/// The answer for one session; `None` if it needs a separate read.
fn answer_of(result: BatchResult) -> Option<ReadAnswer> {
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

/// Whether a batch keeps the metadata of a read. It keeps a request ID for each read, and can drop a trace
/// that is not recorded (W3C Trace Context, section 3.2.2.5).
fn may_be_batched(metadata: &MetadataMap) -> bool {
    metadata.keys().all(|key| match key {
        KeyRef::Ascii(name) if name == "traceparent" => metadata.get(name).is_some_and(|trace| {
            let flags = trace.as_encoded_bytes().last();
            flags.is_some_and(|digit| matches!(digit, b'0' | b'2' | b'4' | b'6' | b'8' | b'a' | b'c' | b'e'))
        }),
        KeyRef::Ascii(name) => name == "tracestate" || name == X_REQUEST_ID,
        KeyRef::Binary(_) => false,
    })
}
