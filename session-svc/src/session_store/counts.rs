//! Counts how many sessions this replica creates, rolls and ends.
//!
//! Deliberately absent: expired sessions. The store drops them silently, so these counts do not give the
//! number of current sessions (docs/decisions/metrics.md).

use std::time::Duration;

use prometheus::{
    IntCounter, IntCounterVec, Registry, register_gauge_vec_with_registry,
    register_int_counter_vec_with_registry, register_int_counter_with_registry,
};

use crate::session::{Cause, Lifetime};

/// Counts the events of sessions. Clones count together.
#[derive(Clone, Debug)]
pub struct SessionCounts {
    pub(super) created: IntCounter,
    pub(super) rolled: IntCounter,
    ended: IntCounterVec,
}

impl SessionCounts {
    /// Makes and registers the metrics, each cause at 0, and the current durations, which limit the number of
    /// current sessions.
    ///
    /// # Errors
    /// They are registered already.
    pub fn new(registry: &Registry, lifetime: &Lifetime) -> Result<Self, prometheus::Error> {
        let counts = Self {
            created: register_int_counter_with_registry!(
                "sessions_created_total",
                "Sessions created.",
                registry
            )?,
            rolled: register_int_counter_with_registry!(
                "sessions_rolled_total",
                "Times that use of a session extended its idle time.",
                registry
            )?,
            ended: register_int_counter_vec_with_registry!(
                "sessions_ended_total",
                "Sessions that were ended, by cause; those that expire are not counted.",
                &["cause"],
                registry
            )?,
        };
        for cause in Cause::ALL {
            counts.ended.with_label_values(&[cause.name()]);
        }
        let durations = register_gauge_vec_with_registry!(
            "session_lifetime_seconds",
            "The durations in force: the idle time after which a session ends (rolling), its longest lifetime (absolute), and the time between two rolls of a session in use (roll_interval).",
            &["duration"],
            registry
        )?;
        for (duration, ms) in [
            ("rolling", lifetime.rolling_ms),
            ("absolute", lifetime.absolute_ms),
            ("roll_interval", lifetime.effective_roll_interval_ms()),
        ] {
            let duration = durations.with_label_values(&[duration]);
            duration.set(Duration::from_millis(ms).as_secs_f64());
        }
        Ok(counts)
    }

    pub(super) fn count_ended(&self, cause: Cause) {
        self.ended.with_label_values(&[cause.name()]).inc();
    }
}
