//! A receiver fetches its events (RFC 8936, section 2).

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;

use super::super::poll::{PollRequest, poll as answer};
use super::super::receiver::Delivery;
use super::answer::shown;
use super::body::Body;
use super::caller::CallingReceiver;
use super::error::ApiError;
use super::{Api, is_own, object};

/// Takes acknowledgements and gives what waits.
pub(super) async fn poll(
    State(api): State<Arc<Api>>,
    CallingReceiver(receiver): CallingReceiver,
    Path(stream_id): Path<String>,
    Body(body): Body,
) -> Result<Response, ApiError> {
    is_own(&stream_id, &receiver)?;
    let polled = api.polled.get(&receiver.id).ok_or(ApiError::NoStream)?;
    let is_deleted = api.context.streams.read(&receiver).await?.deleted;
    if is_deleted || !matches!(receiver.delivery, Delivery::Poll) {
        return Err(ApiError::NoStream);
    }
    let request = serde_json::from_value(Value::Object(object(&body)?));
    let request = request.ok().filter(PollRequest::is_bounded);
    let request = request.ok_or(ApiError::Invalid("the body is no request for events"))?;
    let permit = polled.waiting.try_acquire();
    let given = answer(&api.context, &receiver, &polled.queue, request, permit.is_ok());
    Ok(shown(StatusCode::OK, given.await?))
}
