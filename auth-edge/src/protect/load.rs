//! How much is worked on at once: what is more is told to come back, before it costs anything.
//!
//! A request counts until its answer begins; streams, downloads and WebSockets that have begun do not. Deliberately
//! absent: queues; somebody who waits in one for long has given up when their turn comes.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::errors::Failure;

/// Places for requests; `None` is no limit.
#[derive(Debug)]
pub struct Places(Option<Arc<Semaphore>>);

/// A place that is taken, given back when dropped.
pub type Place = OwnedSemaphorePermit;

impl Places {
    /// So many; 0 is no limit.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let count = count.min(Semaphore::MAX_PERMITS);
        Self((count > 0).then(|| Arc::new(Semaphore::new(count))))
    }

    /// A place; none is needed where there is no limit.
    ///
    /// # Errors
    /// All are taken.
    pub fn take(&self) -> Result<Option<Place>, Failure> {
        let places = self.0.as_ref().map(Arc::clone);
        let place = places.map(Semaphore::try_acquire_owned).transpose();
        place.map_err(|_full| Failure::Overloaded)
    }
}
