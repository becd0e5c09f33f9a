//! How often sessions are found in memory.

use std::sync::Arc;

use chassis::metrics::PerCoreMetric;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntCounter, IntCounterVec, Opts, Registry};

use super::cache::NotCached;

/// How often a session was remembered, counted for each worker.
#[derive(Clone, Debug)]
pub(crate) struct CacheMetrics {
    all: PerCoreMetric<Lookups>,
    own: Arc<Lookups>,
}

/// What one worker counts.
#[derive(Clone, Debug)]
struct Lookups {
    all: IntCounterVec,
    hits: IntCounter,
    misses: IntCounter,
    unheard: IntCounter,
}

impl Lookups {
    fn new() -> Result<Self, prometheus::Error> {
        let all = IntCounterVec::new(
            Opts::new(
                "session_cache_lookups_total",
                "Sessions looked up in memory, by result: hit, miss, or unheard while a replica of the session service is not heard.",
            ),
            &["result"],
        )?;
        Ok(Self {
            hits: all.with_label_values(&["hit"]),
            misses: all.with_label_values(&["miss"]),
            unheard: all.with_label_values(&["unheard"]),
            all,
        })
    }
}

impl Collector for Lookups {
    fn desc(&self) -> Vec<&Desc> {
        self.all.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.all.collect()
    }
}

impl CacheMetrics {
    /// Makes the metrics and registers them.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let all = PerCoreMetric::new(Lookups::new)?;
        registry.register(Box::new(all.clone()))?;
        let own = all.for_worker();
        Ok(Self { all, own })
    }

    /// The same, to be counted by a worker of its own.
    #[must_use]
    pub(crate) fn for_worker(&self) -> Self {
        Self {
            all: self.all.clone(),
            own: self.all.for_worker(),
        }
    }

    /// Counts what became of looking for a session.
    pub(super) fn count<T>(&self, found: &Result<T, NotCached>) {
        let count = match found {
            Ok(_) => &self.own.hits,
            Err(NotCached::Unknown) => &self.own.misses,
            Err(NotCached::Unheard) => &self.own.unheard,
        };
        count.inc();
    }
}
