//! Maps failures to the wire. No other file of this service maps failures to reasons.

use session_proto::error::status;
use session_proto::v1::ErrorReason;
use tonic::{Code, Status};

use crate::callers::AccessDenied;
use crate::session::TokenRefusal;
use crate::session_store::SealError;
use crate::sessions::{SessionsError, TokenRefreshError};
use crate::store::StoreError;

/// The text for callers about a fault of the service: its log has the causes.
const FAULT: &str = "internal error of the session service; its log has the cause";

/// The reason and metadata of a failure, without internal details.
fn describe(error: &SessionsError) -> (ErrorReason, Option<(&'static str, String)>) {
    use ErrorReason::*;
    let reason = match error {
        SessionsError::Refused(TokenRefusal::InsufficientScope(missing)) => {
            return (ErrInsufficientScope, Some(("scopes", missing.join(" "))));
        }
        SessionsError::Invalid { field, .. } => {
            return (ErrInvalidArgument, Some(("field", (*field).to_owned())));
        }
        SessionsError::TooLarge { limit } => {
            return (ErrSessionTooLarge, Some(("limitBytes", limit.to_string())));
        }
        SessionsError::Seal(SealError::UnknownKey(key))
        | SessionsError::Tokens(TokenRefreshError::UnknownKey(key)) => {
            return (ErrUnknownEncryptionKey, Some(("key", key.to_string())));
        }
        SessionsError::Missing | SessionsError::Tokens(TokenRefreshError::Missing) => ErrMissingSession,
        SessionsError::Refused(TokenRefusal::MissingAccessToken) => ErrMissingAccessToken,
        SessionsError::Refused(TokenRefusal::MissingRefreshToken) => ErrMissingRefreshToken,
        SessionsError::Refused(TokenRefusal::ExpiredAccessToken | TokenRefusal::ExpiredIdToken)
        | SessionsError::Tokens(TokenRefreshError::IdTokenExpired) => ErrExpiredAccessToken,
        SessionsError::Refused(TokenRefusal::RefusedBefore | TokenRefusal::SignInOwed)
        | SessionsError::Tokens(TokenRefreshError::Refused | TokenRefreshError::Rejected) => {
            ErrFailedRefreshGrant
        }
        SessionsError::Tokens(TokenRefreshError::TargetRefused) => ErrInvalidTarget,
        // A use case reports the rejected scopes itself.
        SessionsError::Tokens(TokenRefreshError::ScopeRefused) => ErrInsufficientScope,
        SessionsError::Refused(TokenRefusal::MissingIdToken)
        | SessionsError::Tokens(TokenRefreshError::ExchangeRefused | TokenRefreshError::SubjectRefused) => {
            ErrFailedTokenExchange
        }
        SessionsError::Tokens(TokenRefreshError::ProviderUnavailable) => ErrProviderUnavailable,
        SessionsError::StaleVersion => ErrStaleVersion,
        SessionsError::BoundToAnotherKey => ErrBoundToAnotherKey,
        SessionsError::RequestIdReused => ErrRequestIdReused,
        SessionsError::ListensToNobody | SessionsError::OperatorsOff => ErrUnimplemented,
        SessionsError::Store(StoreError::Unavailable(_))
        | SessionsError::Tokens(TokenRefreshError::StoreUnavailable) => ErrStoreUnavailable,
        SessionsError::Store(StoreError::Full) => ErrOverloaded,
        SessionsError::Seal(_)
        | SessionsError::Store(StoreError::Corrupt)
        | SessionsError::NoRandomness(_)
        | SessionsError::Tokens(TokenRefreshError::Internal)
        | SessionsError::Internal => ErrInternal,
    };
    (reason, None)
}

/// The reason of a failure.
pub(super) fn reason(error: &SessionsError) -> ErrorReason {
    describe(error).0
}

/// The status of a failure.
pub(super) fn of(error: &SessionsError) -> Status {
    let (reason, metadata) = describe(error);
    let words = match reason {
        ErrorReason::ErrInternal => FAULT.to_owned(),
        _ => error.to_string(),
    };
    status(
        reason,
        words,
        metadata.map(|(name, value)| (name.to_owned(), value)),
    )
}

/// The deadline passed before the answer.
pub(super) fn too_late() -> Status {
    status(
        ErrorReason::ErrDeadlineExceeded,
        "the deadline passed before the answer was ready",
        None,
    )
}

/// The caller has too much waiting: unread answers, or calls in flight.
pub(super) fn overloaded() -> Status {
    status(
        ErrorReason::ErrOverloaded,
        "too much is waiting for this caller: it has to read its answers",
        None,
    )
}

/// The caller has no right to call.
pub(super) fn access_denied(why: AccessDenied) -> Status {
    match why {
        AccessDenied::Unknown => status(
            ErrorReason::ErrUnknownCaller,
            "this service does not know the caller's identity",
            None,
        ),
        AccessDenied::NotAllowed => status(
            ErrorReason::ErrCallerNotAllowed,
            "this caller may not call this method",
            None,
        ),
    }
}

/// Earlier sessions have filled the answer.
pub(super) fn no_room_in_answer() -> Status {
    status(
        ErrorReason::ErrOverloaded,
        "the earlier sessions have filled the answer: request this one in another call",
        None,
    )
}

/// The prefix of the framework's errors about the flag before a message.
const WRONG_FLAG: &str = "protocol error: received message with ";

/// Adds the missing reason to a failure of the framework; `None` if it needs no reason.
pub(super) fn explained(bare: &Status) -> Option<Status> {
    let reason = match bare.code() {
        Code::Unimplemented => ErrorReason::ErrUnimplemented,
        Code::OutOfRange | Code::ResourceExhausted => ErrorReason::ErrRequestTooLarge,
        // Our own faults carry details; the others come from parsing the message.
        Code::Internal | Code::InvalidArgument => ErrorReason::ErrMalformedRequest,
        Code::DeadlineExceeded => ErrorReason::ErrDeadlineExceeded,
        _ => return None,
    };
    let words = match bare.message() {
        "" => "there is no such method",
        words => words,
    };
    let explained = status(reason, words, None);
    // A frame whose flag does not fit its call is INTERNAL (gRPC, "Compression"): the message was never read.
    let is_frame = bare.code() == Code::Internal && words.contains(WRONG_FLAG);
    Some(if is_frame {
        let details = explained.details().to_vec().into();
        Status::with_details(Code::Internal, words, details)
    } else {
        explained
    })
}
