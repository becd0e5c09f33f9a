//! Metrics in the Prometheus text format.

pub(crate) mod limit_hits;
mod sampled;

use std::collections::HashMap;

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntGaugeVec, Opts, Registry};

pub use limit_hits::LimitHits;
pub use sampled::{SampledGauge, as_f64};

/// A registry with `vestibule_build_info` for this program and, on Linux, the kernel's process metrics.
///
/// # Errors
/// None in practice: the names are valid and the registry empty.
pub(crate) fn registry(program: &str) -> Result<Registry, prometheus::Error> {
    let registry = Registry::new();
    let info = IntGaugeVec::new(
        Opts::new("vestibule_build_info", "The running program; always 1."),
        &["program", "version"],
    )?;
    info.with_label_values(&[program, env!("CARGO_PKG_VERSION")])
        .set(1);
    registry.register(Box::new(info))?;
    #[cfg(target_os = "linux")]
    registry.register(Box::new(
        prometheus::process_collector::ProcessCollector::for_self(),
    ))?;
    Ok(registry)
}

/// A registry within another one, whose metrics carry one more label.
///
/// # Errors
/// The label is not valid.
pub fn nested(registry: &Registry, label: &str, value: &str) -> Result<Registry, prometheus::Error> {
    let labels = HashMap::from([(label.to_owned(), value.to_owned())]);
    let inner = Registry::new_custom(None, Some(labels))?;
    registry.register(Box::new(Nested(inner.clone())))?;
    Ok(inner)
}

struct Nested(Registry);

impl Collector for Nested {
    /// None: the metrics are described where they are registered.
    fn desc(&self) -> Vec<&Desc> {
        Vec::new()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.0.gather()
    }
}
