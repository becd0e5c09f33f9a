//! The tokens a flight requests: newer tokens of the session, or a token for one API.

use super::ports::TokenRefreshError;
use crate::session::{ApiTarget, ApiTokenSource, Handle, Name, Session, index};

/// Separates these names from all others.
const EXCHANGE: &str = "api token";

/// Which tokens are requested, and which ones the caller has seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TokenRequest {
    /// The API and the token source for it; `None` for the session's own tokens.
    api: Option<(ApiTarget, ApiTokenSource)>,
    /// The generation of the access token seen, or the version of the API token seen; 0 for none.
    seen: u64,
    /// The generation of the access token or ID token sent in an exchange; 0 if none is sent. So callers with a newer
    /// token do not receive the refusal of an older one.
    shown: u64,
}

impl TokenRequest {
    /// Requests newer tokens of the session.
    pub(super) fn session(seen: &Session) -> Self {
        Self {
            api: None,
            seen: seen.tokens.access_generation(),
            shown: 0,
        }
    }

    /// Requests another token for an API.
    pub(super) fn api(seen: &Session, target: ApiTarget, source: ApiTokenSource) -> Self {
        Self {
            seen: seen.tokens.api.get(&target).map_or(0, |held| held.version),
            shown: match source {
                ApiTokenSource::AccessToken | ApiTokenSource::IdToken(_) => seen.tokens.access_generation(),
                ApiTokenSource::RefreshToken => 0,
            },
            api: Some((target, source)),
        }
    }

    /// The API, and the token source for it.
    pub(super) fn target(&self) -> Option<(&ApiTarget, &ApiTokenSource)> {
        self.api.as_ref().map(|(target, source)| (target, source))
    }

    /// The issuer of the API's own authorization server, which issues the token; empty if the provider does.
    pub(super) fn server(&self) -> &str {
        match &self.api {
            Some((_, ApiTokenSource::IdToken(issuer))) => issuer,
            _ => "",
        }
    }

    /// Whether the grant uses, and so rotates, the refresh token.
    pub(super) fn rotates(&self) -> bool {
        matches!(self.api, None | Some((_, ApiTokenSource::RefreshToken)))
    }

    /// The lease of the flight: one for all uses of the refresh token, and one for each exchange.
    pub(super) fn lease(&self, session: Handle) -> Name {
        match &self.api {
            Some((target, ApiTokenSource::AccessToken | ApiTokenSource::IdToken(_))) => {
                name_of(target, session.as_bytes())
            }
            Some((_, ApiTokenSource::RefreshToken)) | None => session,
        }
    }

    /// The lease holder's name in this process: different for each flight that takes the same lease.
    pub(super) fn holder(&self, process: &str) -> String {
        match &self.api {
            None => format!("{process}.{}", self.seen),
            Some((target, _)) => {
                format!("{process}.{}.{}.{}", self.seen, self.shown, name_of(target, &[]))
            }
        }
    }

    /// The outcome that the session already shows without a request; `None` while an answer is pending.
    pub(super) fn outcome_in(&self, session: Session) -> Option<Result<Session, TokenRefreshError>> {
        let is_there = match &self.api {
            None => {
                let tokens = &session.tokens;
                refusal(&session).is_none()
                    && tokens.access_generation() > self.seen
                    && tokens.pending.is_none()
            }
            Some((target, _)) => {
                let held = session.tokens.api.get(target);
                held.is_some_and(|held| held.version > self.seen)
            }
        };
        if is_there {
            return Some(Ok(session));
        }
        refusal(&session).filter(|_| self.rotates()).map(Err)
    }
}

/// The error if the refresh token cannot be used any more.
fn refusal(session: &Session) -> Option<TokenRefreshError> {
    let refused = session.needs_sign_in || session.tokens.refresh.is_none();
    refused.then_some(TokenRefreshError::Refused)
}

/// A name for all parameters of the token request, and its owner.
pub(super) fn name_of(target: &ApiTarget, owner: &[u8]) -> Name {
    let mut parts = vec![EXCHANGE.as_bytes(), owner];
    parts.extend([&target.audience, &target.resource].map(|name| name.as_bytes()));
    parts.extend(target.scopes.iter().map(String::as_bytes));
    index::hashed(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::access::tests::session;

    /// Otherwise it would receive the refusal of the earlier token instead of its own.
    #[test]
    fn who_has_seen_a_newer_token_joins_no_exchange_that_shows_an_older_one() {
        let before = session(true, true, false);
        let mut after = before.clone();
        after.tokens.generation += 1;
        let target = ApiTarget::new("orders", "", &[]);
        let wanted = |seen: &Session, source| TokenRequest::api(seen, target.clone(), source);
        let (old, new) = (
            wanted(&before, ApiTokenSource::AccessToken),
            wanted(&after, ApiTokenSource::AccessToken),
        );
        assert_ne!(old, new);
        assert_ne!(old.holder("process"), new.holder("process"));
        assert_eq!(
            old.lease(before.handle),
            new.lease(after.handle),
            "one exchange at a time"
        );
        assert_eq!(
            wanted(&before, ApiTokenSource::RefreshToken),
            wanted(&after, ApiTokenSource::RefreshToken),
            "the refresh token is the session's newest in any case"
        );
    }
}
