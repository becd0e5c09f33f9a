//! Counts sent and waiting events.

use std::time::Duration;

use prometheus::{
    GaugeVec, IntCounterVec, IntGaugeVec, Registry, register_gauge_vec_with_registry,
    register_int_counter_vec_with_registry, register_int_gauge_vec_with_registry,
};

named! {
    /// The result of an event for one receiver.
    pub(super) enum SignalOutcome {
        /// The receiver acknowledged it.
        Delivered => "delivered",
        /// The receiver permanently rejected it.
        Refused => "refused",
        /// A push failed and is retried.
        Failed => "failed",
        /// It exceeded the limit of age or number.
        Dropped => "dropped",
        /// Its note could not be written.
        Lost => "lost",
    }
}

/// Counts; clones share.
#[derive(Clone)]
pub(super) struct Measures {
    signals: IntCounterVec,
    queued: IntGaugeVec,
    oldest: GaugeVec,
}

impl Measures {
    /// Registers the metrics.
    ///
    /// # Errors
    /// They are registered already.
    pub(super) fn new(metrics: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self {
            signals: register_int_counter_vec_with_registry!(
                "signals_sent_total",
                "Events for receivers, by receiver and outcome",
                &["receiver", "outcome"],
                metrics
            )?,
            queued: register_int_gauge_vec_with_registry!(
                "signals_queued",
                "Events that wait for their receiver, at the replica that has its lease",
                &["receiver"],
                metrics
            )?,
            oldest: register_gauge_vec_with_registry!(
                "signals_oldest_seconds",
                "How long the oldest event has waited for its receiver, at the replica that has its lease",
                &["receiver"],
                metrics
            )?,
        })
    }

    /// Counts an event.
    pub(super) fn signal(&self, receiver: &str, outcome: SignalOutcome) {
        self.signals.with_label_values(&[receiver, outcome.name()]).inc();
    }

    /// Reports how many events wait, and since when the oldest one does.
    pub(super) fn waiting(&self, receiver: &str, count: usize, oldest: Duration) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.queued.with_label_values(&[receiver]).set(count);
        self.oldest
            .with_label_values(&[receiver])
            .set(oldest.as_secs_f64());
    }
}
