//! Measures a store: the duration and the result of each operation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use prometheus::{HistogramOpts, HistogramVec, Registry};

use super::{
    IndexEntry, Inserted, KeyValueStore, Lease, Listing, Loaded, Name, Record, Replaced, StoreError,
    StoreUpdate,
};

/// Bounds of the histogram, in seconds. A local engine takes under a millisecond, a failover seconds.
const BUCKETS: [f64; 13] = [
    0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
];

/// Wraps another store.
pub(crate) struct MeasuredStore {
    store: Arc<dyn KeyValueStore>,
    durations: HistogramVec,
}

impl MeasuredStore {
    /// Creates and registers the metric.
    ///
    /// # Errors
    /// The metric is already registered.
    pub(crate) fn new(store: Arc<dyn KeyValueStore>, registry: &Registry) -> Result<Self, prometheus::Error> {
        let durations = HistogramVec::new(
            HistogramOpts::new(
                "session_store_operation_duration_seconds",
                "Duration of store operations, by operation and outcome; for a stream of events, until it began.",
            )
            .buckets(BUCKETS.to_vec()),
            &["operation", "outcome"],
        )?;
        registry.register(Box::new(durations.clone()))?;
        Ok(Self { store, durations })
    }

    async fn timed<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let began = Instant::now();
        let answer = work.await;
        let outcome = match &answer {
            Ok(_) => "ok",
            Err(StoreError::Unavailable(_)) => "unavailable",
            Err(StoreError::Full) => "full",
            Err(StoreError::Corrupt) => "corrupt",
        };
        self.durations
            .with_label_values(&[operation, outcome])
            .observe(began.elapsed().as_secs_f64());
        answer
    }
}

#[async_trait]
impl KeyValueStore for MeasuredStore {
    fn for_worker(&self) -> Option<Arc<dyn KeyValueStore>> {
        let store = self.store.for_worker()?;
        Some(Arc::new(Self {
            store,
            durations: self.durations.clone(),
        }))
    }

    fn now_ms(&self) -> u64 {
        self.store.now_ms()
    }

    async fn insert_unless(
        &self,
        barrier: Option<Name>,
        record: Record,
        event: Vec<u8>,
    ) -> Result<Inserted, StoreError> {
        self.timed("insert", self.store.insert_unless(barrier, record, event))
            .await
    }

    async fn load(&self, name: Name) -> Loaded {
        self.timed("load", self.store.load(name)).await
    }

    async fn replace(
        &self,
        record: Record,
        expected: u64,
        event: Option<Vec<u8>>,
    ) -> Result<Replaced, StoreError> {
        self.timed("replace", self.store.replace(record, expected, event))
            .await
    }

    async fn remove(&self, name: Name, event: Vec<u8>) -> Result<Option<Record>, StoreError> {
        self.timed("remove", self.store.remove(name, event)).await
    }

    async fn confirm_removed(&self, names: &[Name]) -> Result<bool, StoreError> {
        self.timed("confirm_removed", self.store.confirm_removed(names))
            .await
    }

    async fn list(
        &self,
        index: Name,
        after: Option<&IndexEntry>,
        limit: usize,
    ) -> Result<Listing, StoreError> {
        self.timed("list", self.store.list(index, after, limit)).await
    }

    async fn load_many(&self, names: &[Name]) -> Result<Vec<Loaded>, StoreError> {
        self.timed("load_many", self.store.load_many(names)).await
    }

    async fn acquire_lease(
        &self,
        name: Name,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        self.timed("acquire_lease", self.store.acquire_lease(name, holder, ttl))
            .await
    }

    async fn renew_lease(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError> {
        self.timed("renew_lease", self.store.renew_lease(lease, ttl))
            .await
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        self.timed("release_lease", self.store.release_lease(lease)).await
    }

    async fn remember(&self, name: Name, value: &[u8], ttl: Duration) -> Result<Option<Vec<u8>>, StoreError> {
        self.timed("remember", self.store.remember(name, value, ttl))
            .await
    }

    async fn published(
        &self,
        after: Option<String>,
    ) -> Result<BoxStream<'static, Result<StoreUpdate, StoreError>>, StoreError> {
        self.timed("published", self.store.published(after)).await
    }

    async fn position(&self) -> Result<String, StoreError> {
        self.timed("position", self.store.position()).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.timed("check", self.store.check()).await
    }
}
