//! Token revocation (RFC 7009).

/// Which kind of token is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenHint {
    /// `access_token`.
    AccessToken,
    /// `refresh_token`.
    RefreshToken,
}

/// What became of a revocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// The provider took it; also when it did not know the token.
    Done,
    /// The provider offers no revocation.
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
