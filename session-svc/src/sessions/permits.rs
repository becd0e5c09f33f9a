//! How many lists are in memory at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::SessionsError;

/// Pages of lists in memory at once, of all callers together: a large one takes 12 MiB with what is made of it. More
/// wait, and are not refused: a page is read in a millisecond or two.
pub(super) const PAGES_AT_ONCE: usize = 2;

/// Parts of lists that are being ended at once: 4 MiB of the largest. Endings wait for no list, and a node of the store
/// that stands still holds up few others.
pub(super) const ENDINGS_AT_ONCE: usize = 8;

/// The right to have a part of a list in memory, until it is dropped. Waits for those who have it.
pub(super) async fn permit(of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, SessionsError> {
    let permit = Arc::clone(of).acquire_owned().await;
    permit.map_err(|_closed| SessionsError::Internal)
}
