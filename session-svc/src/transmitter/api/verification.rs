//! A receiver wants to see that its stream works (SSF 1.0, section 8.1.4).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use super::super::note::SignalNote;
use super::answer::done;
use super::body::Body;
use super::caller::CallingReceiver;
use super::error::ApiError;
use super::{Api, object, optional_text, own_stream};

/// How much time lies at least between two verifications, in seconds.
pub(super) const MIN_VERIFICATION_INTERVAL_SECS: u64 = 10;

/// Notes a verification for the stream; it is told like every event, once the stream is enabled.
pub(super) async fn request(
    State(api): State<Arc<Api>>,
    CallingReceiver(receiver): CallingReceiver,
    Body(body): Body,
) -> Result<Response, ApiError> {
    let body = object(&body)?;
    own_stream(&body, &receiver)?;
    let told = optional_text(&body, "state")?;
    let now_ms = api.context.keeper.now_ms();
    let state = api.context.streams.edit(&receiver, |state| {
        if state.deleted {
            return Err(ApiError::NoStream);
        }
        let next_ms = state
            .verified_at_ms
            .saturating_add(MIN_VERIFICATION_INTERVAL_SECS * 1_000);
        if now_ms < next_ms {
            return Err(ApiError::TooOften {
                retry_after_secs: (next_ms - now_ms).div_ceil(1_000),
            });
        }
        state.verified_at_ms = now_ms;
        Ok(())
    });
    if state.await?.takes_notes() {
        let claims = told.map_or(json!({}), |state| json!({"state": state}));
        let note = SignalNote::of_stream(&receiver, now_ms, &claims);
        api.context.outbox.keep(&receiver, &note).await?;
        api.context.outbox.changed();
    }
    Ok(done())
}
