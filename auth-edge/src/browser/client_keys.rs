//! The public keys of this client, for the provider to read (OpenID Connect Core, section 10.1).
//!
//! Invariant: public halves only. The set lists every configured key: a new key before its first use, an old
//! key until it is removed.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};

use crate::browser::Browser;
use crate::http::errors::HttpError;

/// The path of the key set: the `jwks_uri` to register.
pub(crate) const PATH: &str = "/.well-known/vestibule/client-jwks.json";
/// How long a provider may cache the key set: publish a new key at least that long before it signs.
const CACHE: &str = "public, max-age=300";

/// GET returns the key set, or 404 if no keys are configured.
pub(crate) async fn handle(State(browser): State<Arc<Browser>>) -> Result<Response, HttpError> {
    let keys = browser.providers.client_jwks().ok_or(HttpError::NotFound)?;
    let headers = [
        (header::CONTENT_TYPE, "application/jwk-set+json"),
        (header::CACHE_CONTROL, CACHE),
    ];
    Ok((headers, keys.to_string()).into_response())
}
