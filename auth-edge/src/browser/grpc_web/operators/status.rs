//! The statuses of operators' calls.

use session_proto::client::SessionError;
use session_proto::error;
use session_proto::v1::ErrorReason;
use tonic::Status;

use crate::browser::grpc_web::caller::failed;

/// The status without a rule.
pub(crate) fn no_service() -> Status {
    error::status(ErrorReason::ErrUnimplemented, "this edge serves no operators", [])
}

/// The status for every person without the right.
pub(super) fn not_allowed() -> Status {
    let problem = "this person is not an operator here";
    error::status(ErrorReason::ErrCallerNotAllowed, problem, [])
}

/// The session service's error code, with a message for browsers. If the service does not serve this edge, the
/// operator can do nothing about it.
pub(super) fn unanswered(failure: SessionError) -> Status {
    let is_off = matches!(
        failure.reason,
        ErrorReason::ErrUnimplemented | ErrorReason::ErrCallerNotAllowed | ErrorReason::ErrUnknownCaller
    );
    if !is_off {
        return failed(failure);
    }
    tracing::warn!(
        error = &failure as &dyn std::error::Error,
        "the session service serves no operators of this edge"
    );
    let problem =
        "the session service does not serve operators: it is older than the edge, or its settings forbid it";
    error::status(ErrorReason::ErrUnimplemented, problem, [])
}
