//! What whoever measures is told of requests to the provider: which endpoint, how it ended, how long it took.
//!
//! Deliberately absent: requests whose caller stopped waiting for them, which did not end, and those that only look whether
//! settings fit (`probe`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How a request to the provider ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// It was answered, and not by an error.
    Answered,
    /// It was answered by an error that is the client's (4xx).
    Refused,
    /// It was answered by an error of the provider's (5xx).
    Failed,
    /// The answer did not come in time.
    Timeout,
    /// No connection could be made, or it broke.
    Unreachable,
    /// The answer was longer than any may be, or the request could not be made.
    Unusable,
}

impl RequestOutcome {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Answered,
        Self::Refused,
        Self::Failed,
        Self::Timeout,
        Self::Unreachable,
        Self::Unusable,
    ];

    /// A short name that stays, for metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Unusable => "unusable",
        }
    }
}

/// Is told of every request to the provider once it has ended. Clones tell the same.
#[derive(Clone)]
pub struct RequestObserver(Arc<dyn Fn(&'static str, RequestOutcome, Duration) + Send + Sync>);

impl RequestObserver {
    /// Tells `told` the endpoint, by its name in the provider's metadata, the outcome and how long the request took.
    pub fn new(told: impl Fn(&'static str, RequestOutcome, Duration) + Send + Sync + 'static) -> Self {
        Self(Arc::new(told))
    }

    pub(crate) fn tell(&self, endpoint: &'static str, outcome: RequestOutcome, took: Duration) {
        (self.0)(endpoint, outcome, took);
    }
}

impl fmt::Debug for RequestObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestObserver")
    }
}
