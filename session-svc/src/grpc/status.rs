//! What a failure means on the wire. The only file of this service that maps failures to reasons.

use session_proto::error::status;
use session_proto::v1::ErrorReason;
use tonic::{Code, Status};

use crate::callers::AccessDenied;
use crate::session::access::TokenRefusal;
use crate::sessions::SessionsError;

/// The reason of a failure.
pub(super) fn reason(error: &SessionsError) -> ErrorReason {
    match error {
        SessionsError::Missing => ErrorReason::ErrMissingSession,
        SessionsError::Refused(refusal) => match refusal {
            TokenRefusal::MissingAccessToken => ErrorReason::ErrMissingAccessToken,
            TokenRefusal::InsufficientScope(_) => ErrorReason::ErrInsufficientScope,
            TokenRefusal::MissingRefreshToken => ErrorReason::ErrMissingRefreshToken,
            TokenRefusal::ExpiredAccessToken => ErrorReason::ErrExpiredAccessToken,
            TokenRefusal::RefusedBefore | TokenRefusal::SignInOwed => ErrorReason::ErrFailedRefreshGrant,
        },
        SessionsError::RefreshRefused => ErrorReason::ErrFailedRefreshGrant,
        SessionsError::TargetRefused => ErrorReason::ErrInvalidTarget,
        // Which scopes it is, a use case tells as a refusal.
        SessionsError::ScopeRefused => ErrorReason::ErrInsufficientScope,
        SessionsError::ExchangeRefused => ErrorReason::ErrFailedTokenExchange,
        SessionsError::Invalid { .. } => ErrorReason::ErrInvalidArgument,
        SessionsError::StaleVersion => ErrorReason::ErrStaleVersion,
        SessionsError::BoundToAnotherKey => ErrorReason::ErrBoundToAnotherKey,
        SessionsError::RequestIdReused => ErrorReason::ErrRequestIdReused,
        SessionsError::TooLarge { .. } => ErrorReason::ErrSessionTooLarge,
        SessionsError::ListensToNobody => ErrorReason::ErrUnimplemented,
        SessionsError::StoreUnavailable(_) => ErrorReason::ErrStoreUnavailable,
        SessionsError::ProviderUnavailable => ErrorReason::ErrProviderUnavailable,
        SessionsError::Full => ErrorReason::ErrOverloaded,
        SessionsError::UnknownKey(_) => ErrorReason::ErrUnknownEncryptionKey,
        SessionsError::Unreadable(_)
        | SessionsError::CorruptStore(_)
        | SessionsError::NoRandomness(_)
        | SessionsError::Internal => ErrorReason::ErrInternal,
    }
}

/// The status of a failure: what the caller may know, and nothing of the inside.
pub(super) fn of(error: &SessionsError) -> Status {
    let metadata = match error {
        SessionsError::Refused(TokenRefusal::InsufficientScope(missing)) => {
            Some(("scopes", missing.join(" ")))
        }
        SessionsError::Invalid { field, .. } => Some(("field", (*field).to_owned())),
        SessionsError::TooLarge { limit } => Some(("limitBytes", limit.to_string())),
        SessionsError::UnknownKey(key) => Some(("key", key.to_string())),
        SessionsError::Missing
        | SessionsError::Refused(_)
        | SessionsError::RefreshRefused
        | SessionsError::TargetRefused
        | SessionsError::ScopeRefused
        | SessionsError::ExchangeRefused
        | SessionsError::StaleVersion
        | SessionsError::ListensToNobody
        | SessionsError::BoundToAnotherKey
        | SessionsError::RequestIdReused
        | SessionsError::StoreUnavailable(_)
        | SessionsError::ProviderUnavailable
        | SessionsError::Full
        | SessionsError::Unreadable(_)
        | SessionsError::CorruptStore(_)
        | SessionsError::NoRandomness(_)
        | SessionsError::Internal => None,
    };
    let metadata = metadata.map(|(name, value)| (name.to_owned(), value));
    status(reason(error), message(error), metadata)
}

