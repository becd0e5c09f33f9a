//! Errors of reading and writing sessions and of their tokens.

use chassis::random::NoRandomness;

use crate::session::TokenRefusal;
use crate::store::StoreError;
use crate::vault::{KeyId, SealError};

/// Why a use case failed. Only `grpc::status` maps it to the wire.
#[derive(Debug, thiserror::Error)]
pub enum SessionsError {
    /// There is no such session: it never was, it expired or it was ended.
    #[error("there is no such session")]
    Missing,
    /// No access token is available.
    #[error(transparent)]
    Refused(#[from] TokenRefusal),
    /// The tokens were not refreshed.
    #[error(transparent)]
    Tokens(#[from] TokenRefreshError),
    /// A field of the request is malformed or out of range.
    #[error("{field}: {problem}")]
    Invalid {
        /// The field's name on the wire.
        field: &'static str,
        /// The mistake and the expected form, without the value.
        problem: &'static str,
    },
    /// Another write came first.
    #[error("the session has changed since it was read")]
    StaleVersion,
    /// The session is bound to another key.
    #[error("the session is bound to another device key")]
    BoundToAnotherKey,
    /// The request id was used with another payload.
    #[error("the request_id was used before with another request")]
    RequestIdReused,
    /// The session would be larger than the service stores.
    #[error("the session would take more than {limit} bytes")]
    TooLarge {
        /// The bound, in bytes.
        limit: usize,
    },
    /// No transmitter of security events, or of revocation requests, is configured.
    #[error("no transmitter may send this: see SESSION_SIGNALS")]
    ListensToNobody,
    /// The service for operators is open to no caller.
    #[error(
        "the service for operators is off: name its methods in SESSION_CALLERS, or set SESSION_OPERATOR_SEARCH"
    )]
    OperatorsOff,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stored record cannot be opened, or a record cannot be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The operating system gave no random bytes.
    #[error("no session ID can be made")]
    NoRandomness(#[from] NoRandomness),
    /// A fault of the service, which is already logged.
    #[error("internal error of the service")]
    Internal,
}

impl SessionsError {
    /// Whether a retry may succeed: the store is away, or this replica lacks a key that it receives soon.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Store(StoreError::Unavailable(_) | StoreError::Full)
                | Self::StaleVersion
                | Self::Seal(SealError::UnknownKey(_))
        )
    }
}

/// Why tokens were not refreshed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefreshError {
    /// The session ended meanwhile.
    #[error("the session ended")]
    Missing,
    /// The provider permanently rejected the refresh token.
    #[error("the provider refused to refresh the tokens")]
    Refused,
    /// The provider rejected the request or gave no usable answer; the refresh token may still be valid.
    #[error("the provider refused the request for new tokens")]
    Rejected,
    /// The provider issues no token for this audience or resource.
    #[error("the provider issues no token for this audience or resource")]
    TargetRefused,
    /// The provider issues no token with this scope.
    #[error("the provider issues no token with this scope")]
    ScopeRefused,
    /// The provider rejected the exchange of the access token, or its answer is unusable.
    #[error("the provider refused to exchange the access token")]
    ExchangeRefused,
    /// The provider does not accept the session's access token for an exchange.
    #[error("the provider does not accept the access token for an exchange")]
    SubjectRefused,
    /// The ID token has expired, and a refresh brought no new one.
    #[error("the ID token has expired, and a refresh brought no new one: sign in again")]
    IdTokenExpired,
    /// The provider is unreachable or has not answered yet; a retry may succeed.
    #[error("the identity provider cannot be reached")]
    ProviderUnavailable,
    /// The store is unreachable or full; a retry may succeed.
    #[error("the session store cannot be reached")]
    StoreUnavailable,
    /// The session is sealed with a key this replica does not have; another replica may have it.
    #[error("the session needs key {0}, which this replica does not have")]
    UnknownKey(KeyId),
    /// A fault of the service, which is logged.
    #[error("the refresh failed because of an internal error")]
    Internal,
}

impl TokenRefreshError {
    /// Whether the provider rejected the API, the scope or the exchange, and not the session.
    pub(crate) fn is_about_target(self) -> bool {
        matches!(
            self,
            Self::TargetRefused
                | Self::ScopeRefused
                | Self::ExchangeRefused
                | Self::SubjectRefused
                | Self::IdTokenExpired
        )
    }

    /// Whether the earlier tokens stay usable: they are served until they expire.
    pub(crate) fn keeps_tokens(self) -> bool {
        matches!(
            self,
            Self::Rejected | Self::ProviderUnavailable | Self::StoreUnavailable
        )
    }
}
