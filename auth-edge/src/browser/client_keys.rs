//! The public keys of this client, for the provider to read (OpenID Connect Core, section 10.1).
//!
//! Invariant: public halves alone. A new key stands here before it is used, and an old one for a while after, as long as
//! both are configured.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};

use crate::browser::Browser;
use crate::http::errors::HttpError;

/// Where they are: the `jwks_uri` to register.
pub(crate) const PATH: &str = "/.well-known/vestibule/client-jwks.json";
/// How long a provider may keep them: a new key has to be published that long before it signs.
const CACHE: &str = "public, max-age=300";

/// GET gives the key set; without keys there is no such address.
pub(crate) async fn handle(State(browser): State<Arc<Browser>>) -> Result<Response, HttpError> {
    let keys = browser.providers.client_jwks().ok_or(HttpError::NotFound)?;
    let headers = [
        (header::CONTENT_TYPE, "application/jwk-set+json"),
        (header::CACHE_CONTROL, CACHE),
    ];
    Ok((headers, keys.to_string()).into_response())
}
