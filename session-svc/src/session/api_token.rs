//! Access tokens for single APIs that a session stores next to its own.
//!
//! Invariants
//! - The key of a token is its whole request: a token for one API or scope is never returned for another.
//! - A session has at most [`MAX_API_TOKENS`]; expired ones are evicted first, then the oldest.

use prost::Message;

use super::tokens::{AccessToken, GrantedToken, Scope, TokenRefusal};

/// Most API tokens of one session: more than one application's APIs, and bounded for any caller.
pub(crate) const MAX_API_TOKENS: usize = 16;

/// A token's target: the audience or resource (RFC 8693, section 2.1; RFC 8707, section 2), and the scope.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct ApiTarget {
    /// Logical name of the API; empty for none.
    #[prost(string, tag = "1")]
    pub(crate) audience: String,
    /// URI of the API; empty for none.
    #[prost(string, tag = "2")]
    pub(crate) resource: String,
    /// The required scopes, sorted.
    #[prost(string, repeated, tag = "3")]
    pub(crate) scopes: Vec<String>,
}

impl ApiTarget {
    /// Creates a target; empty means not named. The order and repetition of scopes do not matter.
    pub fn new(audience: &str, resource: &str, scopes: &[String]) -> Self {
        let mut scopes = scopes.to_vec();
        scopes.sort_unstable();
        scopes.dedup();
        Self {
            audience: audience.to_owned(),
            resource: resource.to_owned(),
            scopes,
        }
    }
}

/// The token used to request a token for an API.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ApiTokenSource {
    /// The session's access token, in an exchange (RFC 8693).
    AccessToken,
    /// The refresh token, with the API named (RFC 8707, section 2.2).
    RefreshToken,
    /// The ID token, for an assertion to the API's own authorization server with this issuer (ID-JAG).
    IdToken(String),
}

/// A token for one API.
#[derive(Clone, PartialEq, Message)]
pub struct ApiToken {
    /// The target it was requested for.
    #[prost(message, required, tag = "1")]
    pub target: ApiTarget,
    /// The token.
    #[prost(message, required, tag = "2")]
    pub access: AccessToken,
    /// The granted scope.
    #[prost(message, required, tag = "3")]
    pub scope: Scope,
    /// The session version that first had it: distinguishes it from an earlier one.
    #[prost(uint64, tag = "4")]
    pub(crate) version: u64,
    /// The issuer of the API's own authorization server; empty if the provider issued the token.
    #[prost(string, tag = "5")]
    pub(crate) server: String,
}

/// The API tokens of a session, the oldest first.
#[derive(Clone, PartialEq, Message)]
pub struct ApiTokens(#[prost(message, repeated, tag = "1")] Vec<ApiToken>);

impl ApiTokens {
    /// All tokens, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ApiToken> {
        self.0.iter()
    }

    /// The token for a target.
    pub(crate) fn get(&self, target: &ApiTarget) -> Option<&ApiToken> {
        self.0.iter().find(|token| token.target == *target)
    }

    /// Adds a token and replaces the one for the same target.
    pub(crate) fn put(&mut self, token: ApiToken, now_ms: u64) {
        self.0
            .retain(|held| held.target != token.target && now_ms < held.access.expires_at_ms);
        self.0.push(token);
        if self.0.len() > MAX_API_TOKENS {
            self.0.remove(0);
        }
    }

    /// Removes the token for a target.
    pub(crate) fn remove(&mut self, target: &ApiTarget) {
        self.0.retain(|held| held.target != *target);
    }

    /// Evicts the oldest, but never the newest; false if there is no other.
    pub(crate) fn drop_oldest(&mut self) -> bool {
        let spare = self.0.len() > 1;
        if spare {
            self.0.remove(0);
        }
        spare
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl ApiToken {
    /// The token to return, unless the provider granted a smaller scope than requested.
    pub(crate) fn to_granted(&self) -> Result<GrantedToken, TokenRefusal> {
        self.scope.check(&self.target.scopes)?;
        Ok(GrantedToken {
            access: self.access.clone(),
            scope: self.scope.clone(),
        })
    }
}
