//! The server's time without a request each time: a local monotonic clock plus an offset, which is measured
//! on connecting and several times a second. Replicas whose own clocks differ agree to within a round trip.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use chassis::clock::Clock;
use redis::RedisError;

use super::pool::WorkerConnection;

/// How often the offset is measured.
const MEASURE_EVERY: Duration = Duration::from_millis(250);

/// An older measurement may be from another server: any new answer replaces it.
const OUTDATED: Duration = Duration::from_secs(5);

/// Two clocks diverge by less than 1/`APART_ONE_IN`. Systems correct at most 500 in a million.
const APART_ONE_IN: i64 = 2_000;

/// Follows the server's clock.
pub(super) struct ServerClock {
    started: Instant,
    /// The server's time at `started`, in microseconds since the Unix epoch.
    origin_us: AtomicI64,
    /// When that was measured, in microseconds after `started`; negative before the first measurement.
    measured_us: AtomicI64,
    /// The possible error at that time, in microseconds: half of the round trip.
    error_us: AtomicI64,
}

impl ServerClock {
    /// Starts from `fallback`'s time and measures in the background until dropped.
    pub(super) fn start(connection: WorkerConnection, fallback: &dyn Clock) -> Arc<Self> {
        let origin_us = i64::try_from(fallback.now_ms().saturating_mul(1_000)).unwrap_or(i64::MAX);
        let clock = Arc::new(Self {
            started: Instant::now(),
            origin_us: AtomicI64::new(origin_us),
            measured_us: AtomicI64::new(-1),
            error_us: AtomicI64::new(0),
        });
        tokio::spawn(keep_measuring(Arc::downgrade(&clock), connection));
        clock
    }

    pub(super) fn now_ms(&self) -> u64 {
        let now_us = self
            .origin_us
            .load(Ordering::Relaxed)
            .saturating_add(micros(self.started.elapsed()));
        u64::try_from(now_us / 1_000).unwrap_or(0)
    }

    /// Asks the server for the time. Ignores an answer that is less exact than the last one, as its longer
    /// round trip would make the time jump.
    pub(super) async fn synchronise(&self, connection: &WorkerConnection) -> Result<(), RedisError> {
        let sent = self.started.elapsed();
        let (seconds, microseconds): (i64, i64) = connection.read(&redis::cmd("TIME")).await?;
        let took = self.started.elapsed() - sent;
        let (sent_us, error_us) = (micros(sent), micros(took / 2));
        let measured_us = self.measured_us.load(Ordering::Relaxed);
        let age_us = sent_us.saturating_sub(measured_us);
        let known_to_us = self.error_us.load(Ordering::Relaxed) + age_us / APART_ONE_IN;
        if error_us <= known_to_us || measured_us < 0 || age_us > micros(OUTDATED) {
            let server_us = seconds.saturating_mul(1_000_000).saturating_add(microseconds);
            self.origin_us
                .store(server_us - sent_us - error_us, Ordering::Relaxed);
            self.error_us.store(error_us, Ordering::Relaxed);
            self.measured_us.store(sent_us, Ordering::Relaxed);
        }
        Ok(())
    }
}

async fn keep_measuring(clock: Weak<ServerClock>, connection: WorkerConnection) {
    loop {
        tokio::time::sleep(MEASURE_EVERY).await;
        let Some(clock) = clock.upgrade() else { return };
        if let Err(error) = clock.synchronise(&connection).await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "the store's time could not be read"
            );
        }
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
