//! Answers that several handlers give.

use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

/// The answer to who only looks ahead: nothing, and nothing to keep.
#[must_use]
pub(crate) fn no_content() -> Response {
    const NO_STORE: [(HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-store")];
    (StatusCode::NO_CONTENT, NO_STORE).into_response()
}
