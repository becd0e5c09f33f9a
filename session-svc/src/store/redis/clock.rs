//! The server's time without asking it each time: a local monotonic clock plus an offset that is measured
//! on connecting and every few seconds. Replicas whose own clocks differ agree to within a round trip.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use chassis::clock::Clock;
use deadpool_redis::redis::{self, RedisError};

use super::connections::Connections;

/// How often the offset is measured: clocks drift apart by less than a millisecond in that time. It is also
/// how soon a connection that died while idle is noticed.
const MEASURE_EVERY: Duration = Duration::from_secs(3);

/// A slower answer than this says too little about the time, unless nothing is known yet.
const SLOWEST_MEASURE: Duration = Duration::from_millis(100);

/// Follows the server's clock.
pub(super) struct ServerClock {
    started: Instant,
    /// The server's time when `started` was, in microseconds since the Unix epoch.
    origin_us: AtomicI64,
    measured: std::sync::atomic::AtomicBool,
}

impl ServerClock {
    /// Starts from `fallback`'s time and measures in the background until dropped.
    pub(super) fn start(connections: Arc<Connections>, fallback: &dyn Clock) -> Arc<Self> {
        let origin_us = i64::try_from(fallback.now_ms().saturating_mul(1_000)).unwrap_or(i64::MAX);
        let clock = Arc::new(Self {
            started: Instant::now(),
            origin_us: AtomicI64::new(origin_us),
            measured: false.into(),
        });
        tokio::spawn(keep_measuring(Arc::downgrade(&clock), connections));
        clock
    }

    pub(super) fn now_ms(&self) -> u64 {
        let now_us = self
            .origin_us
            .load(Ordering::Relaxed)
            .saturating_add(micros(self.started.elapsed()));
        u64::try_from(now_us / 1_000).unwrap_or(0)
    }

    /// Asks the server for the time.
    pub(super) async fn synchronise(&self, connections: &Connections) -> Result<(), RedisError> {
        let asked = self.started.elapsed();
        let (seconds, microseconds): (i64, i64) = connections.read(&redis::cmd("TIME")).await?;
        let took = self.started.elapsed() - asked;
        if took <= SLOWEST_MEASURE || !self.measured.load(Ordering::Relaxed) {
            let server_us = seconds.saturating_mul(1_000_000).saturating_add(microseconds);
            self.origin_us
                .store(server_us - micros(asked + took / 2), Ordering::Relaxed);
            self.measured.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

async fn keep_measuring(clock: Weak<ServerClock>, connections: Arc<Connections>) {
    loop {
        tokio::time::sleep(MEASURE_EVERY).await;
        let Some(clock) = clock.upgrade() else { return };
        if let Err(error) = clock.synchronise(&connections).await {
            tracing::debug!(%error, "the store's time could not be asked");
        }
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
