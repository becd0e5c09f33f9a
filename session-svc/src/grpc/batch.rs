//! Reads several sessions in one answer: each result is independent.
//!
//! Invariants
//! - Results have the order of the requests; a failed result does not affect the others.
//! - The answer is bounded: a session that does not fit has an error as its result.

use prost::Message as _;
use session_proto::error;
use session_proto::v1::batch_get_sessions_response::result::Outcome;
use session_proto::v1::batch_get_sessions_response::{Failure, Result as BatchResult};
use session_proto::v1::{BatchGetSessionsRequest, BatchGetSessionsResponse, ErrorReason, GetSessionResponse};
use tonic::Status;

use super::api::Api;
use super::arguments;
use super::call::Call;
use super::call_context::conclude;
use super::reading::{self, is_by_handle, requested_handle};
use super::status;
use crate::callers::Rpc;
use crate::session::Handle;
use crate::sessions::SessionsError;

/// The most sessions of one call: at the usual size, reading them takes a fraction of a millisecond.
const REQUESTS_MAX: usize = 50;

/// Bytes after which an answer takes no more sessions. Opening these takes a core a few milliseconds. With
/// one more session of the largest size, the answer stays far below the 4 MiB that gRPC clients accept.
const ANSWER_BYTES: usize = 1024 * 1024;

/// Reads the requested sessions in one round trip. The whole call fails only if the store does, or if too
/// many are requested.
pub(super) async fn get_sessions(
    api: &Api,
    call: &Call,
    request: BatchGetSessionsRequest,
) -> Result<BatchGetSessionsResponse, SessionsError> {
    if !(1..=REQUESTS_MAX).contains(&request.requests.len()) {
        return arguments::wrong("requests", "has to name 1 to 50 sessions");
    }
    let names: Vec<_> = request.requests.iter().map(requested_handle).collect();
    let handles: Vec<Handle> = names.iter().flatten().copied().collect();
    let _ = call.notes.batch.set(handles.clone());
    if request.requests.iter().any(is_by_handle) {
        let _ = call.notes.is_administrative.set(());
    }
    let mut sessions = api.sessions.get_many(&handles).await?;
    let mut bytes = 0;
    let mut results = Vec::with_capacity(names.len());
    for name in names {
        let outcome = match name {
            Ok(_) if bytes > ANSWER_BYTES => Err(status::no_room_in_answer()),
            Ok(_) => {
                let session = sessions.next().unwrap_or(Err(SessionsError::Internal));
                let read = session.map(|session| reading::answer(api, &session));
                conclude(Rpc::BatchGetSessions, call, read)
            }
            Err(malformed) => Err(status::of(&malformed)),
        };
        let result = result(outcome);
        bytes += result.encoded_len();
        results.push(result);
    }
    Ok(BatchGetSessionsResponse { results })
}

fn result(outcome: Result<GetSessionResponse, Status>) -> BatchResult {
    let outcome = match outcome {
        Ok(response) => Outcome::Response(response),
        Err(status) => Outcome::Failure(Failure {
            reason: error::reason_of(&status)
                .unwrap_or(ErrorReason::ErrInternal)
                .into(),
            message: status.message().to_owned(),
            metadata: error::metadata_of(&status),
        }),
    };
    BatchResult {
        outcome: Some(outcome),
    }
}
