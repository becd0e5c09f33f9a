//! Long work: reported now and then, held to a rate, and stopped by a signal between two pages.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};

/// How often progress is reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// The work so far.
pub(super) struct BulkProgress {
    began: Instant,
    reported: Instant,
    rate: u64,
    stopped: Arc<AtomicBool>,
}

impl BulkProgress {
    /// Begins; at most `rate` changes a second, 0 for as many as go.
    pub(super) fn begin(rate: u64) -> std::io::Result<Self> {
        let stopped = Arc::new(AtomicBool::new(false));
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let flag = Arc::clone(&stopped);
        tokio::spawn(async move {
            tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
            flag.store(true, Ordering::Relaxed);
        });
        Ok(Self {
            began: Instant::now(),
            reported: Instant::now(),
            rate,
            stopped,
        })
    }

    /// Whether a signal to stop arrived.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Prints `line` if it is time, and waits until `changes` are not too many for the time since the beginning.
    pub(super) async fn made(&mut self, changes: u64, line: impl FnOnce() -> String) {
        if self.reported.elapsed() >= REPORT_INTERVAL {
            self.reported = Instant::now();
            let _ = writeln!(std::io::stderr(), "{}", line());
        }
        let until = self.began + due(changes, self.rate);
        while !self.is_stopped() && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            tokio::time::sleep(left.min(Duration::from_millis(100))).await;
        }
    }
}

/// How long so many changes take at least.
fn due(changes: u64, rate: u64) -> Duration {
    match rate {
        0 => Duration::ZERO,
        rate => Duration::from_millis(changes.saturating_mul(1_000) / rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_says_how_long_changes_take() {
        assert_eq!(due(5_000, 0), Duration::ZERO);
        assert_eq!(due(5_000, 2_000), Duration::from_millis(2_500));
        assert_eq!(
            due(u64::MAX, 1_000_000),
            Duration::from_millis(u64::MAX / 1_000_000)
        );
    }
}
