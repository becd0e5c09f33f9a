//! How many watches are open now.

use prometheus::{IntGauge, IntGaugeVec, Registry, register_int_gauge_vec_with_registry};

use crate::sessions::WatchScope;

/// Counts open watches by what they are about. Clones count together.
#[derive(Clone)]
pub(super) struct OpenWatches(IntGaugeVec);

/// One that is open, until dropped.
pub(super) struct OpenWatch(IntGauge);

impl OpenWatches {
    /// Makes the metric and registers it.
    pub(super) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let open = register_int_gauge_vec_with_registry!(
            "session_watches",
            "Watches that are open now, by what they are about: all sessions, those of a person, or one.",
            &["scope"],
            registry
        )?;
        for scope in ["all", "person", "session"] {
            open.with_label_values(&[scope]);
        }
        Ok(Self(open))
    }

    /// A watch opens.
    pub(super) fn open(&self, scope: &WatchScope) -> OpenWatch {
        let scope = match scope {
            WatchScope::All => "all",
            WatchScope::Person { .. } => "person",
            WatchScope::Session(_) => "session",
        };
        let open = self.0.with_label_values(&[scope]);
        open.inc();
        OpenWatch(open)
    }
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.0.dec();
    }
}
