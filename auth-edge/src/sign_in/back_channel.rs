//! Back-channel logout: the provider reports a sign-out (OpenID Connect Back-Channel Logout 1.0).
//!
//! Invariants
//! - The edge answers 200 only once the sessions have ended. After an error of ours the provider can retry.
//! - All replicas together accept a token once, since the session service remembers it.
//! - If there are several providers, a token is validated only with the keys and settings of the issuer it
//!   names. It ends only sessions of that issuer.
//!
//! Deliberately absent: cookies, CSRF proof and guards, since a signature authenticates the provider.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use chassis::audit::{AuditRecord, Event, Outcome};
use oidc::{IdTokenError, LogoutToken};
use session_proto::timestamp;
use session_proto::v1::{Cause, EndSessionsRequest, ErrorReason};

use crate::http::device::record_from;
use crate::http::errors::{HttpError, Limit};
use crate::http::no_store;
use crate::providers::IdentityProvider;
use crate::sign_in::error::SignInError;
use crate::sign_in::{SignIn, elapsed_ms, request_id};
use crate::values::refusal::{RefusalReason, SignInStep};

/// Largest body, in bytes: one signed token.
const MAX_FORM_BYTES: usize = 64 * 1024;
/// Largest `told_ago` that the session service accepts. A token that waited longer may end newer sessions.
const TOLD_AGO_MAX: Duration = Duration::from_secs(60);
/// Largest difference between the provider's clock and ours, in seconds.
const CLOCKS_APART_SECS: u64 = 60;
/// Largest age by `iat` plus the tolerance of both clocks, in seconds: older tokens are rejected anyway.
const MEMORY_SECS: u64 = 300 + 120;

/// POST of one `logout_token`.
pub(crate) async fn handle(State(sign_in): State<Arc<SignIn>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let handled = receive(&sign_in, &head, body).await;
    sign_in.answer(SignInStep::LogoutToken, &head, handled)
}

async fn receive(sign_in: &SignIn, head: &Parts, body: Body) -> Result<Response, HttpError> {
    let arrived_ms = sign_in.clock.monotonic_ms();
    sign_in.admit((&sign_in.back_channel_limit, Limit::BackChannelLogouts), head)?;
    if !super::is_form(&head.headers) {
        return Err(HttpError::UnsupportedMediaType {
            accepted: "application/x-www-form-urlencoded",
            words: "The request's body has to be application/x-www-form-urlencoded.",
        });
    }
    let form = super::form(body, MAX_FORM_BYTES).await?;
    let mut tokens = url::form_urlencoded::parse(form.as_bytes()).filter(|(name, _)| name == "logout_token");
    let (Some((_, raw)), None) = (tokens.next(), tokens.next()) else {
        return Err(HttpError::LogoutToken(
            "The body has to hold exactly one logout_token.",
        ));
    };
    let issuer = oidc::unverified_issuer(&raw).unwrap_or_default();
    let provider = sign_in.providers.of_session(&issuer);
    let ended = match provider {
        Some(provider) => end(sign_in, provider, head, &raw, arrived_ms).await,
        None => Err(IdTokenError::Issuer.into()),
    };
    Ok(match ended {
        Ok(()) => no_store(StatusCode::OK.into_response()),
        Err(error) => sign_in.reject(SignInStep::LogoutToken, provider, head, error),
    })
}

/// The age of the logout: the time since the token arrived. If the provider retried after an outage of the
/// session service, it counts from the latest possible time of issue.
fn order_age(sign_in: &SignIn, token: &LogoutToken, arrived_ms: u64) -> Duration {
    let arrived = Duration::from_millis(elapsed_ms(sign_in, arrived_ms));
    let issued_at_latest = token.iat.saturating_add(CLOCKS_APART_SECS);
    let issued = Duration::from_secs((sign_in.clock.now_ms() / 1000).saturating_sub(issued_at_latest));
    arrived.max(issued).min(TOLD_AGO_MAX)
}

/// Validates a logout token of this provider, and ends the sessions that it names.
async fn end(
    sign_in: &SignIn,
    provider: &IdentityProvider,
    head: &Parts,
    raw: &str,
    arrived_ms: u64,
) -> Result<(), SignInError> {
    let now = sign_in.clock.now_ms() / 1000;
    let token = provider.relying_party.validate_logout_token(raw, now).await;
    let token = token.map_err(SignInError::of_logout_token)?;
    let until = token.exp.max(now + MEMORY_SECS);
    let request = EndSessionsRequest {
        issuer: token.iss.clone(),
        subject: token.sub.clone().unwrap_or_default(),
        provider_sid: token.sid.clone().unwrap_or_default(),
        cause: Cause::BackChannelLogout.into(),
        once_id: token.jti.clone(),
        once_until: Some(timestamp::from_ms(until.saturating_mul(1000))),
        request_id: request_id()?,
        keep_offline_tokens: true,
        told_ago: order_age(sign_in, &token, arrived_ms).try_into().ok(),
        ..EndSessionsRequest::default()
    };
    let ended = sign_in.sessions.client.end_sessions(request).await;
    let ended = ended.map_err(|error| match error.reason {
        ErrorReason::ErrRequestIdReused => RefusalReason::TokenReplayed.into(),
        ErrorReason::ErrInvalidArgument => RefusalReason::TokenMismatch.into(),
        _ => SignInError::unavailable(&error, "sessions could not be ended"),
    })?;
    let count = ended.ended_count;
    tracing::info!(issuer = token.iss, count, "sessions ended by the provider");
    let device = sign_in.device(head);
    AuditRecord {
        actor: token.sub.as_deref().map(|subject| (token.iss.as_str(), subject)),
        provider: Some(&provider.id),
        step: Some(SignInStep::LogoutToken.name()),
        ended_count: Some(count),
        ..record_from(&device, Event::ProviderLogout, Outcome::Success)
    }
    .write();
    Ok(())
}
