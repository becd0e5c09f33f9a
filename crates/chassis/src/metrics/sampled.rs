//! Gauges whose value is read only when metrics are collected.

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{GaugeVec, Opts};

/// Gauges that are set each time they are collected.
pub struct SampledGauge {
    gauges: GaugeVec,
    sample: Box<dyn Fn(&GaugeVec) + Send + Sync>,
}

impl SampledGauge {
    /// `sample` sets the gauges of this name. It must not block.
    ///
    /// # Errors
    /// The name or a label is invalid.
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

/// A count as a gauge value; exact below 2^32, more than any count in one process.
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
