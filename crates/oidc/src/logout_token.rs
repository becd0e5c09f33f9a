//! Logout tokens (OpenID Connect Back-Channel Logout 1.0 sections 2.4 and 2.6).
//!
//! Deliberately absent: the guard against replays. It needs memory all replicas share, so the caller keeps
//! `jti` until `exp`.

/// A validated logout token; at least one of `sub` and `sid` is present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogoutToken {
    /// Issuer.
    pub iss: String,
    /// Subject whose sessions end.
    pub sub: Option<String>,
    /// The provider's session that ends.
    pub sid: Option<String>,
    /// Unique identifier of the token.
    pub jti: String,
    /// When it was issued, in seconds since the Unix epoch.
    pub iat: u64,
    /// When it expires, in seconds since the Unix epoch.
    pub exp: u64,
}
