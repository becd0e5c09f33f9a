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

/// Takes one of the slots that the session's person has for calls about several sessions.
pub(super) fn listing_share(browser: &Browser, mine: &Session) -> Result<Share, Status> {
    let problem = "this user has too many open calls";
    share(browser, &browser.listing, mine, Limit::ListsOfPerson, problem)
}

/// Takes one of the slots that the session's person has for streams.
pub(super) fn watching_share(browser: &Browser, mine: &Session) -> Result<Share, Status> {
    let problem = "this user has too many pages that watch sessions";
    share(browser, &browser.listening, mine, Limit::WatchesOfPerson, problem)
}

fn share(
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
    found.map_err(failed)?.ok_or_else(|| {
        let problem = "there is no session";
        error::status(ErrorReason::ErrMissingSession, problem, [])
    })
}

/// The session service's error code, with a message for browsers.
pub(super) fn failed(failure: SessionError) -> Status {
    if failure.is_unavailable() {
        tracing::warn!(
            error = &failure as &dyn std::error::Error,
            "a browser call cannot be answered"
        );
        let problem = "the session service cannot be reached";
        return error::status(ErrorReason::ErrSessionServiceUnavailable, problem, []);
    }
    error::status(failure.reason, failure.message, failure.metadata)
}
