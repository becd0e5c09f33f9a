//! What whoever measures is told of requests to the provider: which endpoint, how it ended, how long it took.
//!
//! Deliberately absent: requests whose caller stopped waiting for them, which did not end, and those that only look whether
//! settings fit (`probe`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Is told of every request to the provider once it has ended. Clones tell the same.
#[derive(Clone)]
pub struct RequestObserver(Arc<dyn Fn(&'static str, &'static str, Duration) + Send + Sync>);

impl RequestObserver {
    /// Tells `told` the endpoint, by its name in the provider's metadata, the outcome and how long the request took.
    pub fn new(told: impl Fn(&'static str, &'static str, Duration) + Send + Sync + 'static) -> Self {
        Self(Arc::new(told))
    }

    pub(crate) fn tell(&self, endpoint: &'static str, outcome: &'static str, took: Duration) {
        (self.0)(endpoint, outcome, took);
    }
}

impl fmt::Debug for RequestObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestObserver")
    }
}
