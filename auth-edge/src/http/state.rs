//! What handlers are given.

use std::ops::Deref;
use std::sync::Arc;

/// The state of one worker. Each worker has its own: cores that count the same references wait for each other
/// (docs/decisions/schedulers.md).
#[derive(Debug)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// Shares a state among the handlers of a worker.
    #[must_use]
    pub fn new(state: T) -> Self {
        Self(Arc::new(state))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
