//! The caller of a call: its session and its share of concurrent calls, and the status if a call fails.

use std::sync::Arc;

use session_proto::client::SessionError;
use session_proto::error;
use session_proto::v1::{ErrorReason, Session};
use tonic::Status;

use crate::browser::Browser;
use crate::http::errors::Limit;
use crate::http::protect::shares::{Share, Shares};
use crate::sessions::CurrentSession;

/// Open streams per person: more tabs than a person keeps open at one edge. A page beyond the limit polls its session
/// instead. The same limit holds for calls that list or end sessions. Every page lists after a change, and each list
/// costs the session service several reads.
const OF_PERSON_MAX: u32 = 100;

/// Takes one of the slots of the session's person.
pub(super) fn share(
    browser: &Browser,
    shares: &Arc<Shares>,
    mine: &Session,
    limit: Limit,
    problem: &str,
) -> Result<Share, Status> {
    let share = shares.enter((&mine.issuer, &mine.subject), OF_PERSON_MAX);
    share.ok_or_else(|| {
        browser.metrics.limits.count(limit.name());
        error::status(ErrorReason::ErrOverloaded, problem, [])
    })
}

/// The session, or the error status if it is missing.
pub(super) fn require_session(
    found: Result<Option<CurrentSession>, SessionError>,
) -> Result<CurrentSession, Status> {
    match found {
        Ok(Some(current)) => Ok(current),
        Ok(None) => Err(error::status(
            ErrorReason::ErrMissingSession,
            "there is no session",
            [],
        )),
        Err(error) => Err(failed(error)),
    }
}

/// The session service's error code, with a message for browsers.
pub(super) fn failed(failure: SessionError) -> Status {
    if failure.is_unavailable() {
        tracing::warn!(
            error = &failure as &dyn std::error::Error,
            "a browser call cannot be answered"
        );
        return error::status(
            ErrorReason::ErrSessionServiceUnavailable,
            "the session service cannot be reached",
            [],
        );
    }
    error::status(failure.reason, failure.message, failure.metadata)
}
