//! What a flight is to bring: newer tokens of the session, or a token for one API.

use super::ports::TokenRefreshError;
use crate::session::{ApiTarget, ApiTokenSource, Handle, Name, Session, index};

/// Separates these names from all others.
const EXCHANGE: &str = "api token";

/// Which tokens are wanted, and what the caller has seen of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    /// The API and what its token is requested with; none for the session's own tokens.
    api: Option<(ApiTarget, ApiTokenSource)>,
    /// The generation of the access token seen, or the version the API's token seen came with; 0 for none.
    seen: u64,
    /// The generation of the access token that is shown for another API's; 0 where none is. Who has seen a newer one is not told
    /// that an older one was refused.
    shown: u64,
}

impl Wanted {
    /// Newer tokens of the session.
    pub(super) fn session(seen: &Session) -> Self {
        Self {
            api: None,
            seen: seen.tokens.access_generation(),
            shown: 0,
        }
    }

    /// Another token for an API.
    pub(super) fn api(seen: &Session, target: ApiTarget, source: ApiTokenSource) -> Self {
        Self {
            seen: seen.tokens.api.get(&target).map_or(0, |held| held.version),
            shown: match source {
                ApiTokenSource::AccessToken => seen.tokens.access_generation(),
                ApiTokenSource::RefreshToken => 0,
            },
            api: Some((target, source)),
        }
    }

    /// The API, and what its token is requested with.
    pub(super) fn target(&self) -> Option<(&ApiTarget, ApiTokenSource)> {
        self.api.as_ref().map(|(target, source)| (target, *source))
    }

    /// Whether the refresh token is used, and so rotated.
    pub(super) fn rotates(&self) -> bool {
        !matches!(self.api, Some((_, ApiTokenSource::AccessToken)))
    }

    /// The lease it takes: one for all that use the refresh token, and one for each exchange.
    pub(super) fn lease(&self, session: Handle) -> Name {
        match &self.api {
            Some((target, ApiTokenSource::AccessToken)) => name_of(target, session.as_bytes()),
            Some((_, ApiTokenSource::RefreshToken)) | None => session,
        }
    }

    /// The name the lease is acquired by in this process: of the flights of a process that take one lease, each has its own.
    pub(super) fn holder(&self, process: &str) -> String {
        match &self.api {
            None => format!("{process}.{}", self.seen),
            Some((target, _)) => {
                format!("{process}.{}.{}.{}", self.seen, self.shown, name_of(target, &[]))
            }
        }
    }

    /// The outcome that a session shows without a request to the provider: nothing while an answer is pending.
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

/// Why the refresh token is not used any more, if it is not.
fn refusal(session: &Session) -> Option<TokenRefreshError> {
    let refused = session.needs_sign_in || session.tokens.refresh.is_none();
    refused.then_some(TokenRefreshError::Refused)
}

/// A name made of all a token is requested with, for the owner given.
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

    /// Else it would be told that its own token is refused, though only the one before was.
    #[test]
    fn who_has_seen_a_newer_token_joins_no_exchange_that_shows_an_older_one() {
        let before = session(true, true, false);
        let mut after = before.clone();
        after.tokens.generation += 1;
        let target = ApiTarget::new("orders", "", &[]);
        let wanted = |seen: &Session, source| Wanted::api(seen, target.clone(), source);
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
