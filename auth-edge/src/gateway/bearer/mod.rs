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

use self::presented::PresentedToken;

pub(super) use self::challenges::{invite, metadata_url};
pub(super) use self::cross_origin::{let_other_origins_read, other_origins_may_read};
pub(super) use self::judging::Presentation;
pub(crate) use self::memory::BearerTokens;
pub(super) use self::presented::{PROOF, presented};

/// Authorizes a request by the token it presents, or answers it.
pub(super) async fn authorize(
    presentation: &Presentation<'_>,
    presented: PresentedToken<'_>,
) -> Result<Arc<VerifiedAccessToken>, Response> {
    let (counts, route) = (&presentation.gateway.bearer, presentation.route);
    match presentation.judge(presented).await {
        Ok(token) => {
            counts.count("accepted");
            Ok(token)
        }
        Err(refusal) => {
            let (reason, _) = refusal.told();
            counts.count(reason);
            tracing::info!(
                http.route = &*route.name,
                reason,
                error = &refusal as &dyn std::error::Error,
                "an access token was refused"
            );
            Err(challenges::answer(refusal, presentation, presented.scheme))
        }
    }
}
