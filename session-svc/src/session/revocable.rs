//! The tokens of a session to revoke at the provider when it ends (RFC 7009).

use prost::Message;

use super::{SessionTokens, StoredToken};

/// An access token with less time left, in ms, expires before its revocation takes effect everywhere.
const WORTH_REVOKING_MS: u64 = 10_000;

/// A token to revoke.
#[derive(Clone, PartialEq, Message)]
pub struct RevocableToken {
    /// The token.
    #[prost(message, required, tag = "1")]
    pub value: StoredToken,
    /// Whether it is an access token, not a refresh token (RFC 7009, section 2.1).
    #[prost(bool, tag = "2")]
    pub is_access: bool,
    /// The issuer of the API's own authorization server that issued it; empty if the session's provider did.
    #[prost(string, tag = "3")]
    pub(crate) server: String,
}

impl SessionTokens {
    /// The refresh token first, with which most providers revoke the whole grant, then the API tokens. The
    /// session's own access token is left to expire.
    pub(crate) fn revocable(&self, now_ms: u64) -> Vec<RevocableToken> {
        let refresh = self.refresh.as_ref().map(|token| RevocableToken {
            value: token.clone(),
            is_access: false,
            server: String::new(),
        });
        let is_worth_it = |expires_at_ms: u64| now_ms.saturating_add(WORTH_REVOKING_MS) <= expires_at_ms;
        let api = self
            .api
            .iter()
            .filter(|token| is_worth_it(token.access.expires_at_ms))
            .map(|token| RevocableToken {
                value: token.access.value.clone(),
                is_access: true,
                server: token.server.clone(),
            });
        refresh.into_iter().chain(api).collect()
    }

    /// The same after the refresh token was rotated.
    pub(crate) fn revocable_with(&self, rotated: Option<&str>, now_ms: u64) -> Vec<RevocableToken> {
        let rotated = rotated.map(|token| StoredToken::new(token.to_owned()));
        Self {
            refresh: rotated.or_else(|| self.refresh.clone()),
            ..self.clone()
        }
        .revocable(now_ms)
    }
}
