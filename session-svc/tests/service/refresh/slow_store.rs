//! A slow or full store: it freezes, like a process that is stopped and continued, or it has no room.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use session_svc::store::{
    IndexEntry, Inserted, KeyValueStore, Lease, Listing, Loaded, Name, Record, Replaced, StoreError,
    StoreUpdate,
};
use tokio::sync::watch;

use super::support::within;

/// A store that the test can pause: before or after a lease, or at a read. The read then returns late, with
/// the record of the moment it began.
#[derive(Clone)]
pub(crate) struct SlowStore {
    inner: Arc<dyn KeyValueStore>,
    slow: Arc<watch::Sender<Slow>>,
    full: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slow {
    No,
    BeforeALease,
    AfterALease,
    AtTheNextLoad,
    Standing,
}

impl SlowStore {
    pub(crate) fn over(inner: Arc<dyn KeyValueStore>) -> Self {
        Self {
            inner,
            slow: Arc::new(watch::Sender::new(Slow::No)),
            full: Arc::default(),
        }
    }

    /// Rejects replacements, or accepts them again.
    pub(crate) fn is_full(&self, full: bool) {
        self.full.store(full, Ordering::SeqCst);
    }

    pub(crate) fn stand_still_before_a_lease(&self) {
        self.slow.send_replace(Slow::BeforeALease);
    }

    pub(crate) fn stand_still_after_a_lease(&self) {
        self.slow.send_replace(Slow::AfterALease);
    }

    pub(crate) fn stand_still_at_the_next_load(&self) {
        self.slow.send_replace(Slow::AtTheNextLoad);
    }

    pub(crate) async fn wait_until_it_stands(&self) {
        let mut slow = self.slow.subscribe();
        within(slow.wait_for(|slow| *slow == Slow::Standing))
            .await
            .unwrap();
    }

    pub(crate) fn go_on(&self) {
        self.slow.send_replace(Slow::No);
    }

    async fn stand_still_at(&self, here: Slow) {
        if self.step(here, Slow::Standing) {
            let mut slow = self.slow.subscribe();
            slow.wait_for(|slow| *slow == Slow::No).await.unwrap();
        }
    }

    fn step(&self, from: Slow, to: Slow) -> bool {
        self.slow.send_if_modified(|slow| {
            let is_there = *slow == from;
            if is_there {
                *slow = to;
            }
            is_there
        })
    }
}

#[async_trait]
impl KeyValueStore for SlowStore {
    fn now_ms(&self) -> u64 {
        self.inner.now_ms()
    }

    async fn insert_unless(
        &self,
        barrier: Option<Name>,
        record: Record,
        event: Vec<u8>,
    ) -> Result<Inserted, StoreError> {
        if let Some(barrier) = barrier
            && self.load(barrier).await?.is_some()
        {
            return Ok(Inserted::Barred);
        }
        self.inner.insert(record, event).await
    }

    async fn load(&self, name: Name) -> Result<Option<Record>, StoreError> {
        let read = self.inner.load(name).await;
        self.stand_still_at(Slow::AtTheNextLoad).await;
        read
    }

    async fn replace(
        &self,
        record: Record,
        expected: u64,
        event: Option<Vec<u8>>,
    ) -> Result<Replaced, StoreError> {
        if self.full.load(Ordering::SeqCst) {
            return Err(StoreError::Full);
        }
        self.inner.replace(record, expected, event).await
    }

    async fn remove(&self, name: Name, event: Vec<u8>) -> Result<Option<Record>, StoreError> {
        self.inner.remove(name, event).await
    }

    async fn list(
        &self,
        index: Name,
        after: Option<&IndexEntry>,
        limit: usize,
    ) -> Result<Listing, StoreError> {
        self.inner.list(index, after, limit).await
    }

    async fn load_many(&self, names: &[Name]) -> Result<Vec<Loaded>, StoreError> {
        self.inner.load_many(names).await
    }

    async fn acquire_lease(
        &self,
        name: Name,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        self.stand_still_at(Slow::BeforeALease).await;
        let lease = self.inner.acquire_lease(name, holder, ttl).await;
        self.step(Slow::AfterALease, Slow::AtTheNextLoad);
        lease
    }

    async fn renew_lease(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError> {
        self.inner.renew_lease(lease, ttl).await
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        self.inner.release_lease(lease).await
    }

    async fn remember(&self, name: Name, value: &[u8], ttl: Duration) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.remember(name, value, ttl).await
    }

    async fn published(
        &self,
        after: Option<String>,
    ) -> Result<BoxStream<'static, Result<StoreUpdate, StoreError>>, StoreError> {
        self.inner.published(after).await
    }

    async fn position(&self) -> Result<String, StoreError> {
        self.inner.position().await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }
}
