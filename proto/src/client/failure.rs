//! Why a call failed, in the caller's terms.

use std::collections::HashMap;

use tonic::{Code, Status};

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

/// What a caller can do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Make the same call again a little later, if it may be repeated: something behind it is down, nothing was lost, and
    /// nothing is known about the session. Never take it for "signed out".
    TryAgain,
    /// Read the session, apply the change to what it is now, and send that.
    ReadAgain,
    /// The person has to sign in (again): there is no session, or none that has a working token.
    SignIn,
    /// The person has to grant more: metadata "scopes" names what is missing.
    GrantScopes,
    /// Change the program, or what it is configured to be allowed: the same call fails again.
    Mistake,
}

impl SessionError {
    /// What to do about it.
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

    /// Whether the advice is to try again.
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
    /// A status without a reason of ours comes from the transport or from something between us and the service: it
    /// says nothing about the session (gRFC A54), so it counts as the service not being reached.
    fn from(status: Status) -> Self {
        match error::reason_of(&status) {
            Some(reason) => Self {
                reason,
                message: status.message().to_owned(),
                metadata: error::metadata_of(&status),
            },
            // The one thing tonic itself says with this code: an answer beyond the limit.
            None if status.code() == Code::OutOfRange => Self::of(
                ErrorReason::ErrInternal,
                "the answer is larger than this client reads",
            ),
            None => Self::unreachable(),
        }
    }
}
