//! Token revocation (RFC 7009).

/// The kind of token to revoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenHint {
    /// `access_token`.
    AccessToken,
    /// `refresh_token`.
    RefreshToken,
}

/// The result of a revocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevocationResult {
    /// The provider accepted it, even if it did not know the token.
    Done,
    /// The provider has no revocation endpoint.
    NotOffered,
}

impl TokenHint {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AccessToken => "access_token",
            Self::RefreshToken => "refresh_token",
        }
    }
}
