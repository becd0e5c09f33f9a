//! Security events: passes pushed events (RFC 8935) and Global Token Revocation requests
//! (draft-parecki-oauth-global-token-revocation-06) to the session service, and its answers to HTTP.
//!
//! Invariants
//! - The edge answers 202 or 204 only once all effects are done. On 5xx, an error of ours, the transmitter retries.
//! - The edge judges nothing itself, so that every edge and every replica answers the same.
//! - While the session service receives none of them, which is the default, the edge answers 404 without a call.
//!   It asks again after a minute.
//!
//! Deliberately absent: cookies, CSRF proof and guards, since a signature or a header authenticates the
//! transmitter. Also a limit on accepted messages: a provider may send one for each session of a company.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use session_proto::v1::{
    ErrorReason, GlobalTokenRevocation, ReceiveSecurityEventRequest, ReceiveSecurityEventResponse,
};

use super::SignIn;
use crate::http::errors::{HttpError, Limit};
use crate::http::no_store;

/// Largest body, in bytes: as large as a token may be.
const MAX_BODY_BYTES: usize = oidc::MAX_TOKEN_BYTES;
/// Rejected messages per address and minute.
pub(crate) const REFUSED_PER_MINUTE: u64 = 600;

/// How long the edge answers 404 by itself after the session service reported that it receives none.
const OFF_MS: u64 = 60_000;

/// A kind of message that the edge passes on.
struct Kind {
    /// The only type of a body.
    media_type: &'static str,
    /// The answer to a body of another type.
    other_type: &'static str,
    /// Until this monotonic time the edge assumes that the session service receives none.
    off_until_ms: fn(&SignIn) -> &AtomicU64,
    /// The call with this body.
    request: fn(String) -> ReceiveSecurityEventRequest,
}

/// One security event token (RFC 8935, section 2.1).
const EVENT: Kind = Kind {
    media_type: "application/secevent+jwt",
    other_type: "The request's body has to be application/secevent+jwt.",
    off_until_ms: |sign_in| &sign_in.events_off_until_ms,
    request: |body| ReceiveSecurityEventRequest {
        token: body.trim().to_owned(),
        ..ReceiveSecurityEventRequest::default()
    },
};

/// One Global Token Revocation request.
const REVOCATION: Kind = Kind {
    media_type: "application/json",
    other_type: "The request's body has to be application/json.",
    off_until_ms: |sign_in| &sign_in.revocations_off_until_ms,
    request: |body| ReceiveSecurityEventRequest {
        revocation: Some(GlobalTokenRevocation { body }),
        ..ReceiveSecurityEventRequest::default()
    },
};

/// POST of one security event token.
pub(crate) async fn receive(
    State(sign_in): State<Arc<SignIn>>,
    request: Request,
) -> Result<Response, HttpError> {
    let received = pass_on(&sign_in, request, &EVENT).await?;
    Ok(match received.error_code.as_str() {
        "" => no_store(StatusCode::ACCEPTED.into_response()),
        _ => problem(StatusCode::BAD_REQUEST, &received),
    })
}

/// POST of one Global Token Revocation request.
pub(crate) async fn revoke(
    State(sign_in): State<Arc<SignIn>>,
    request: Request,
) -> Result<Response, HttpError> {
    let received = pass_on(&sign_in, request, &REVOCATION).await?;
    Ok(match received.error_code.as_str() {
        "" => no_store(StatusCode::NO_CONTENT.into_response()),
        "authentication_failed" => {
            let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
            (challenge, problem(StatusCode::UNAUTHORIZED, &received)).into_response()
        }
        "access_denied" => problem(StatusCode::FORBIDDEN, &received),
        _ => problem(StatusCode::BAD_REQUEST, &received),
    })
}

/// Passes a message to the session service.
async fn pass_on(
    sign_in: &SignIn,
    request: Request,
    kind: &Kind,
) -> Result<ReceiveSecurityEventResponse, HttpError> {
    let (head, body) = request.into_parts();
    let now_ms = sign_in.clock.now_ms();
    let sender = sign_in.network(&head);
    sign_in
        .refused_events_limit
        .peek(sender, now_ms)
        .map_err(|too_many| too_many.refuse(Limit::SecurityEvents))?;
    let off_until_ms = (kind.off_until_ms)(sign_in);
    let monotonic_ms = sign_in.clock.monotonic_ms();
    if monotonic_ms < off_until_ms.load(Ordering::Relaxed) {
        let _ = sign_in.refused_events_limit.check(sender, now_ms);
        return Err(HttpError::NotFound);
    }
    if !super::is_of_type(&head.headers, kind.media_type) {
        return Err(HttpError::UnsupportedMediaType {
            accepted: kind.media_type,
            words: kind.other_type,
        });
    }
    let body = super::form(body, MAX_BODY_BYTES).await?;
    let authorization = head.headers.get(header::AUTHORIZATION);
    let authorization = authorization.and_then(|value| value.to_str().ok());
    let event = ReceiveSecurityEventRequest {
        authorization: authorization.unwrap_or_default().to_owned(),
        ..(kind.request)(body)
    };
    let received = sign_in.sessions.client.receive_security_event(event).await;
    let received = received.map_err(|error| match error.reason {
        ErrorReason::ErrUnimplemented => {
            off_until_ms.store(monotonic_ms.saturating_add(OFF_MS), Ordering::Relaxed);
            let _ = sign_in.refused_events_limit.check(sender, now_ms);
            HttpError::NotFound
        }
        reason => {
            // A message that cannot be validated may be forged.
            if reason == ErrorReason::ErrProviderUnavailable {
                let _ = sign_in.refused_events_limit.check(sender, now_ms);
            }
            HttpError::session_service_down(
                &error,
                "a security event could not be delivered: its transmitter has to send it again",
            )
        }
    })?;
    if !received.error_code.is_empty() {
        // Count after the call: a rejected message reduces the sender's next ones.
        let _ = sign_in.refused_events_limit.check(sender, now_ms);
    }
    Ok(received)
}

/// A rejection (RFC 8935, section 2.3).
fn problem(status: StatusCode, received: &ReceiveSecurityEventResponse) -> Response {
    let problem = json!({ "err": received.error_code, "description": received.description });
    const IN_ENGLISH: [(HeaderName, &str); 1] = [(header::CONTENT_LANGUAGE, "en")];
    no_store((status, IN_ENGLISH, Json(problem)).into_response())
}
