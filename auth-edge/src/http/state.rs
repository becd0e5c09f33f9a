//! What handlers are given, shared by all of them.

use std::ops::Deref;
use std::sync::Arc;

/// One state for all workers, with a reference count for each of them: cores that count the same references wait for each other
/// (docs/decisions/schedulers.md).
#[derive(Debug)]
pub struct Shared<T>(Arc<OfOneWorker<T>>);

/// What the handles of one worker count.
#[derive(Debug)]
struct OfOneWorker<T>(Arc<T>);

impl<T> Shared<T> {
    /// Shares a state.
    #[must_use]
    pub fn new(state: T) -> Self {
        Self(Arc::new(OfOneWorker(Arc::new(state))))
    }

    /// The same state, for a worker of its own.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self(Arc::new(OfOneWorker(Arc::clone(&self.0.0))))
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
        &self.0.0
    }
}
