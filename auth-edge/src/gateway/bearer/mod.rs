//! Access tokens of API clients in place of a session: a command line, a service, an MCP client (RFC 6750,
//! RFC 9068, RFC 7662, RFC 9449, RFC 9728).
//!
//! Invariants
//! - If a request has a token, only the token decides: an invalid one never falls back to a cookie.
//! - A token passes only with the route's audience, from an accepted provider, and with its binding proven.
//! - An unverifiable token (missing keys, introspection endpoint down) does not pass.
//! - An invalid token costs bounded work: cheap checks first, and a limit of invalid tokens per client.
//!
//! Deliberately absent: tokens bound to a client certificate (RFC 8705); TLS often ends at a proxy.

mod challenges;
mod cross_origin;
pub(super) mod digest;
pub(crate) mod memory;
mod presentation;
mod presented;
mod proofs_seen;
mod refusal;
pub(crate) mod resource;
mod verified_tokens;

use std::sync::Arc;

use axum::response::Response;
use oidc::VerifiedAccessToken;

use self::presented::presented;

pub(super) use self::challenges::{invite, metadata_url};
pub(super) use self::cross_origin::{let_other_origins_read, other_origins_may_read};
pub(crate) use self::memory::BearerTokens;
pub(super) use self::presentation::Presentation;
pub(super) use self::presented::PROOF;

/// Authorizes a request by its token, or answers it; `None` if the request has no token.
pub(super) async fn authorize(
    presentation: &Presentation<'_>,
) -> Result<Option<Arc<VerifiedAccessToken>>, Response> {
    let Some(presented) = presented(presentation.client.0) else {
        return Ok(None);
    };
    let counts = &presentation.gateway.bearer;
    // A future of its own, so that requests with a cookie do not carry its size.
    match Box::pin(presentation.verify_token(presented)).await {
        Ok(token) => {
            counts.count("accepted");
            Ok(Some(token))
        }
        Err(refusal) => {
            let (reason, answer) = refusal.describe();
            counts.count(reason);
            tracing::info!(
                http.route = &*presentation.route.name,
                reason,
                error = &refusal as &dyn std::error::Error,
                "an access token was refused"
            );
            Err(challenges::answer(answer, presentation, presented.scheme))
        }
    }
}
