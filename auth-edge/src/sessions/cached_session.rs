//! A session as the edge knows it: the service's answer, and values derived from it once.

use std::ops::Deref;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use axum::http::HeaderValue;
use chassis::audit::{AuditRecord, Event, Outcome};
use chassis::secret::Secret;
use serde_json::{Map, Value};
use session_proto::timestamp;
use session_proto::v1::{GetAccessTokenResponse, Session};

use super::replica_freshness::Moment;

/// Access tokens cached for one session: one for each API and set of scopes that routes require.
const TOKENS_MAX: usize = 8;

/// Selects one of a session's access tokens: its own, or the one for an audience or a resource. An empty
/// field names none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TokenFor {
    /// Scopes the token has to carry.
    pub(crate) scopes: Vec<String>,
    /// Logical name of the API at the provider.
    pub(crate) audience: String,
    /// URI of the API (RFC 8707).
    pub(crate) resource: String,
}

impl TokenFor {
    /// Whether it is for one API.
    pub(crate) fn names_api(&self) -> bool {
        !self.audience.is_empty() || !self.resource.is_empty()
    }
}

/// A session that was read.
#[derive(Debug)]
pub(crate) struct CachedSession {
    session: Session,
    claims: OnceLock<Map<String, Value>>,
    tokens: RwLock<Vec<Arc<CachedToken>>>,
}

/// An access token that the session service issued.
#[derive(Debug)]
pub(crate) struct CachedToken {
    /// The full request for it: a token for one API is never found for another.
    requested: TokenFor,
    /// When it was requested.
    pub(super) requested_at: Moment,
    /// The token.
    pub(crate) value: Secret<String>,
    /// The token type, usually `Bearer`.
    pub(crate) token_type: String,
    /// The header value for an upstream; none if a header cannot hold the token.
    pub(crate) authorization: Option<HeaderValue>,
    /// The scope granted, separated by spaces.
    pub(crate) scope: String,
    /// When it expires, in milliseconds since the Unix epoch.
    pub(crate) expires_at_ms: u64,
    /// Until when the session service returns it without a refresh, in the same unit.
    pub(super) good_until_ms: u64,
}

impl CachedToken {
    /// Made from the session service's answer.
    pub(crate) fn new(
        requested: &TokenFor,
        requested_at: Moment,
        granted: GetAccessTokenResponse,
    ) -> Arc<Self> {
        Arc::new(Self {
            requested: requested.clone(),
            requested_at,
            authorization: authorization(&granted.token_type, &granted.access_token),
            value: Secret::new(granted.access_token),
            token_type: granted.token_type,
            scope: granted.scope,
            expires_at_ms: granted.expires_at.as_ref().map_or(0, timestamp::to_ms),
            good_until_ms: granted.good_until.as_ref().map_or(0, timestamp::to_ms),
        })
    }

    /// Whether the token is valid only with a proof (RFC 9449).
    pub(crate) fn is_bound(&self) -> bool {
        self.token_type.eq_ignore_ascii_case("DPoP")
    }
}

/// The header value for a token of this type: bound to a key (RFC 9449) or not (RFC 6750).
#[must_use]
fn authorization(token_type: &str, token: &str) -> Option<HeaderValue> {
    let bound = token_type.eq_ignore_ascii_case("DPoP");
    let scheme = if bound { "DPoP" } else { "Bearer" };
    let mut value = HeaderValue::try_from(format!("{scheme} {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

impl CachedSession {
    /// Made from the session service's answer.
    #[must_use]
    pub(crate) fn new(session: Session) -> Arc<Self> {
        Arc::new(Self {
            session,
            claims: OnceLock::new(),
            tokens: RwLock::default(),
        })
    }

    /// The audit record of a request with the session's cookie but without proof of its device.
    pub(super) fn record_without_device(&self) -> AuditRecord<'_> {
        AuditRecord {
            actor: Some((&self.session.issuer, &self.session.subject)),
            session: Some(&self.session.handle),
            reason: Some("no_proof"),
            ..AuditRecord::new(Event::DeviceBinding, Outcome::Failure)
        }
    }

    /// The user's claims, parsed once.
    pub(crate) fn claims(&self) -> &Map<String, Value> {
        // The session service accepts only an object.
        let read = || serde_json::from_str(&self.session.user).unwrap_or_default();
        self.claims.get_or_init(read)
    }

    pub(super) fn token(&self, wanted: &TokenFor) -> Option<Arc<CachedToken>> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        tokens.iter().find(|token| token.requested == *wanted).cloned()
    }

    pub(super) fn keep_token(&self, token: Arc<CachedToken>) {
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        tokens.retain(|known| known.requested != token.requested);
        tokens.truncate(TOKENS_MAX - 1);
        tokens.push(token);
    }
}

impl Deref for CachedSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_remembers_a_few_tokens_each_for_its_own_scopes() {
        let known = CachedSession::new(Session::default());
        let wanted = |number: usize| with(&[&format!("scope-{number}")]);
        for number in 0..100 {
            let granted = GetAccessTokenResponse {
                access_token: format!("token-{number}"),
                ..GetAccessTokenResponse::default()
            };
            known.keep_token(CachedToken::new(&wanted(number), Moment::default(), granted));
        }
        let kept = |number: &usize| known.token(&wanted(*number)).is_some();
        assert_eq!((0..100).filter(kept).count(), TOKENS_MAX);
        assert_eq!(known.token(&wanted(99)).unwrap().value.expose(), "token-99");
    }

    #[test]
    fn a_token_is_found_by_all_it_was_requested_by() {
        let known = CachedSession::new(Session::default());
        let api = || "a".to_owned();
        let all = [
            TokenFor::default(),
            with(&["read"]),
            TokenFor {
                audience: api(),
                ..TokenFor::default()
            },
            TokenFor {
                resource: api(),
                ..TokenFor::default()
            },
            TokenFor {
                audience: api(),
                ..with(&["read"])
            },
            TokenFor {
                audience: api(),
                resource: api(),
                ..with(&["read"])
            },
        ];
        for (number, wanted) in all.iter().enumerate() {
            assert!(known.token(wanted).is_none(), "{wanted:?}");
            let granted = GetAccessTokenResponse {
                access_token: number.to_string(),
                ..GetAccessTokenResponse::default()
            };
            known.keep_token(CachedToken::new(wanted, Moment::default(), granted));
        }
        for (number, wanted) in all.iter().enumerate() {
            assert_eq!(known.token(wanted).unwrap().value.expose(), &number.to_string());
        }
    }

    fn with(scopes: &[&str]) -> TokenFor {
        TokenFor {
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            ..TokenFor::default()
        }
    }
}
