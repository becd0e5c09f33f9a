//! Reads of sessions that come while another one is in flight are sent together, as one `BatchGetSessions`.
//!
//! A call costs its headers, its stream and its tasks on both sides: several times what reading a session costs. No read waits for a timer:
//! a task of the connection sends those that are ready, one call after another. A read that comes alone is a `GetSession`; reads that come
//! while a call is in flight are sent when that one is answered.
//!
//! Invariants
//! - A read joins only a batch that has not been sent, so that no answer is older than its request.
//! - A read that gets no answer from its batch, because that failed, takes long or left it out, is sent again as a call of its own.
//! - A caller that hangs up loses its own answer alone.
//! - A read whose metadata would be lost among others is a call of its own.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tonic::metadata::{Ascii, KeyRef, MetadataMap, MetadataValue};
use tonic::{Response, Status};

use super::connection::Service;
use super::request::timed;
use crate::error;
use crate::v1::batch_get_sessions_response::Result as BatchResult;
use crate::v1::batch_get_sessions_response::result::Outcome;
use crate::v1::{BatchGetSessionsRequest, ErrorReason, GetSessionRequest, GetSessionResponse};

/// Most sessions the service reads in one call.
const BATCH_MAX: usize = 50;

/// A read waits no longer than this for its batch, and is then sent by itself: many times what a batch takes, and a small part of any
/// deadline.
const BATCH_WAIT_MAX: Duration = Duration::from_millis(100);

/// The metadata that names the request a read belongs to.
const X_REQUEST_ID: &str = "x-request-id";

type ReadAnswer = Result<GetSessionResponse, Status>;

/// The reads over one connection.
#[derive(Debug)]
pub(super) struct Batcher {
    service: Service,
    reads: mpsc::UnboundedSender<PendingRead>,
}

/// A read that has not been sent.
#[derive(Debug)]
struct PendingRead {
    request: GetSessionRequest,
    /// The request it belongs to.
    request_id: Option<MetadataValue<Ascii>>,
    until: Instant,
    turn: oneshot::Sender<Turn>,
}

/// How a read goes on.
#[derive(Debug)]
enum Turn {
    /// Its batch brought an answer.
    Answered(ReadAnswer),
    /// No other read has come: it is a call of its own, which ends when this is dropped.
    Alone(oneshot::Sender<()>),
}

impl Batcher {
    /// Reads over this connection. Panics outside a tokio runtime.
    pub(super) fn over(service: Service) -> Self {
        let (reads, waiting) = mpsc::unbounded_channel();
        tokio::spawn(send_waiting(service.clone(), waiting));
        Self { service, reads }
    }

    /// Reads a session, to be answered by the time given.
    pub(super) async fn get(
        &self,
        metadata: MetadataMap,
        request: &GetSessionRequest,
        until: Instant,
    ) -> ReadAnswer {
        let mut in_flight = None;
        if may_be_batched(&metadata) {
            let (turn, taken) = oneshot::channel();
            // Without the task that sends them, and without an answer of the batch, it is sent alone.
            let _ = self.reads.send(PendingRead {
                request: request.clone(),
                request_id: metadata.get(X_REQUEST_ID).cloned(),
                until,
                turn,
            });
            match timeout(BATCH_WAIT_MAX, taken).await {
                Ok(Ok(Turn::Answered(answer))) => return answer,
                Ok(Ok(Turn::Alone(call))) => in_flight = Some(call),
                Ok(Err(_)) | Err(_) => {}
            }
        }
        let alone = timed(metadata, request.clone(), until);
        let answer = self.service.clone().get_session(alone).await;
        drop(in_flight);
        answer.map(Response::into_inner)
    }
}

/// Sends the reads that wait, one call after another, as many as fit into a batch. A call that takes long stops no others.
async fn send_waiting(service: Service, mut reads: mpsc::UnboundedReceiver<PendingRead>) {
    while let Some(first) = reads.recv().await {
        tokio::task::yield_now().await;
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX
            && let Ok(next) = reads.try_recv()
        {
            batch.push(next);
        }
        batch.retain(|read| !read.turn.is_closed());
        if batch.len() > 1 {
            // Nobody waits for it any longer.
            let _ = timeout(BATCH_WAIT_MAX, send(service.clone(), batch)).await;
        } else if let Some(read) = batch.pop() {
            let (in_flight, end) = oneshot::channel();
            // Its caller may have hung up in this moment.
            let _ = read.turn.send(Turn::Alone(in_flight));
            let _ = timeout(BATCH_WAIT_MAX, end).await;
        }
    }
}

/// Sends a batch with the longest of its deadlines, and hands out what it brings.
async fn send(mut service: Service, batch: Vec<PendingRead>) {
    let Some(until) = batch.iter().map(|read| read.until).max() else {
        return;
    };
    let mut metadata = MetadataMap::new();
    let (mut requests, mut turns) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
    for read in batch {
        if let Some(id) = read.request_id {
            metadata.append(X_REQUEST_ID, id);
        }
        requests.push(read.request);
        turns.push(read.turn);
    }
    let request = timed(metadata, BatchGetSessionsRequest { requests }, until);
    match service.batch_get_sessions(request).await {
        Ok(response) => {
            for (turn, result) in turns.into_iter().zip(response.into_inner().results) {
                if let Some(read) = answer_of(result) {
                    // Its caller may have hung up in this moment.
                    let _ = turn.send(Turn::Answered(read));
                }
            }
        }
        Err(status) => {
            tracing::debug!(
                error = &status as &dyn std::error::Error,
                "sessions are read one by one"
            );
        }
    }
}

/// The answer for one session; none if that has to be read by itself.
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

/// Whether nothing is lost when a read is sent among others: its metadata names a request, which a batch does for each of its reads, or a
/// trace that is not recorded (W3C Trace Context, section 3.2.2.5).
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
