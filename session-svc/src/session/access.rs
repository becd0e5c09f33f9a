//! What to do about an access token that is asked for: the order of decisions, as a pure function.

use super::{AccessToken, Session, State};

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    /// Hand out the stored token.
    Serve(AccessToken),
    /// Ask the provider for a new one.
    Refresh,
    /// Neither.
    Refuse(Refusal),
}

/// Why no token can be handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The session holds neither an access token nor a refresh token.
    MissingAccessToken,
    /// These scopes were asked for and not granted.
    InsufficientScope(Vec<String>),
    /// A refresh was forced, but there is no refresh token.
    MissingRefreshToken,
    /// The access token has expired and there is no refresh token.
    ExpiredAccessToken,
    /// The provider refused the refresh token before: it is not tried again.
    RefusedBefore,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    /// Scopes the token has to carry.
    pub(crate) scopes: &'a [String],
    /// Refresh even if the stored token is good.
    pub(crate) force_refresh: bool,
    /// A token counts as expired when less than this is left, in milliseconds.
    pub(crate) margin_ms: u64,
}

/// Decides, in this order: token at all, scope, forced, expired, refreshable.
pub(crate) fn decide(session: &Session, ask: Ask<'_>, now_ms: u64) -> Decision {
    let tokens = &session.tokens;
    let refused_before = session.state == State::NeedsSignIn;
    if tokens.access.is_none() && tokens.refresh.is_none() && !refused_before {
        return Decision::Refuse(Refusal::MissingAccessToken);
    }
    let missing = tokens.scope.missing(ask.scopes);
    if !missing.is_empty() {
        return Decision::Refuse(Refusal::InsufficientScope(
            missing.into_iter().map(str::to_owned).collect(),
        ));
    }
    if !ask.force_refresh
        && let Some(access) = &tokens.access
        && !is_expired(access, ask.margin_ms, now_ms)
    {
        return Decision::Serve(access.clone());
    }
    if refused_before {
        return Decision::Refuse(Refusal::RefusedBefore);
    }
    match (&tokens.refresh, ask.force_refresh) {
        (Some(_), _) => Decision::Refresh,
        (None, true) => Decision::Refuse(Refusal::MissingRefreshToken),
        (None, false) => Decision::Refuse(Refusal::ExpiredAccessToken),
    }
}

/// Whether a token counts as expired: exactly the margin left is still valid.
pub(crate) fn is_expired(access: &AccessToken, margin_ms: u64, now_ms: u64) -> bool {
    access.expires_at_ms.saturating_sub(margin_ms) < now_ms
}

/// Whether a token that is still valid is worth refreshing already: it will count as expired within `ahead_ms`, which
/// is 0 for never.
pub(crate) fn is_due_ahead(session: &Session, margin_ms: u64, ahead_ms: u64, now_ms: u64) -> bool {
    let tokens = &session.tokens;
    session.state == State::Active
        && ahead_ms > 0
        && tokens.refresh.is_some()
        && tokens.access.as_ref().is_some_and(|access| {
            !is_expired(access, margin_ms, now_ms)
                && is_expired(access, margin_ms.saturating_add(ahead_ms), now_ms)
        })
}

/// The token, if it has really not expired: what a caller inside the margin gets when the provider is down.
pub(crate) fn still_good(session: &Session, now_ms: u64) -> Option<AccessToken> {
    session
        .tokens
        .access
        .clone()
        .filter(|access| now_ms < access.expires_at_ms)
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
