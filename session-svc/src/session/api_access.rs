//! What to do when an access token for a single API is required: the order of decisions, as a pure function.

use super::access::{Decision, decide, is_expired};
use super::{ApiTarget, ApiToken, ApiTokenSource, Session, TokenRefusal};

/// What to do about a token for an API.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ApiDecision {
    /// Hand out the one that is held.
    Serve(ApiToken),
    /// Request one.
    Request,
    /// Refresh the session's own access token, then request one with it.
    RefreshThenRequest,
    /// Neither.
    Refuse(TokenRefusal),
}

/// Decides, in this order: any token at all, one that is held and good, its scope, what another is requested with.
pub(crate) fn decide_api(
    session: &Session,
    target: &ApiTarget,
    source: ApiTokenSource,
    force: bool,
    now_ms: u64,
) -> ApiDecision {
    if session.sign_in_demand.is_some() {
        return ApiDecision::Refuse(TokenRefusal::SignInOwed);
    }
    let tokens = &session.tokens;
    let refused_before = session.needs_sign_in;
    if tokens.access.is_none() && tokens.refresh.is_none() && !refused_before {
        return ApiDecision::Refuse(TokenRefusal::MissingAccessToken);
    }
    let held = tokens.api.get(target).filter(|_| !force);
    if let Some(held) = held.filter(|held| !is_expired(&held.access, now_ms)) {
        // What the provider did not grant a moment ago it is not asked for again while the token lives.
        return match held.refusal() {
            Some(refusal) => ApiDecision::Refuse(refusal),
            None => ApiDecision::Serve(held.clone()),
        };
    }
    match source {
        ApiTokenSource::RefreshToken if refused_before => ApiDecision::Refuse(TokenRefusal::RefusedBefore),
        ApiTokenSource::RefreshToken if tokens.refresh.is_none() => {
            ApiDecision::Refuse(TokenRefusal::MissingRefreshToken)
        }
        ApiTokenSource::RefreshToken => ApiDecision::Request,
        ApiTokenSource::AccessToken => match decide(session, &[], false, now_ms) {
            Decision::Serve(_) => ApiDecision::Request,
            Decision::Refresh => ApiDecision::RefreshThenRequest,
            Decision::Refuse(refusal) => ApiDecision::Refuse(refusal),
        },
    }
}

#[cfg(test)]
#[path = "api_access_tests.rs"]
mod tests;