/// The deadline passed first.
pub(super) fn too_late() -> Status {
    status(
        ErrorReason::ErrDeadlineExceeded,
        "the deadline passed before the answer was there",
        None,
    )
}

/// The caller has more waiting than it may: answers it has not read, or calls in flight.
pub(super) fn overloaded() -> Status {
    status(
        ErrorReason::ErrOverloaded,
        "more is waiting for this caller than is kept for one: it has to read its answers",
        None,
    )
}

/// The caller may not call.
pub(super) fn access_denied(why: AccessDenied) -> Status {
    match why {
        AccessDenied::Unknown => status(
            ErrorReason::ErrUnknownCaller,
            "the call came without an identity this service knows",
            None,
        ),
        AccessDenied::NotAllowed => status(
            ErrorReason::ErrCallerNotAllowed,
            "this caller may not call this method",
            None,
        ),
    }
}

/// The sessions before this one have filled the answer.
pub(super) fn no_room_in_answer() -> Status {
    status(
        ErrorReason::ErrOverloaded,
        "the sessions before it have filled the answer: ask for it by another call",
        None,
    )
}

/// What all of the framework's words about the flag before a message begin with.
const WRONG_FLAG: &str = "protocol error: received message with ";

/// A failure of the framework with the reason it lacks; none for what needs no reason.
pub(super) fn explained(bare: &Status) -> Option<Status> {
    let reason = match bare.code() {
        Code::Unimplemented => ErrorReason::ErrUnimplemented,
        Code::OutOfRange | Code::ResourceExhausted => ErrorReason::ErrRequestTooLarge,
        // Our own faults carry details; what is left comes from reading the message.
        Code::Internal | Code::InvalidArgument => ErrorReason::ErrMalformedRequest,
        Code::DeadlineExceeded => ErrorReason::ErrDeadlineExceeded,
        _ => return None,
    };
    let words = match bare.message() {
        "" => "there is no such method",
        words => words,
    };
    let explained = status(reason, words, None);
    // A frame whose flag says what its call does not is INTERNAL (gRPC, "Compression"): the message was never read.
    let is_frame = bare.code() == Code::Internal && words.contains(WRONG_FLAG);
    Some(if is_frame {
        let details = explained.details().to_vec().into();
        Status::with_details(Code::Internal, words, details)
    } else {
        explained
    })
}

fn message(error: &SessionsError) -> String {
    match error {
        SessionsError::Refused(refusal) => match refusal {
            TokenRefusal::MissingAccessToken => "the session holds no access token".to_owned(),
            TokenRefusal::InsufficientScope(missing) => format!("not granted: {}", missing.join(" ")),
            TokenRefusal::MissingRefreshToken => "the session holds no refresh token".to_owned(),
            TokenRefusal::ExpiredAccessToken => {
                "the access token has expired and cannot be refreshed".to_owned()
            }
            TokenRefusal::RefusedBefore => {
                "the provider refused to refresh the tokens: sign in again".to_owned()
            }
            TokenRefusal::SignInOwed => "a security event demands a sign-in: sign in again".to_owned(),
        },
        SessionsError::Unreadable(_)
        | SessionsError::CorruptStore(_)
        | SessionsError::NoRandomness(_)
        | SessionsError::Internal => "the session service is at fault; its log says why".to_owned(),
        SessionsError::Missing
        | SessionsError::RefreshRefused
        | SessionsError::TargetRefused
        | SessionsError::ScopeRefused
        | SessionsError::ExchangeRefused
        | SessionsError::Invalid { .. }
        | SessionsError::StaleVersion
        | SessionsError::ListensToNobody
        | SessionsError::BoundToAnotherKey
        | SessionsError::RequestIdReused
        | SessionsError::TooLarge { .. }
        | SessionsError::StoreUnavailable(_)
        | SessionsError::ProviderUnavailable
        | SessionsError::UnknownKey(_)
        | SessionsError::Full => error.to_string(),
    }
}
