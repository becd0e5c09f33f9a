//! The access token that a check hands out to the proxy (`EDGE_CHECK_AUTHORIZATION`).

use axum::http::HeaderValue;

use crate::gateway::{Gateway, guard};
use crate::http::request::first_parameter;
use crate::route_table::missing::Missing;
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

/// The `Authorization` for the upstream, if the session has a token for it. One that is bound to a key (RFC 9449) is useless to the
/// proxy: sessions from before `OIDC_DPOP` was switched off have one, until the next sign-in.
pub(super) async fn authorization(
    gateway: &Gateway,
    current: &CurrentSession,
    wanted: TokenFor<'_>,
) -> Result<Option<HeaderValue>, Missing> {
    match guard::token(gateway, current, wanted).await {
        Ok(granted) if granted.is_bound() => Err(Missing::Session),
        Ok(granted) => Ok(granted.authorization.clone()),
        Err(Missing::Token(_)) => Err(Missing::Session),
        Err(missing) => Err(missing),
    }
}
