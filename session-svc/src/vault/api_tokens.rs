//! How tokens for single APIs are written down within a session.

use prost::Message;

use super::jwt::KeptToken;
use super::wire::{lifetime_from_kept, lifetime_to_kept, type_from_kept, type_to_kept};
use crate::session::{AccessToken, ApiTarget, ApiToken, ApiTokens, Scope};

/// A token for one API.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeptApiToken {
    #[prost(string, tag = "1")]
    audience: String,
    #[prost(string, tag = "2")]
    resource: String,
    /// As requested.
    #[prost(string, repeated, tag = "3")]
    scopes: Vec<String>,
    #[prost(message, optional, tag = "4")]
    access_token: Option<KeptToken>,
    /// Empty means Bearer.
    #[prost(string, tag = "5")]
    token_type: String,
    /// Counted from the session's beginning.
    #[prost(sint64, tag = "6")]
    expires_after_ms: i64,
    /// As granted.
    #[prost(string, tag = "7")]
    scope: String,
    #[prost(uint64, tag = "8")]
    version: u64,
    /// 0 for a long or unknown one.
    #[prost(uint64, tag = "9")]
    lifetime_secs: u64,
}

/// As they are written; `since` gives the distance of a time to the session's beginning.
pub(super) fn kept_api_tokens(tokens: &ApiTokens, since: impl Fn(u64) -> i64) -> Vec<KeptApiToken> {
    let kept = |token: &ApiToken| KeptApiToken {
        audience: token.target.audience().to_owned(),
        resource: token.target.resource().to_owned(),
        scopes: token.target.scopes().to_vec(),
        access_token: Some(KeptToken::from(&token.access.value)),
        token_type: type_to_kept(&token.access),
        expires_after_ms: since(token.access.expires_at_ms),
        scope: token.scope.text(),
        version: token.version,
        lifetime_secs: lifetime_to_kept(&token.access),
    };
    tokens.iter().map(kept).collect()
}

/// As they were written; `at` gives the time at a distance to the session's beginning.
pub(super) fn api_tokens_of_kept(kept: Vec<KeptApiToken>, at: impl Fn(i64) -> u64) -> ApiTokens {
    let read = |token: KeptApiToken| {
        Some(ApiToken {
            target: ApiTarget::new(&token.audience, &token.resource, &token.scopes),
            access: AccessToken {
                value: token.access_token?.into_token(),
                token_type: type_from_kept(token.token_type),
                expires_at_ms: at(token.expires_after_ms),
                lifetime_ms: lifetime_from_kept(token.lifetime_secs),
            },
            scope: Scope::of_text(token.scope),
            version: token.version,
        })
    };
    ApiTokens::of_stored(kept.into_iter().filter_map(read).collect())
}
