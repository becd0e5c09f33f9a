//! The decision for a required access token for one API, as a pure function.

use super::access::{Decision, check_tokens, decide, is_expired};
use super::{ApiTarget, ApiTokenSource, Session, TokenRefusal, id_token};

/// Decides in this order: any token, a valid stored one, its scope, the token source for a new one.
pub(crate) fn decide_api(
    session: &Session,
    target: &ApiTarget,
    source: &ApiTokenSource,
    force: bool,
    now_ms: u64,
) -> Result<Decision, TokenRefusal> {
    check_tokens(session)?;
    let held = session.tokens.api.get(target).filter(|_| !force);
    if let Some(held) = held.filter(|held| !is_expired(&held.access, now_ms)) {
        // A scope that the provider just refused is not requested again while the token lives.
        return Ok(Decision::Serve(held.to_granted()?));
    }
    match source {
        ApiTokenSource::RefreshToken if session.needs_sign_in => Err(TokenRefusal::RefusedBefore),
        ApiTokenSource::RefreshToken if session.tokens.refresh.is_none() => {
            Err(TokenRefusal::MissingRefreshToken)
        }
        ApiTokenSource::RefreshToken => Ok(Decision::Request),
        ApiTokenSource::IdToken(_) => match &session.tokens.id_token {
            None => Err(TokenRefusal::MissingIdToken),
            Some(stored) if id_token::is_valid_at(stored, now_ms) => Ok(Decision::Request),
            Some(_) if session.needs_sign_in => Err(TokenRefusal::RefusedBefore),
            Some(_) if session.tokens.refresh.is_none() => Err(TokenRefusal::ExpiredIdToken),
            Some(_) => Ok(Decision::Refresh),
        },
        ApiTokenSource::AccessToken => match decide(session, &[], false, now_ms)? {
            Decision::Serve(_) => Ok(Decision::Request),
            decision => Ok(decision),
        },
    }
}

#[cfg(test)]
#[path = "api_access_tests.rs"]
mod tests;
