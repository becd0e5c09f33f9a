//! What a finished sign-in tells the session service.

use axum::http::request::Parts;
use chassis::random;
use oidc::IdToken;
use session_proto::timestamp;
use session_proto::v1::{CreateSessionRequest, TokenSet};

use crate::http::errors::HttpError;
use crate::http::request;
use crate::sessions::cookies::SessionId;
use crate::sign_in::SignIn;
use crate::sign_in::login::internal;
use crate::sign_in::user::{of_id_token, user};

/// The request that makes the session. A valid session the browser brought, or had when it began, is replaced by it.
pub(super) fn create_request(
    sign_in: &SignIn,
    head: &Parts,
    had: Option<SessionId>,
    tokens: oidc::TokenSet,
    id_token: IdToken,
    userinfo: Option<serde_json::Map<String, serde_json::Value>>,
) -> CreateSessionRequest {
    let seconds = |secs: u64| timestamp::from_ms(secs.saturating_mul(1000));
    let replaces_session_id = sign_in
        .cookies
        .read(&head.headers)
        .or(had)
        .map(|id| id.expose().to_owned())
        .unwrap_or_default();
    let user = of_id_token(&tokens.id_token)
        .and_then(|claims| user(&claims, userinfo, &sign_in.settings.claim_filter).ok());
    CreateSessionRequest {
        issuer: id_token.iss,
        // Of a token that was verified it is there; without it the session service refuses.
        user: user.unwrap_or_default(),
        tokens: Some(TokenSet {
            access_token: tokens.access_token,
            token_type: tokens.token_type,
            scope: tokens.scope,
            expires_at: Some(seconds(tokens.expires_at)),
            refresh_token: tokens.refresh_token.unwrap_or_default(),
            id_token: if sign_in.settings.store_id_token {
                tokens.id_token
            } else {
                String::new()
            },
        }),
        provider_sid: id_token.sid.unwrap_or_default(),
        authenticated_at: id_token.auth_time.map(seconds),
        device: Some(sign_in.devices.of(&head.headers, request::peer(&head.extensions))),
        replaces_session_id,
        not_after: id_token.session_expiry.map(seconds),
        // Whose it is says the claim.
        ..CreateSessionRequest::default()
    }
}

/// A fresh name for one call to the session service, so that repeating it does nothing twice: a random UUID (RFC 9562, section 5.4).
pub(super) fn request_id() -> Result<String, HttpError> {
    let random = random::bytes::<16>().map_err(internal)?;
    Ok(uuid::Builder::from_random_bytes(random).into_uuid().to_string())
}
