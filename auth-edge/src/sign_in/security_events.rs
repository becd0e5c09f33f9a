//! Security events: passes pushed events (RFC 8935) to the session service, and its answer to HTTP.
//!
//! Invariants
//! - The edge answers 202 only once all effects are done. On 5xx, an error of ours, the transmitter retries.
//! - The edge judges no event itself, so that every edge and every replica answers the same.
//! - While the session service receives no events, which is the default, the edge answers 404 without a call.
//!   It asks again after a minute.
//!
//! Deliberately absent: cookies, CSRF proof and guards, since a signature authenticates the transmitter. Also
//! a limit on accepted events: a provider may send one for each session of a company.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use session_proto::v1::{ErrorReason, ReceiveSecurityEventRequest};

use super::SignIn;
use crate::http::errors::{HttpError, Limit};
use crate::http::no_store;

/// The only type of a body (RFC 8935, section 2.1).
const TYPE: &str = "application/secevent+jwt";
/// Largest body, in bytes: as large as a token may be.
const MAX_BODY_BYTES: usize = oidc::MAX_TOKEN_BYTES;
/// Rejected events per address and minute.
pub(crate) const REFUSED_PER_MINUTE: u64 = 600;

/// How long the edge answers 404 by itself after the session service reported that it receives no events.
const OFF_MS: u64 = 60_000;

/// POST of one security event token.
pub(crate) async fn receive(
    State(sign_in): State<Arc<SignIn>>,
    request: Request,
) -> Result<Response, HttpError> {
    let (head, body) = request.into_parts();
    let now_ms = sign_in.clock.now_ms();
    let sender = sign_in.network(&head);
    sign_in
        .refused_events_limit
        .peek(sender, now_ms)
        .map_err(|too_many| too_many.refuse(Limit::SecurityEvents))?;
    let monotonic_ms = sign_in.clock.monotonic_ms();
    if monotonic_ms < sign_in.events_off_until_ms.load(Ordering::Relaxed) {
        let _ = sign_in.refused_events_limit.check(sender, now_ms);
        return Err(HttpError::NotFound);
    }
    if !super::is_of_type(&head.headers, TYPE) {
        return Err(HttpError::UnsupportedMediaType {
            accepted: TYPE,
            words: "The request's body has to be application/secevent+jwt.",
        });
    }
    let token = super::form(body, MAX_BODY_BYTES).await?;
    let authorization = head.headers.get(header::AUTHORIZATION);
    let authorization = authorization.and_then(|value| value.to_str().ok());
    let event = ReceiveSecurityEventRequest {
        token: token.trim().to_owned(),
        authorization: authorization.unwrap_or_default().to_owned(),
    };
    let received = sign_in.sessions.client.receive_security_event(event).await;
    let received = received.map_err(|error| match error.reason {
        ErrorReason::ErrUnimplemented => {
            let until_ms = monotonic_ms.saturating_add(OFF_MS);
            sign_in.events_off_until_ms.store(until_ms, Ordering::Relaxed);
            let _ = sign_in.refused_events_limit.check(sender, now_ms);
            HttpError::NotFound
        }
        reason => {
            // An event that cannot be validated may be forged.
            if reason == ErrorReason::ErrProviderUnavailable {
                let _ = sign_in.refused_events_limit.check(sender, now_ms);
            }
            HttpError::session_service_down(
                &error,
                "a security event could not be delivered: its transmitter has to send it again",
            )
        }
    })?;
    if received.error_code.is_empty() {
        return Ok(no_store(StatusCode::ACCEPTED.into_response()));
    }
    // Count after the call: a rejected event reduces the sender's next ones.
    let _ = sign_in.refused_events_limit.check(sender, now_ms);
    let problem = json!({ "err": received.error_code, "description": received.description });
    // RFC 8935, section 2.3.
    const IN_ENGLISH: [(HeaderName, &str); 1] = [(header::CONTENT_LANGUAGE, "en")];
    Ok(no_store(
        (StatusCode::BAD_REQUEST, IN_ENGLISH, Json(problem)).into_response(),
    ))
}
