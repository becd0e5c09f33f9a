//! Access tokens for single APIs that a session holds beside its own.
//!
//! Invariants
//! - A token is found by everything it was requested with: one for an API is never handed out for another, nor one with a
//!   scope for another scope.
//! - A session holds at most [`MAX_API_TOKENS`]; what has expired goes first, then the oldest.

use prost::Message;

use super::tokens::{AccessToken, GrantedToken, Scope, TokenRefusal};

/// Most API tokens of one session: more than the APIs one application calls, and bounded whatever a caller requests.
pub(crate) const MAX_API_TOKENS: usize = 16;

/// What a token is for: the audience or resource (RFC 8693, section 2.1; RFC 8707, section 2), and the scope at it.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct ApiTarget {
    /// Logical name of the API; empty for none.
    #[prost(string, tag = "1")]
    pub(crate) audience: String,
    /// URI of the API; empty for none.
    #[prost(string, tag = "2")]
    pub(crate) resource: String,
    /// The scopes the token has to carry, sorted.
    #[prost(string, repeated, tag = "3")]
    pub(crate) scopes: Vec<String>,
}

impl ApiTarget {
    /// A target; empty is not named. The order of scopes does not count, nor that one stands twice.
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

/// What a token for an API is requested with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApiTokenSource {
    /// The session's access token, exchanged for another (RFC 8693).
    AccessToken,
    /// The refresh token, with the API named (RFC 8707, section 2.2).
    RefreshToken,
}

/// A token for one API.
#[derive(Clone, PartialEq, Message)]
pub struct ApiToken {
    /// What it was requested for.
    #[prost(message, required, tag = "1")]
    pub target: ApiTarget,
    /// The token.
    #[prost(message, required, tag = "2")]
    pub access: AccessToken,
    /// The scope granted.
    #[prost(message, required, tag = "3")]
    pub scope: Scope,
    /// The version of the session that held it first: tells it from the one before.
    #[prost(uint64, tag = "4")]
    pub(crate) version: u64,
}

/// The API tokens of a session, the oldest first.
#[derive(Clone, PartialEq, Message)]
pub struct ApiTokens(#[prost(message, repeated, tag = "1")] Vec<ApiToken>);

impl ApiTokens {
    /// All, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ApiToken> {
        self.0.iter()
    }

    /// The one for a target.
    pub(crate) fn get(&self, target: &ApiTarget) -> Option<&ApiToken> {
        self.0.iter().find(|token| token.target == *target)
    }

    /// Takes one up in the place of that for the same target.
    pub(crate) fn put(&mut self, token: ApiToken, now_ms: u64) {
        self.0
            .retain(|held| held.target != token.target && now_ms < held.access.expires_at_ms);
        self.0.push(token);
        if self.0.len() > MAX_API_TOKENS {
            self.0.remove(0);
        }
    }

    /// Lets the one for a target go.
    pub(crate) fn remove(&mut self, target: &ApiTarget) {
        self.0.retain(|held| held.target != *target);
    }

    /// Lets the oldest go, but never the newest; false if there is no other.
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
    /// The token to hand out, unless the provider granted less than was requested.
    pub(crate) fn granted(&self) -> Result<GrantedToken, TokenRefusal> {
        self.scope.check(&self.target.scopes)?;
        Ok(GrantedToken {
            access: self.access.clone(),
            scope: self.scope.clone(),
        })
    }
}
