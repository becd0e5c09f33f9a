//! The access token that a check hands out to the proxy (`EDGE_CHECK_AUTHORIZATION`).

use axum::http::HeaderValue;
use session_proto::v1::ErrorReason;
use session_proto::v1::session::State as SessionState;

use crate::gateway::Gateway;
use crate::gateway::guard::UpstreamToken;
use crate::http::errors::HttpError;
use crate::http::request::first_parameter;
use crate::sessions::{CurrentSession, TokenFor};

/// Which access token the proxy's configuration requests, as parameters of the check.
pub(super) struct RequestedToken {
    audience: String,
    resource: String,
    scopes: Vec<String>,
}

impl RequestedToken {
    pub(super) fn of(query: &str) -> Self {
        let text = |name| first_parameter(query, name).unwrap_or_default();
        Self {
            audience: text("audience"),
            resource: text("resource"),
            scopes: text("scope")
                .split_ascii_whitespace()
                .map(str::to_owned)
                .collect(),
        }
    }

    pub(super) fn token_for(&self) -> TokenFor<'_> {
        TokenFor {
            scopes: &self.scopes,
            audience: &self.audience,
            resource: &self.resource,
        }
    }
}

/// The `Authorization` for the upstream; `None` if the person has to sign in first. A token that is bound to a key (RFC 9449)
/// is useless to the proxy: sessions from before `OIDC_DPOP` was switched off have one, until the next sign-in.
pub(super) async fn authorization(
    gateway: &Gateway,
    current: &CurrentSession,
    wanted: TokenFor<'_>,
) -> Result<Option<HeaderValue>, HttpError> {
    if current.session.state() == SessionState::NeedsSignIn {
        return Ok(None);
    }
    match gateway.sessions.access_token(&current.id, wanted).await {
        Ok(granted) if UpstreamToken::from(&*granted).bound => Ok(None),
        Ok(granted) => Ok(granted.authorization.clone()),
        Err(error) if is_told(error.reason) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "forward auth has no access token to hand out"
            );
            Err(HttpError::Session {
                reason: error.reason,
                scopes: error.metadata.get("scopes").cloned(),
                handler: None,
            })
        }
        Err(error) if error.is_unavailable() => Err(HttpError::SessionServiceDown),
        Err(_) => Ok(None),
    }
}

/// Whether a sign-in does not help, so that the answer gives the reason.
fn is_told(reason: ErrorReason) -> bool {
    matches!(
        reason,
        ErrorReason::ErrProviderUnavailable
            | ErrorReason::ErrInsufficientScope
            | ErrorReason::ErrInvalidTarget
            | ErrorReason::ErrFailedTokenExchange
            | ErrorReason::ErrMissingRefreshToken
            | ErrorReason::ErrInvalidArgument
    )
}
