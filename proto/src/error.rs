//! Failures on the wire: a canonical status with one `google.rpc.ErrorInfo` (AIP-193).
//!
//! This file is the only place that maps reasons to gRPC status codes.

use std::collections::HashMap;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::v1::ErrorReason;

/// The domain of every reason (`google.rpc.ErrorInfo.domain`).
const DOMAIN: &str = "session.v1";

/// The canonical status code of a reason.
#[must_use]
pub fn code(reason: ErrorReason) -> Code {
    match reason {
        ErrorReason::ErrMissingSession => Code::NotFound,
        ErrorReason::ErrMissingAccessToken
        | ErrorReason::ErrMissingRefreshToken
        | ErrorReason::ErrExpiredAccessToken
        | ErrorReason::ErrFailedRefreshGrant
        | ErrorReason::ErrBoundToAnotherKey => Code::FailedPrecondition,
        ErrorReason::ErrInsufficientScope
        | ErrorReason::ErrInvalidTarget
        | ErrorReason::ErrFailedTokenExchange
        | ErrorReason::ErrCallerNotAllowed
        | ErrorReason::ErrCsrf => Code::PermissionDenied,
        ErrorReason::ErrInvalidArgument
        | ErrorReason::ErrSessionTooLarge
        | ErrorReason::ErrMalformedRequest => Code::InvalidArgument,
        ErrorReason::ErrStaleVersion => Code::Aborted,
        ErrorReason::ErrRequestIdReused => Code::AlreadyExists,
        ErrorReason::ErrStoreUnavailable
        | ErrorReason::ErrUnknownEncryptionKey
        | ErrorReason::ErrProviderUnavailable
        | ErrorReason::ErrSessionServiceUnavailable => Code::Unavailable,
        ErrorReason::ErrUnknownCaller => Code::Unauthenticated,
        ErrorReason::ErrOverloaded | ErrorReason::ErrRequestTooLarge => Code::ResourceExhausted,
        ErrorReason::ErrUnimplemented => Code::Unimplemented,
        ErrorReason::ErrDeadlineExceeded => Code::DeadlineExceeded,
        ErrorReason::ErrInternal | ErrorReason::ErrUnspecified => Code::Internal,
    }
}

/// The status of `reason`: canonical code, a message for people, one `ErrorInfo` with `metadata`.
///
/// Neither the message nor the metadata may hold a token, a session ID or an address of a backend.
#[must_use]
pub fn status(
    reason: ErrorReason,
    message: impl Into<String>,
    metadata: impl IntoIterator<Item = (String, String)>,
) -> Status {
    let metadata: HashMap<String, String> = metadata.into_iter().collect();
    let details = ErrorDetails::with_error_info(reason.as_str_name(), DOMAIN, metadata);
    Status::with_error_details(code(reason), message, details)
}

/// A status code's name in metrics, records and spans.
#[must_use]
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

/// The reason in a status, if it is one of ours.
#[must_use]
pub fn reason_of(status: &Status) -> Option<ErrorReason> {
    let info = status.get_details_error_info()?;
    if info.domain != DOMAIN {
        return None;
    }
    ErrorReason::from_str_name(&info.reason)
}

/// The metadata of a status' `ErrorInfo`; empty without one.
#[must_use]
pub fn metadata_of(status: &Status) -> HashMap<String, String> {
    status
        .get_details_error_info()
        .map(|info| info.metadata)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_travels_as_error_info() {
        let scopes = ("scopes".to_owned(), "orders:read".to_owned());
        let status = status(ErrorReason::ErrInsufficientScope, "a scope is missing", [scopes]);
        assert_eq!(status.code(), Code::PermissionDenied);
        assert_eq!(reason_of(&status), Some(ErrorReason::ErrInsufficientScope));
        assert_eq!(
            metadata_of(&status).get("scopes").map(String::as_str),
            Some("orders:read")
        );
    }

    #[test]
    fn a_status_of_somebody_else_has_no_reason() {
        assert_eq!(reason_of(&Status::unavailable("connection refused")), None);
    }
}
