//! Gauges of what is there already: read when somebody asks for the metrics, and at no other time.

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{GaugeVec, Opts};

/// Gauges that are set each time they are collected.
pub struct SampledGauge {
    gauges: GaugeVec,
    sample: Box<dyn Fn(&GaugeVec) + Send + Sync>,
}

impl SampledGauge {
    /// `sample` sets the gauges of this name; it must not wait for anything.
    ///
    /// # Errors
    /// The name or a label is none.
    pub fn new(
        name: &str,
        help: &str,
        labels: &[&str],
        sample: impl Fn(&GaugeVec) + Send + Sync + 'static,
    ) -> Result<Self, prometheus::Error> {
        Ok(Self {
            gauges: GaugeVec::new(Opts::new(name, help), labels)?,
            sample: Box::new(sample),
        })
    }
}

/// A count as the value of a gauge; exact below 2^32, which nothing that is counted in one process exceeds.
#[must_use]
pub fn as_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

impl Collector for SampledGauge {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        (self.sample)(&self.gauges);
        self.gauges.collect()
    }
}
