//! The status of a receiver's stream (SSF 1.0, section 8.1.2).

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::super::receiver::Receiver;
use super::super::stream::{StreamState, StreamStatus};
use super::answer::shown;
use super::body::Body;
use super::caller::CallingReceiver;
use super::configuration::StreamQuery;
use super::error::ApiError;
use super::{Api, is_own, object, optional_text, own_stream};

/// Shows the status.
pub(super) async fn read(
    State(api): State<Arc<Api>>,
    CallingReceiver(receiver): CallingReceiver,
    Query(query): Query<StreamQuery>,
) -> Result<Response, ApiError> {
    is_own(&query.stream_id.unwrap_or_default(), &receiver)?;
    let state = api.context.streams.read(&receiver).await?;
    if state.deleted {
        return Err(ApiError::NoStream);
    }
    Ok(shown(StatusCode::OK, status(&receiver, &state)))
}

/// Changes the status. What happened while a stream was disabled is not told afterwards.
pub(super) async fn update(
    State(api): State<Arc<Api>>,
    CallingReceiver(receiver): CallingReceiver,
    Body(body): Body,
) -> Result<Response, ApiError> {
    let body = object(&body)?;
    own_stream(&body, &receiver)?;
    let wanted = body.get("status").and_then(Value::as_str);
    let wanted = wanted.and_then(StreamStatus::named);
    let wanted = wanted.ok_or(ApiError::Invalid("status is enabled, paused or disabled"))?;
    let reason = optional_text(&body, "reason")?.unwrap_or_default();
    let now_ms = api.context.keeper.now_ms();
    let state = api.context.streams.edit(&receiver, |state| {
        if state.deleted {
            return Err(ApiError::NoStream);
        }
        if state.status() == StreamStatus::Disabled && wanted != StreamStatus::Disabled {
            state.since_ms = now_ms;
        }
        state.set_status(wanted);
        state.reason.clone_from(&reason);
        Ok(())
    });
    let state = state.await?;
    tracing::info!(
        receiver = receiver.id,
        status = wanted.name(),
        "a receiver has set the status of its stream"
    );
    api.context.outbox.changed();
    Ok(shown(StatusCode::OK, status(&receiver, &state)))
}

fn status(receiver: &Receiver, state: &StreamState) -> Value {
    let mut status = json!({"stream_id": receiver.stream_id, "status": state.status().name()});
    if !state.reason.is_empty() {
        status["reason"] = json!(state.reason);
    }
    status
}
