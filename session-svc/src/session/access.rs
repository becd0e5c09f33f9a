//! The decision for a required access token, as a pure function.

use super::tokens::GrantedToken;
use super::{AccessToken, Session, TokenRefusal};

/// The decision.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    /// Return the stored token.
    Serve(GrantedToken),
    /// Refresh the session's own tokens, and request a token for an API with them if one is required.
    Refresh,
    /// Request a token for an API.
    Request,
}

/// A token counts as expired when less than this is left, in milliseconds. A running call may take a minute,
/// and clocks may differ by as much (the default of `OIDC_CLOCK_TOLERANCE`).
const EXPIRY_MARGIN_MS: u64 = 60_000;

/// Decides in this order: token present, scope, forced, expired, refreshable.
pub(crate) fn decide(
    session: &Session,
    scopes: &[String],
    force_refresh: bool,
    now_ms: u64,
) -> Result<Decision, TokenRefusal> {
    check_tokens(session)?;
    let tokens = &session.tokens;
    tokens.scope.check(scopes)?;
    let access = tokens.access.as_ref().filter(|_| !force_refresh);
    if let Some(access) = access.filter(|access| !is_expired(access, now_ms)) {
        return Ok(Decision::Serve(GrantedToken {
            access: access.clone(),
            scope: tokens.scope.clone(),
        }));
    }
    match (&tokens.refresh, force_refresh) {
        _ if session.needs_sign_in => Err(TokenRefusal::RefusedBefore),
        (Some(_), _) => Ok(Decision::Refresh),
        (None, true) => Err(TokenRefusal::MissingRefreshToken),
        (None, false) => Err(TokenRefusal::ExpiredAccessToken),
    }
}

/// Fails if a session has no token at all, or must sign in again.
pub(super) fn check_tokens(session: &Session) -> Result<(), TokenRefusal> {
    let tokens = &session.tokens;
    if session.sign_in_demand.is_some() {
        Err(TokenRefusal::SignInOwed)
    } else if tokens.access.is_none() && tokens.refresh.is_none() && !session.needs_sign_in {
        Err(TokenRefusal::MissingAccessToken)
    } else {
        Ok(())
    }
}

/// The last instant at which a token is returned without a refresh. The margin is at most half of the token's
/// lifetime: otherwise a token with a one-minute lifetime would never be valid.
pub(crate) fn good_until_ms(access: &AccessToken) -> u64 {
    let margin_ms = match access.lifetime_ms {
        AccessToken::LONG => EXPIRY_MARGIN_MS,
        lifetime_ms => EXPIRY_MARGIN_MS.min(lifetime_ms / 2),
    };
    access.expires_at_ms.saturating_sub(margin_ms)
}

/// Whether a token counts as expired; exactly the margin left is still valid.
pub(crate) fn is_expired(access: &AccessToken, now_ms: u64) -> bool {
    good_until_ms(access) < now_ms
}

/// Whether the provider's last grant is older than `revalidate_ms` (0 for never). A session whose refresh
/// token was refused is due at once, and ends.
pub(crate) fn is_due_revalidation(session: &Session, revalidate_ms: u64, now_ms: u64) -> bool {
    let tokens = &session.tokens;
    let granted_at_ms = tokens.granted_at_ms.max(session.created_at_ms);
    let is_old = tokens.refresh.is_some() && now_ms >= granted_at_ms.saturating_add(revalidate_ms);
    revalidate_ms > 0 && (is_old || session.needs_sign_in)
}

/// The token if it has not really expired: returned inside the margin if the provider is down.
pub(crate) fn still_good(session: &Session, now_ms: u64) -> Option<AccessToken> {
    session
        .tokens
        .access
        .clone()
        .filter(|access| now_ms < access.expires_at_ms)
}

#[cfg(test)]
#[path = "access_tests.rs"]
pub(crate) mod tests;
