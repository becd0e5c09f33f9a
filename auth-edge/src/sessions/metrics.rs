//! How often sessions are found in memory.

use chassis::metrics::PerCoreMetric;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntCounter, IntCounterVec, Opts, Registry};

/// How often a session was remembered.
#[derive(Clone, Debug)]
pub struct CacheMetrics(PerCoreMetric<Lookups>);

/// The same as one scheduler counts it.
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
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let lookups = PerCoreMetric::new(Lookups::new)?;
        registry.register(Box::new(lookups.clone()))?;
        Ok(Self(lookups))
    }

    /// It was, and what is remembered holds.
    pub fn hit(&self) {
        self.0.here().hits.inc();
    }

    /// It was not, or not any more.
    pub fn miss(&self) {
        self.0.here().misses.inc();
    }

    /// Nothing that is remembered counts: not every replica of the session service is heard.
    pub fn unheard(&self) {
        self.0.here().unheard.inc();
    }
}
