//! How many sessions this replica has begun, rolled and ended.
//!
//! Deliberately absent: those that expired. The store forgets them without a word, so that the sessions there are cannot be had from
//! these counts (docs/decisions/metrics.md).

use std::time::Duration;

use prometheus::{GaugeVec, IntCounter, IntCounterVec, Opts, Registry};

use crate::session::{Cause, Lifetime};

/// Counts what became of sessions. Clones count together.
#[derive(Clone, Debug)]
pub struct SessionCounts {
    pub(super) created: IntCounter,
    pub(super) rolled: IntCounter,
    ended: IntCounterVec,
}

impl SessionCounts {
    /// Makes the metrics, each cause at 0, and registers them, with the durations in force, from which follows what the counts say of
    /// the sessions there are.
    ///
    /// # Errors
    /// They are registered already.
    pub fn new(registry: &Registry, lifetime: &Lifetime) -> Result<Self, prometheus::Error> {
        let created = IntCounter::new("sessions_created_total", "Sessions that began.")?;
        let rolled = IntCounter::new(
            "sessions_rolled_total",
            "Times that the end of a session's idle time was moved, because it was used.",
        )?;
        let ended = IntCounterVec::new(
            Opts::new(
                "sessions_ended_total",
                "Sessions that were ended, by cause; those that expire are not counted.",
            ),
            &["cause"],
        )?;
        for cause in Cause::ALL {
            ended.with_label_values(&[cause.name()]);
        }
        let durations = GaugeVec::new(
            Opts::new(
                "session_lifetime_seconds",
                "The durations in force: how long a session lives unused (rolling) and at most (absolute), and the time between two rolls of one in use (roll_interval).",
            ),
            &["duration"],
        )?;
        for (duration, ms) in [
            ("rolling", lifetime.rolling_ms),
            ("absolute", lifetime.absolute_ms),
            ("roll_interval", lifetime.effective_roll_interval_ms()),
        ] {
            let duration = durations.with_label_values(&[duration]);
            duration.set(Duration::from_millis(ms).as_secs_f64());
        }
        registry.register(Box::new(durations))?;
        registry.register(Box::new(created.clone()))?;
        registry.register(Box::new(rolled.clone()))?;
        registry.register(Box::new(ended.clone()))?;
        Ok(Self {
            created,
            rolled,
            ended,
        })
    }

    pub(super) fn ended(&self, cause: Cause) {
        self.ended.with_label_values(&[cause.name()]).inc();
    }
}
