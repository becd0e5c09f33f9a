//! Why a call failed, in the caller's terms.

use std::collections::HashMap;

use tonic::Status;

use crate::error;
use crate::v1::ErrorReason;

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", reason.as_str_name())]
pub struct SessionError {
    /// Why; programs decide by it.
    pub reason: ErrorReason,
    /// The same for people; it may be logged, not shown to a browser.
    pub message: String,
    /// Details the reason defines, such as "scopes" or "field".
    pub metadata: HashMap<String, String>,
}

impl SessionError {
    /// Whether the same call may succeed a moment later: something behind the call is down, nothing was lost, and
    /// nothing is known about the session.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        match self.reason {
            ErrorReason::ErrStoreUnavailable
            | ErrorReason::ErrProviderUnavailable
            | ErrorReason::ErrSessionServiceUnavailable
            | ErrorReason::ErrDeadlineExceeded
            | ErrorReason::ErrOverloaded
            | ErrorReason::ErrInternal
            | ErrorReason::ErrUnspecified => true,
            ErrorReason::ErrMissingSession
            | ErrorReason::ErrMissingAccessToken
            | ErrorReason::ErrInsufficientScope
            | ErrorReason::ErrMissingRefreshToken
            | ErrorReason::ErrExpiredAccessToken
            | ErrorReason::ErrFailedRefreshGrant
            | ErrorReason::ErrInvalidArgument
            | ErrorReason::ErrStaleVersion
            | ErrorReason::ErrRequestIdReused
            | ErrorReason::ErrSessionTooLarge
            | ErrorReason::ErrUnknownCaller
            | ErrorReason::ErrCallerNotAllowed
            | ErrorReason::ErrCsrf => false,
        }
    }

    pub(super) fn unreachable() -> Self {
        Self::of(
            ErrorReason::ErrSessionServiceUnavailable,
            "the session service cannot be reached",
        )
    }

    pub(super) fn late() -> Self {
        Self::of(
            ErrorReason::ErrSessionServiceUnavailable,
            "the session service did not answer in time",
        )
    }

    fn of(reason: ErrorReason, message: &str) -> Self {
        Self {
            reason,
            message: message.to_owned(),
            metadata: HashMap::new(),
        }
    }
}

impl From<Status> for SessionError {
    /// A status without a reason of ours comes from the transport or from something between us and the service: it
    /// says nothing about the session (gRFC A54), so it counts as the service not being reached.
    fn from(status: Status) -> Self {
        match error::reason_of(&status) {
            Some(reason) => Self {
                reason,
                message: status.message().to_owned(),
                metadata: error::metadata_of(&status),
            },
            None => Self::unreachable(),
        }
    }
}
