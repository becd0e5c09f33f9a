//! Limits how many lists are in memory at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::SessionsError;

/// Pages of lists in memory at once, over all callers: a large one takes 12 MiB with its answer. Further
/// calls wait and are not rejected: a page is read in a millisecond or two.
pub(super) const PAGES_AT_ONCE: usize = 2;

/// Searches of operators at once, over all callers. Each may take half a second: they take turns, and leave
/// the other workers to sign-ins. They do not wait for the pages of users, nor these for them.
pub(super) const SEARCHES_AT_ONCE: usize = 2;

/// Parts of lists that are ended at once: 4 MiB of the largest. Endings do not wait for list calls, and a
/// stalled node of the store delays few others.
pub(super) const ENDINGS_AT_ONCE: usize = 8;

/// Waits for a permit to hold a part of a list in memory, until the permit is dropped.
pub(super) async fn permit(of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, SessionsError> {
    let permit = Arc::clone(of).acquire_owned().await;
    permit.map_err(|_closed| SessionsError::Internal)
}
