//! How often the cache has a session, and the results of device proofs.

use prometheus::{IntCounterVec, Registry};

/// How often the edge found a session in its cache.
#[derive(Clone, Debug)]
pub(crate) struct CacheMetrics(IntCounterVec);

impl CacheMetrics {
    /// Makes the metrics and registers them.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let all = prometheus::register_int_counter_vec_with_registry!(
            "session_cache_lookups_total",
            "Sessions looked up in memory, by result: hit, miss, or unheard while reports of a replica of the session service are missing.",
            &["result"],
            registry
        )?;
        for result in ["hit", "miss", "unheard"] {
            all.with_label_values(&[result]);
        }
        Ok(Self(all))
    }

    /// Counts the result of a lookup.
    pub(super) fn count<T>(&self, found: &Result<T, &'static str>) {
        let result = found.as_ref().err().unwrap_or(&"hit");
        self.0.with_label_values(&[result]).inc();
    }
}

/// Counts the results of proofs of session keys.
#[derive(Clone, Debug)]
pub(crate) struct DeviceMetrics(IntCounterVec);

/// The result of a proof; requests that carry a valid one are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceProofOutcome {
    /// A session was bound.
    Bound,
    /// No session was bound: its proof or its challenge was invalid.
    NotBound,
    /// A browser proved its key again.
    Refreshed,
    /// A browser received a challenge.
    Challenged,
    /// A browser received the answer that its session is over.
    Over,
    /// A request had no proof, and says that its browser could not request one.
    Skipped,
    /// A request had no proof.
    Missing,
}

impl DeviceProofOutcome {
    fn name(self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::NotBound => "not_bound",
            Self::Refreshed => "refreshed",
            Self::Challenged => "challenged",
            Self::Over => "over",
            Self::Skipped => "skipped",
            Self::Missing => "missing",
        }
    }
}

impl DeviceMetrics {
    /// Makes the metrics and registers them.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let all = prometheus::register_int_counter_vec_with_registry!(
            "device_proofs_total",
            "Proofs of the device of a session, by outcome; requests with a valid one are not counted.",
            &["outcome"],
            registry
        )?;
        Ok(Self(all))
    }

    /// Counts the result of a proof.
    pub(crate) fn count(&self, outcome: DeviceProofOutcome) {
        self.0.with_label_values(&[outcome.name()]).inc();
    }
}
