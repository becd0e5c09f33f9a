//! How much is worked on at once: what is more is told to come back, before it costs anything.
//!
//! A request counts until its answer begins; streams, downloads and WebSockets that have begun do not. Deliberately
//! absent: queues; somebody who waits in one for long has given up when their turn comes.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::errors::Failure;

/// Places for requests; `None` is no limit.
#[derive(Debug)]
pub struct Places(Option<Semaphore>);

impl Places {
    /// So many; 0 is no limit.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let count = count.min(Semaphore::MAX_PERMITS);
        Self((count > 0).then(|| Semaphore::new(count)))
    }

    /// A place, given back when dropped; none is needed where there is no limit.
    ///
    /// # Errors
    /// All are taken.
    pub fn take(&self) -> Result<Option<SemaphorePermit<'_>>, Failure> {
        let place = self.0.as_ref().map(Semaphore::try_acquire).transpose();
        place.map_err(|_full| Failure::Overloaded)
    }
}
