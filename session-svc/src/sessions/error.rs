//! Why a use case failed.

use chassis::random::NoRandomness;

use crate::keeper::{KeeperError, KeyId, SealError};
use crate::refresh::ports::TokenRefreshError;
use crate::session::TokenRefusal;
use crate::store::StoreError;

/// Why a use case failed; what it means on the wire is said in `grpc::status` alone.
#[derive(Debug, thiserror::Error)]
pub enum SessionsError {
    /// There is no such session: it never was, it expired or it was ended.
    #[error("there is no such session")]
    Missing,
    /// No access token can be handed out.
    #[error("no access token can be handed out")]
    Refused(TokenRefusal),
    /// The provider refused the refresh grant.
    #[error("the provider refused to refresh the tokens")]
    RefreshRefused,
    /// The provider issues no token for this audience or resource.
    #[error("the provider issues no token for this audience or resource")]
    TargetRefused,
    /// The provider issues no token with the scope required.
    #[error("the provider issues no token with this scope")]
    ScopeRefused,
    /// The provider refused to exchange the access token.
    #[error("the provider refused to exchange the access token")]
    ExchangeRefused,
    /// A field of the request is malformed or out of range.
    #[error("{field}: {problem}")]
    Invalid {
        /// The field's name on the wire.
        field: &'static str,
        /// What is wrong and what is expected, without the value.
        problem: &'static str,
    },
    /// The session changed since the version the caller holds.
    #[error("the session has changed since the version given")]
    StaleVersion,
    /// The session is bound to another key.
    #[error("the session is bound to another key of a device")]
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
    /// No transmitter of security events is listened to.
    #[error("the service listens to no transmitter of security events: set SESSION_SIGNALS")]
    ListensToNobody,
    /// The store cannot be reached.
    #[error("the session store cannot be reached")]
    StoreUnavailable(#[source] StoreError),
    /// The provider cannot be reached.
    #[error("the identity provider cannot be reached")]
    ProviderUnavailable,
    /// The store holds as many sessions as it may.
    #[error("the session store is full")]
    Full,
    /// A record of the store is unreadable.
    #[error("a stored record cannot be read")]
    Unreadable(#[source] SealError),
    /// A record is sealed with a key this replica does not have. Another replica may have it.
    #[error("a stored record needs key {0}, which this replica does not have")]
    UnknownKey(KeyId),
    /// The store gave something that is no record.
    #[error("the store gave something that is no record")]
    CorruptStore(#[source] StoreError),
    /// There is no randomness.
    #[error("no session ID can be made")]
    NoRandomness(#[source] NoRandomness),
    /// The service itself is at fault, and has logged why.
    #[error("the service is at fault")]
    Internal,
}

impl From<StoreError> for SessionsError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::StoreUnavailable(error),
            StoreError::Full => Self::Full,
            StoreError::Corrupt => Self::CorruptStore(error),
        }
    }
}

impl From<SealError> for SessionsError {
    fn from(error: SealError) -> Self {
        match error {
            SealError::UnknownKey(key) => Self::UnknownKey(key),
            error => Self::Unreadable(error),
        }
    }
}

impl From<KeeperError> for SessionsError {
    fn from(error: KeeperError) -> Self {
        match error {
            KeeperError::Missing => Self::Missing,
            KeeperError::StaleVersion => Self::StaleVersion,
            KeeperError::TooLarge { limit } => Self::TooLarge { limit },
            KeeperError::Store(error) => error.into(),
            KeeperError::Seal(error) => error.into(),
        }
    }
}

impl From<TokenRefreshError> for SessionsError {
    fn from(error: TokenRefreshError) -> Self {
        match error {
            TokenRefreshError::Missing => Self::Missing,
            TokenRefreshError::Refused | TokenRefreshError::Rejected => Self::RefreshRefused,
            TokenRefreshError::TargetRefused => Self::TargetRefused,
            TokenRefreshError::ScopeRefused => Self::ScopeRefused,
            TokenRefreshError::ExchangeRefused | TokenRefreshError::SubjectRefused => Self::ExchangeRefused,
            TokenRefreshError::ProviderUnavailable => Self::ProviderUnavailable,
            TokenRefreshError::StoreUnavailable => {
                Self::StoreUnavailable(StoreError::Unavailable(Box::new(error)))
            }
            TokenRefreshError::UnknownKey(key) => Self::UnknownKey(key),
            TokenRefreshError::Internal => Self::Internal,
        }
    }
}
