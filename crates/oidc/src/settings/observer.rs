//! Reports requests to the provider for metrics: endpoint, outcome and duration.
//!
//! Deliberately absent: abandoned requests, which have no outcome, and requests that only check settings
//! (`probe`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Receives every finished request to the provider. Clones share the receiver.
#[derive(Clone)]
pub struct RequestObserver(Arc<dyn Fn(&'static str, &'static str, Duration) + Send + Sync>);

impl RequestObserver {
    /// Passes the endpoint's name in the provider's metadata, the outcome and the duration to the callback.
    pub fn new(observe: impl Fn(&'static str, &'static str, Duration) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
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
