//! Failures of calls, and what a caller can do about them.

use std::collections::HashMap;

use tonic::{Code, Status};

use crate::error;
use crate::v1::ErrorReason;

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", reason.as_str_name())]
pub struct SessionError {
    /// The reason; programs decide by it.
    pub reason: ErrorReason,
    /// The message for people. It may be logged, but not shown to a browser.
    pub message: String,
    /// Details that the reason defines, such as "scopes" or "field".
    pub metadata: HashMap<String, String>,
}

/// What a caller can do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Retry the same call a little later, if it can be repeated. A dependency is down, nothing was lost, and
    /// the state of the session is unknown. Never treat it as "signed out".
    TryAgain,
    /// Read the session, apply the change to its new state, and send that.
    ReadAgain,
    /// The user has to sign in (again): there is no session, or none with a working token.
    SignIn,
    /// The user has to grant more: metadata "scopes" has the missing ones.
    GrantScopes,
    /// Change the program or its permissions: the same call fails again.
    Mistake,
}

impl SessionError {
    /// The advice for this failure.
    #[must_use]
    pub fn advice(&self) -> Advice {
        match (self.reason, error::code(self.reason)) {
            (ErrorReason::ErrInsufficientScope, _) => Advice::GrantScopes,
            (ErrorReason::ErrRequestTooLarge, _) => Advice::Mistake,
            (_, Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted | Code::Internal) => {
                Advice::TryAgain
            }
            (_, Code::Aborted) => Advice::ReadAgain,
            (_, Code::NotFound | Code::FailedPrecondition) => Advice::SignIn,
            _ => Advice::Mistake,
        }
    }

    /// Whether the advice is to retry.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.advice() == Advice::TryAgain
    }

    pub(super) fn unreachable() -> Self {
        Self::away("the session service cannot be reached")
    }

    pub(super) fn late() -> Self {
        Self::away("the session service did not answer in time")
    }

    pub(super) fn silent() -> Self {
        Self::away("the session service's heartbeat is missing")
    }

    fn away(message: &str) -> Self {
        Self::of(ErrorReason::ErrSessionServiceUnavailable, message)
    }

    pub(super) fn of(reason: ErrorReason, message: &str) -> Self {
        Self {
            reason,
            message: message.to_owned(),
            metadata: HashMap::new(),
        }
    }
}

impl From<Status> for SessionError {
    /// A status without our reason comes from the transport or a proxy. It does not describe the session
    /// (gRFC A54), so it means that the service was not reached.
    fn from(status: Status) -> Self {
        match error::reason_of(&status) {
            Some(reason) => Self {
                reason,
                message: status.message().to_owned(),
                metadata: error::metadata_of(&status),
            },
            // tonic itself uses this code for one case: an answer beyond the limit.
            None if status.code() == Code::OutOfRange => Self::of(
                ErrorReason::ErrInternal,
                "the answer is larger than this client reads",
            ),
            None => Self::unreachable(),
        }
    }
}
