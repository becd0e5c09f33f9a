//! The wall clock as a value, so that tests can set the time.
//!
//! Deliberately absent: timers and sleeping (tokio's).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Instant, UNIX_EPOCH};

use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};

/// The wall clock.
pub trait Clock: Send + Sync + 'static {
    /// The time now, in milliseconds since the Unix epoch.
    fn now_ms(&self) -> u64;

    /// The current time, in whole seconds since the Unix epoch.
    fn now_secs(&self) -> u64 {
        self.now_ms() / 1000
    }

    /// Milliseconds since some moment of this process, for durations. Setting the clock does not affect it.
    fn monotonic_ms(&self) -> u64 {
        static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
        u64::try_from(STARTED.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The operating system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the system's clock"
    )]
    fn now_ms(&self) -> u64 {
        let since_epoch = std::time::SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
    }
}

/// The current time as records show it (RFC 3339, UTC, microseconds).
pub(crate) fn timestamp() -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut text));
    text
}

/// A clock that only tests move; clones share the time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// Starts at `now_ms` milliseconds since the Unix epoch.
    pub fn new(now_ms: u64) -> Self {
        Self(Arc::new(AtomicU64::new(now_ms)))
    }

    /// Moves the time forward by `ms` milliseconds.
    pub fn advance_ms(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }

    /// Sets the time to `now_ms` milliseconds since the Unix epoch, also backwards.
    pub fn set_ms(&self, now_ms: u64) {
        self.0.store(now_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn monotonic_ms(&self) -> u64 {
        self.now_ms()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_a_manual_clock_share_the_time() {
        let clock = ManualClock::new(1_000);
        let other = clock.clone();
        clock.advance_ms(1_500);
        assert_eq!((other.now_ms(), other.now_secs()), (2_500, 2));
        other.set_ms(7);
        assert_eq!(clock.now_ms(), 7);
    }

    #[test]
    fn the_system_clock_is_past_the_year_2020() {
        assert!(SystemClock.now_ms() > 1_577_836_800_000);
    }
}
