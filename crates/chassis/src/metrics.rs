//! Metrics in the Prometheus text format.

mod per_core;

use prometheus::{IntGaugeVec, Opts, Registry, TextEncoder};

pub use per_core::PerCoreMetric;

/// A registry that holds `vestibule_build_info` for this program.
///
/// # Errors
/// None in practice: the name is valid and the registry empty.
pub(crate) fn registry(program: &str) -> Result<Registry, prometheus::Error> {
    let registry = Registry::new();
    let info = IntGaugeVec::new(
        Opts::new("vestibule_build_info", "The running program; always 1."),
        &["program", "version"],
    )?;
    info.with_label_values(&[program, env!("CARGO_PKG_VERSION")])
        .set(1);
    registry.register(Box::new(info))?;
    Ok(registry)
}

/// Everything registered, as text.
///
/// # Errors
/// A metric that breaks the format.
pub(crate) fn render(registry: &Registry) -> Result<String, prometheus::Error> {
    TextEncoder::new().encode_to_string(&registry.gather())
}
