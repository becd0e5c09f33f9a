//! Why a session could not be read or written.

use crate::store::StoreError;
use crate::vault::SealError;

/// Why a session could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// There is no such session: it never was, it expired or it was ended.
    #[error("there is no such session")]
    Missing,
    /// Other writes came first, again and again.
    #[error("the session has changed since it was read")]
    StaleVersion,
    /// The session would be larger than the service stores.
    #[error("the session would take more than {limit} bytes")]
    TooLarge {
        /// The bound, in bytes.
        limit: usize,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is stored cannot be opened, or nothing can be sealed.
    #[error("a stored record cannot be read")]
    Seal(#[from] SealError),
}

impl KeeperError {
    /// Whether another try may succeed: the store is away, or another replica has written with a key that this one receives soon.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Store(StoreError::Unavailable(_) | StoreError::Full)
                | Self::StaleVersion
                | Self::Seal(SealError::UnknownKey(_))
        )
    }
}
