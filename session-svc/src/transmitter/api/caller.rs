//! Which receiver sends a request: the one whose token is there (RFC 6750, section 2.1).

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use chassis::secret::Secret;

use super::super::receiver::Receiver;
use super::Api;
use super::error::ApiError;

/// The receiver that sends the request.
pub(super) struct CallingReceiver(pub(super) Arc<Receiver>);

impl FromRequestParts<Arc<Api>> for CallingReceiver {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, ApiError> {
        let mut values = parts.headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(ApiError::Unauthorized);
        };
        let credentials = value.to_str().ok().and_then(|value| value.split_once(' '));
        let (scheme, token) = credentials.ok_or(ApiError::Unauthorized)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(ApiError::Unauthorized);
        }
        let token = Secret::new(token.trim().to_owned());
        let known = api.context.receivers.known_by(&token);
        known.cloned().map(Self).ok_or(ApiError::Unauthorized)
    }
}
