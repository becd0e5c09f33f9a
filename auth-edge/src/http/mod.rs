//! The shell around every request: its record, its protection, and its error answers.

pub(crate) mod answer_head;
pub(crate) mod device;
pub(crate) mod errors;
pub(crate) mod layer;
pub(crate) mod mapped_body;
pub(crate) mod observe;
pub(crate) mod pages;
pub(crate) mod protect;
pub(crate) mod request;
pub(crate) mod shared;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

/// The empty answer to a prefetch; caches must not store it.
#[must_use]
pub(crate) fn no_content() -> Response {
    no_store(StatusCode::NO_CONTENT.into_response())
}

/// Keeps an answer out of every cache.
#[must_use]
pub(crate) fn no_store(mut response: Response) -> Response {
    let value = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, value);
    response
}
