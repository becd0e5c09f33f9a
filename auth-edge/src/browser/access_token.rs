//! The access-token route: gives a valid access token to same-origin scripts. Off by default: tokens stay out
//! of the browser.
//!
//! Invariant: a request without the CSRF proof ([`csrf`]) is rejected before the session is read.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use session_proto::v1::ErrorReason;

use crate::browser::Browser;
use crate::http::errors::HttpError;
use crate::http::protect::csrf;
use crate::http::{no_store, request};
use crate::sessions::{SessionUse, TokenFor};

/// Scopes that may be requested at once.
const MAX_SCOPES: usize = 32;

/// GET with the proof; `scope` may ask for scopes, space-separated.
pub(crate) async fn handle(
    State(browser): State<Arc<Browser>>,
    request: Request,
) -> Result<Response, HttpError> {
    csrf::check_script(request.headers(), &browser.sites.of(request.headers()).base_url)?;
    let current = browser
        .sessions
        .current(request.headers(), SessionUse::LookOnly)
        .await;
    let current = current.map_err(|error| HttpError::session_service_down(&error, "no access token"))?;
    let current = current.ok_or(HttpError::session(ErrorReason::ErrMissingSession))?;
    let requested =
        request::first_parameter(request.uri().query().unwrap_or_default(), "scope").unwrap_or_default();
    let scopes = requested.split_ascii_whitespace().take(MAX_SCOPES);
    let wanted = TokenFor {
        scopes: scopes.map(str::to_owned).collect(),
        ..TokenFor::default()
    };
    let token = browser
        .sessions
        .access_token(&current.id, &wanted)
        .await
        .map_err(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "no access token");
            HttpError::by_session_service(&error)
        })?;
    let body = json!({
        "access_token": token.value.expose(),
        "token_type": token.token_type,
        "scope": token.scope,
        "expires_at": token.expires_at_ms / 1000,
    });
    Ok(no_store(axum::Json(body).into_response()))
}
