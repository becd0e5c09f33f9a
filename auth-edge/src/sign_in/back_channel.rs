//! Back-channel logout: the provider says who is signed out (OpenID Connect Back-Channel Logout 1.0).
//!
//! Invariants
//! - 200 only once the sessions are gone; what fails for a reason of ours can be sent again.
//! - A token is good once, at whichever replica it arrives, since the session service remembers it.
//! - Where there are several providers a token is judged by the keys and settings of the issuer it names and of nobody else,
//!   and ends sessions of that issuer alone.
//!
//! Deliberately absent: cookies, CSRF proof and guards, since the caller is a machine that proves itself by its signature.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chassis::audit::{AuditRecord, Event, Outcome};
use oidc::{IdTokenError, LogoutToken, LogoutTokenError, Outage};
use session_proto::timestamp;
use session_proto::v1::{Cause, EndSessionsRequest, ErrorReason};

use crate::http::device::record_from;
use crate::http::errors::{Handler, HttpError, Limit};
use crate::http::request;
use crate::providers::IdentityProvider;
use crate::sign_in::refusal::{SignInRefusal, answered, of_logout_token};
use crate::sign_in::request_id;
use crate::sign_in::{SignIn, elapsed_ms};
use crate::values::refusal::{RefusalReason, SignInStep};

/// Largest body, in bytes: one signed token.
const MAX_FORM_BYTES: usize = 64 * 1024;
/// The longest ago the session service takes: a token that waited for longer ends a little more.
const TOLD_AGO_MAX: Duration = Duration::from_secs(60);
/// How far the provider's clock may be from ours, in seconds.
const CLOCKS_APART_SECS: u64 = 60;
/// How long a token's `iat` may lie back, plus both clocks' tolerance, in seconds: after that it is refused for its age.
const MEMORY_SECS: u64 = 300 + 120;

/// POST of one `logout_token`.
pub(crate) async fn handle(State(sign_in): State<Arc<SignIn>>, request: Request) -> Response {
    let device = sign_in.device(&request);
    let handled = received(&sign_in, request).await;
    answered(&sign_in, SignInStep::LogoutToken, device, handled)
}

async fn received(sign_in: &SignIn, request: Request) -> Result<Response, HttpError> {
    let arrived_ms = sign_in.clock.monotonic_ms();
    let (head, body) = request.into_parts();
    let now_ms = sign_in.clock.now_ms();
    sign_in.admit((&sign_in.back_channel_limit, Limit::BackChannelLogouts), &head)?;
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
    let now = now_ms / 1000;
    let provider = if sign_in.providers.several() {
        let issuer = oidc::unverified_issuer(&raw);
        issuer.and_then(|issuer| sign_in.providers.by_issuer(&issuer))
    } else {
        sign_in.providers.all().first().map(Arc::as_ref)
    };
    let Some(provider) = provider else {
        let unknown = LogoutTokenError::Token(IdTokenError::Issuer);
        return Ok(refused(sign_in, None, unknown));
    };
    let token = match provider.relying_party.validate_logout_token(&raw, now).await {
        Ok(token) => token,
        Err(error) => return Ok(refused(sign_in, Some(provider), error)),
    };
    let told_ago = told_ago(sign_in, &token, arrived_ms);
    let device = sign_in.devices.of(&head.headers, request::peer(&head.extensions));
    let until = token.exp.max(now + MEMORY_SECS);
    let count = match end(sign_in, &token, until, told_ago).await? {
        Ok(count) => count,
        Err((reason, words)) => {
            let refusal = SignInRefusal::new(SignInStep::LogoutToken, reason);
            return Ok(refusal.answer(sign_in, Some(provider), HttpError::LogoutToken(words)));
        }
    };
    AuditRecord {
        actor: token.sub.as_deref().map(|subject| (token.iss.as_str(), subject)),
        provider: Some(&provider.id),
        step: Some(SignInStep::LogoutToken.name()),
        ended_count: Some(count),
        ..record_from(&device, Event::ProviderLogout, Outcome::Success)
    }
    .write();
    const NO_STORE: [(HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-store")];
    Ok((StatusCode::OK, NO_STORE).into_response())
}

/// How old the logout is: since the token arrived, or, if it came before while the session service was away, since it was
/// issued at the latest.
fn told_ago(sign_in: &SignIn, token: &LogoutToken, arrived_ms: u64) -> Duration {
    let arrived = Duration::from_millis(elapsed_ms(sign_in, arrived_ms));
    let issued_at_latest = token.iat.saturating_add(CLOCKS_APART_SECS);
    let issued = Duration::from_secs((sign_in.clock.now_ms() / 1000).saturating_sub(issued_at_latest));
    arrived.max(issued).min(TOLD_AGO_MAX)
}

/// Ends the sessions that began before the token arrived first, unless it was used before; it may be forgotten at `until`
/// (seconds since the Unix epoch).
async fn end(
    sign_in: &SignIn,
    token: &LogoutToken,
    until: u64,
    told_ago: Duration,
) -> Result<Result<u32, (RefusalReason, &'static str)>, HttpError> {
    let request = EndSessionsRequest {
        issuer: token.iss.clone(),
        subject: token.sub.clone().unwrap_or_default(),
        provider_sid: token.sid.clone().unwrap_or_default(),
        except_handle: String::new(),
        cause: Cause::BackChannelLogout.into(),
        once_id: token.jti.clone(),
        once_until: Some(timestamp::from_ms(until.saturating_mul(1000))),
        request_id: request_id()?,
        // Access while nobody is there is what they were granted for (section 2.7).
        keep_offline_tokens: true,
        told_ago: told_ago.try_into().ok(),
        ..EndSessionsRequest::default()
    };
    match sign_in.sessions.end_all(request).await {
        Ok(count) => {
            tracing::info!(issuer = token.iss, count, "sessions ended by the provider");
            Ok(Ok(count))
        }
        Err(error) if error.reason == ErrorReason::ErrRequestIdReused => Ok(Err((
            RefusalReason::TokenReplayed,
            "The logout token was used before.",
        ))),
        Err(error) if error.reason == ErrorReason::ErrInvalidArgument => Ok(Err((
            RefusalReason::TokenMismatch,
            "The logout token's sub and sid do not belong together.",
        ))),
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "sessions could not be ended"
            );
            Err(HttpError::SessionServiceDown)
        }
    }
}

fn refused(sign_in: &SignIn, provider: Option<&IdentityProvider>, error: LogoutTokenError) -> Response {
    let answer = match &error {
        LogoutTokenError::Provider(error) => HttpError::Provider(Handler::Logout, error.outage()),
        // Perhaps its key is not published yet: the provider sends it again.
        LogoutTokenError::UnknownKey => HttpError::Provider(Handler::Logout, Outage::Unreachable),
        LogoutTokenError::Token(_)
        | LogoutTokenError::Type
        | LogoutTokenError::Stale
        | LogoutTokenError::TokenId
        | LogoutTokenError::Events
        | LogoutTokenError::Nonce
        | LogoutTokenError::Nobody => HttpError::LogoutToken("The logout token was refused."),
    };
    SignInRefusal::caused(SignInStep::LogoutToken, of_logout_token(&error), error)
        .answer(sign_in, provider, answer)
}
