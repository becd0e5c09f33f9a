//! What is measured of the audit log.

use prometheus::{IntCounter, Registry};

/// The measures.
pub(super) struct Measures {
    /// Records written; where nothing fails, the number of the chain's last record.
    pub(super) written: IntCounter,
    /// Records dropped.
    pub(super) lost: IntCounter,
    /// Writes that failed.
    pub(super) failures: IntCounter,
}

impl Measures {
    /// Makes them.
    pub(super) fn new() -> Result<Self, prometheus::Error> {
        Ok(Self {
            written: IntCounter::new(
                "audit_records_total",
                "Audit records written; the number of the last record of this process.",
            )?,
            lost: IntCounter::new(
                "audit_records_lost_total",
                "Audit records dropped because those before could not be written.",
            )?,
            failures: IntCounter::new(
                "audit_write_failures_total",
                "Writes of audit records that failed and were tried again.",
            )?,
        })
    }

    /// Registers them.
    pub(super) fn register(&self, registry: &Registry) -> Result<(), prometheus::Error> {
        for counter in [&self.written, &self.lost, &self.failures] {
            registry.register(Box::new(counter.clone()))?;
        }
        Ok(())
    }
}
