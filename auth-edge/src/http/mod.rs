//! The shell that every request passes: its record, its protection, and how failures are shown.

pub(crate) mod answer_head;
pub(crate) mod device;
pub(crate) mod errors;
pub(crate) mod layer;
pub(crate) mod mapped_body;
pub(crate) mod observe;
pub(crate) mod pages;
pub(crate) mod protect;
pub(crate) mod refused;
pub(crate) mod request;

use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

/// The answer to who only looks ahead: nothing, and nothing to keep.
#[must_use]
pub(crate) fn no_content() -> Response {
    const NO_STORE: [(HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-store")];
    (StatusCode::NO_CONTENT, NO_STORE).into_response()
}
