//! Answers to receivers that are no failures: nobody keeps them.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

/// An answer of JSON.
pub(super) fn shown(status: StatusCode, body: serde_json::Value) -> Response {
    (status, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

/// An answer without a body.
pub(super) fn done() -> Response {
    (StatusCode::NO_CONTENT, [(header::CACHE_CONTROL, "no-store")]).into_response()
}
