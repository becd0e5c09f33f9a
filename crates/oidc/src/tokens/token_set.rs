//! The tokens of a successful grant.

use std::fmt;

/// Tokens of a code exchange.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSet {
    /// Access token.
    pub access_token: String,
    /// Token type: `Bearer`, or `DPoP` where tokens are bound to a key.
    pub token_type: String,
    /// Granted scope; the requested one if the response has none.
    pub scope: String,
    /// When the access token expires, in seconds since the Unix epoch.
    pub expires_at: u64,
    /// Refresh token, when one was issued.
    pub refresh_token: Option<String>,
    /// ID token, not yet validated.
    pub id_token: String,
}

/// Tokens of a refresh grant. `None` keeps the earlier value.
#[derive(Clone, PartialEq, Eq)]
pub struct RefreshedTokens {
    /// Access token.
    pub access_token: String,
    /// Token type: `Bearer`, or `DPoP` where tokens are bound to a key.
    pub token_type: String,
    /// Granted scope, if the response has it.
    pub scope: Option<String>,
    /// When the access token expires, in seconds since the Unix epoch.
    pub expires_at: u64,
    /// The access token's lifetime when the answer arrived, in seconds.
    pub lifetime_secs: u64,
    /// The rotated refresh token; `None` keeps the old one.
    pub refresh_token: Option<String>,
    /// A new ID token, not yet validated; `None` keeps the old one.
    pub id_token: Option<String>,
}

impl fmt::Debug for TokenSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSet")
            .field("scope", &self.scope)
            .field("expires_at", &self.expires_at)
            .field("has_refresh_token", &self.refresh_token.is_some())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RefreshedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefreshedTokens")
            .field("scope", &self.scope)
            .field("expires_at", &self.expires_at)
            .field("has_refresh_token", &self.refresh_token.is_some())
            .field("has_id_token", &self.id_token.is_some())
            .finish_non_exhaustive()
    }
}
