//! The status route and the unauthorized route.
//!
//! Invariant: reading the status never rolls the session, so that a page can poll as often as it likes.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use session_proto::timestamp;
use session_proto::v1::session::State as SessionState;

use crate::browser::Browser;
use crate::http::errors::HttpError;
use crate::http::no_store;
use crate::http::observe::SessionHandle;
use crate::sessions::SessionUse;

/// GET: the session's state and the seconds left.
pub(crate) async fn handle(
    State(browser): State<Arc<Browser>>,
    request: Request,
) -> Result<Response, HttpError> {
    let current = browser
        .sessions
        .current(request.headers(), SessionUse::LookOnly)
        .await
        .map_err(|error| HttpError::session_service_down(&error, "status not available"))?;
    let Some(current) = current else {
        return Ok(no_store(Json(json!({"state": "signed_out"})).into_response()));
    };
    let session = current.session;
    let now_ms = browser.clock.now_ms();
    let left = |at: Option<prost_types::Timestamp>| {
        at.as_ref().map_or(0, timestamp::to_ms).saturating_sub(now_ms) / 1000
    };
    let state = match session.state() {
        SessionState::NeedsSignIn => "needs_sign_in",
        // Only lists report an unreadable session.
        SessionState::Active | SessionState::Unreadable | SessionState::Unspecified => "active",
    };
    let body = json!({
        "state": state,
        "expires_in": left(session.expires_at),
        "absolute_expires_in": left(session.absolute_expires_at),
    });
    let mut response = no_store(Json(body).into_response());
    response
        .extensions_mut()
        .insert(SessionHandle(session.handle.clone()));
    Ok(response)
}

/// Any method: the unauthorized answer.
pub(crate) async fn unauthorized() -> HttpError {
    HttpError::NotAuthenticated
}
