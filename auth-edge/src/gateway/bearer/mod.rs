//! Access tokens of API clients in the place of a session: a command line, a service, an MCP client (RFC 6750, RFC 9068,
//! RFC 7662, RFC 9449, RFC 9728).
//!
//! Invariants
//! - Whoever presents a token is judged by it alone: a wrong one never falls back to a cookie.
//! - A token counts for the audience of its route, from a provider that counts there, as it was bound, or not at all.
//! - What cannot be judged (keys that were never had, an introspection endpoint that is down) lets nobody in.
//! - A wrong token costs bounded work: what is cheap is looked at first, and who sends many that are not is told to wait.
//!
//! Deliberately absent: tokens bound to a client certificate (RFC 8705), which end at a proxy as often as here; they are refused.

mod challenges;
mod cross_origin;
mod digest;
mod judging;
pub(crate) mod memory;
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
pub(super) use self::judging::Presentation;
pub(crate) use self::memory::BearerTokens;
pub(super) use self::presented::PROOF;

/// Authorizes a request by the token it presents, or answers it; `None` where it presents none.
pub(super) async fn authorize(
    presentation: &Presentation<'_>,
) -> Result<Option<Arc<VerifiedAccessToken>>, Response> {
    let Some(presented) = presented(presentation.client.0) else {
        return Ok(None);
    };
    let counts = &presentation.gateway.bearer;
    // A future of its own: requests that come with a cookie do not carry it.
    match Box::pin(presentation.judge(presented)).await {
        Ok(token) => {
            counts.count("accepted");
            Ok(Some(token))
        }
        Err(refusal) => {
            let (reason, answer) = refusal.told();
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
