//! The store that forgets: everything in this process, for tests and for trying things out.
//!
//! It is also the reference the other adapters are compared with.
//!
//! Invariants
//! - One lock: each verb is atomic, its event included.
//! - At most `capacity` records, and as many remembered values and leases; expired ones are cleared away
//!   before `Full` is answered.
//! - Clones share one store, so that two services in one process can stand for two replicas.
//!
//! Deliberately absent: anything that survives the process.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chassis::clock::Clock;
use futures_util::stream::BoxStream;
use tokio::sync::watch;

use super::follow::{self, EventLog, KEPT_EVENTS};
use super::leases::Leases;
use super::{
    Cursor, Entry, Holdings, Inserted, LOOKED_AT, Lease, Listing, LoadedRecord, Name, Record, Replaced,
    SessionStore, StoreError, StoreUpdate,
};

/// Records a memory store keeps at most: about 200 MB of usual sessions.
pub const DEFAULT_CAPACITY: usize = 100_000;

/// Expired entries cleared away with each write: two for each that a write can add, so that none stay.
const CLEARED_PER_WRITE: usize = 4;

static STORES: AtomicU64 = AtomicU64::new(0);

/// A store in this process's memory; clones share it.
#[derive(Clone)]
pub struct MemoryStore {
    kept: Arc<MemoryContents>,
    clock: Arc<dyn Clock>,
    capacity: usize,
    origin: Arc<str>,
}

struct MemoryContents {
    state: Mutex<MemoryState>,
    leases: Leases,
    latest: watch::Sender<u64>,
}

#[derive(Default)]
struct MemoryState {
    records: HashMap<Name, Record>,
    indexes: HashMap<Name, BTreeSet<(u64, Name)>>,
    expiring: BTreeSet<(u64, Name)>,
    remembered: HashMap<Name, (u64, Vec<u8>)>,
    forgetting: BTreeSet<(u64, Name)>,
    events: VecDeque<(u64, Vec<u8>)>,
}

impl MemoryStore {
    /// An empty store that keeps at most `capacity` records.
    pub fn new(clock: Arc<dyn Clock>, capacity: usize) -> Self {
        let number = STORES.fetch_add(1, Ordering::Relaxed);
        let origin = format!("{:x}.{}.{number}", clock.now_ms(), std::process::id()).into();
        let kept = MemoryContents {
            state: Mutex::new(MemoryState::default()),
            leases: Leases::new(0, capacity),
            latest: watch::Sender::new(0),
        };
        Self {
            kept: Arc::new(kept),
            clock,
            capacity,
            origin,
        }
    }

    /// What is held now.
    pub fn holdings(&self) -> Holdings {
        let state = self.kept.state();
        Holdings {
            records: state.records.len(),
            index_entries: state.indexes.values().map(BTreeSet::len).sum(),
            remembered: state.remembered.len(),
        }
    }

    /// Clears away everything expired; writes do so little by little.
    pub fn sweep(&self) {
        self.kept.state().sweep(self.clock.now_ms(), usize::MAX);
    }
}

impl MemoryContents {
    fn state(&self) -> MutexGuard<'_, MemoryState> {
        // No verb leaves the state half changed where it could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, state: &mut MemoryState, payload: Vec<u8>) {
        let number = *self.latest.borrow() + 1;
        state.events.push_back((number, payload));
        if state.events.len() as u64 > KEPT_EVENTS {
            state.events.pop_front();
        }
        self.latest.send_replace(number);
    }
}

impl EventLog for MemoryContents {
    fn read_after(&self, after: u64, limit: usize) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        let state = self.state();
        let start = state.events.partition_point(|(number, _)| *number <= after);
        Ok(state.events.range(start..).take(limit).cloned().collect())
    }
}

impl MemoryState {
    fn live(&self, name: Name, now_ms: u64) -> Option<&Record> {
        self.records
            .get(&name)
            .filter(|record| now_ms < record.expires_at_ms)
    }

    fn put(&mut self, record: Record) {
        for index in &record.indexes {
            let entry = (record.created_at_ms, record.name);
            self.indexes.entry(*index).or_default().insert(entry);
        }
        self.expiring.insert((record.expires_at_ms, record.name));
        self.records.insert(record.name, record);
    }

    fn take(&mut self, name: Name) -> Option<Record> {
        let record = self.records.remove(&name)?;
        self.expiring.remove(&(record.expires_at_ms, name));
        for index in &record.indexes {
            if let Some(entries) = self.indexes.get_mut(index) {
                entries.remove(&(record.created_at_ms, name));
                if entries.is_empty() {
                    self.indexes.remove(index);
                }
            }
        }
        Some(record)
    }

    fn sweep(&mut self, now_ms: u64, at_most: usize) {
        for _ in 0..at_most {
            let Some((_, name)) = self.expiring.first().filter(|(at, _)| *at <= now_ms).copied() else {
                break;
            };
            self.take(name);
        }
        for _ in 0..at_most {
            let Some((at, name)) = self.forgetting.pop_first() else {
                break;
            };
            if at > now_ms {
                self.forgetting.insert((at, name));
                break;
            }
            self.remembered.remove(&name);
        }
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    async fn insert_unless(
        &self,
        barrier: Option<Name>,
        record: Record,
        event: Vec<u8>,
    ) -> Result<Inserted, StoreError> {
        let now_ms = self.now_ms();
        let mut state = self.kept.state();
        state.sweep(now_ms, CLEARED_PER_WRITE);
        if barrier.is_some_and(|barrier| state.live(barrier, now_ms).is_some()) {
            return Ok(Inserted::Barred);
        }
        if state.live(record.name, now_ms).is_some() {
            return Ok(Inserted::Taken);
        }
        state.take(record.name);
        if state.records.len() >= self.capacity {
            state.sweep(now_ms, usize::MAX);
        }
        if state.records.len() >= self.capacity {
            return Err(StoreError::Full);
        }
        state.put(record);
        self.kept.publish(&mut state, event);
        Ok(Inserted::Done)
    }

    async fn load(&self, name: Name) -> Result<Option<Record>, StoreError> {
        Ok(self.kept.state().live(name, self.now_ms()).cloned())
    }

    async fn replace(
        &self,
        record: Record,
        expected: u64,
        event: Option<Vec<u8>>,
    ) -> Result<Replaced, StoreError> {
        let now_ms = self.now_ms();
        let mut state = self.kept.state();
        state.sweep(now_ms, CLEARED_PER_WRITE);
        match state.live(record.name, now_ms) {
            None => return Ok(Replaced::Missing),
            Some(current) if current.version != expected => return Ok(Replaced::Stale),
            Some(_) => {}
        }
        state.take(record.name);
        state.put(record);
        if let Some(event) = event {
            self.kept.publish(&mut state, event);
        }
        Ok(Replaced::Done)
    }

    async fn remove(&self, name: Name, event: Vec<u8>) -> Result<Option<Record>, StoreError> {
        let mut state = self.kept.state();
        if state.live(name, self.now_ms()).is_none() {
            return Ok(None);
        }
        let removed = state.take(name);
        self.kept.publish(&mut state, event);
        Ok(removed)
    }

    async fn list(&self, index: Name, after: Option<&Cursor>, limit: usize) -> Result<Listing, StoreError> {
        let now_ms = self.now_ms();
        let state = self.kept.state();
        let Some(entries) = state.indexes.get(&index) else {
            return Ok(Listing::default());
        };
        let older = after.map_or(Unbounded, |after| Excluded((after.created_at_ms, after.name)));
        let mut listing = Listing::default();
        let mut entries = entries.range((Unbounded, older)).rev().peekable();
        for &(created_at_ms, name) in entries.by_ref().take(limit.min(LOOKED_AT)) {
            let entry = Entry { name, created_at_ms };
            listing.next = Some(entry.cursor());
            if state.live(name, now_ms).is_some() {
                listing.entries.push(entry);
            }
        }
        listing.next = listing.next.filter(|_| entries.peek().is_some());
        Ok(listing)
    }

    async fn load_many(&self, names: &[Name]) -> Result<Vec<LoadedRecord>, StoreError> {
        let now_ms = self.now_ms();
        let state = self.kept.state();
        let loaded = names.iter().map(|&name| match state.live(name, now_ms) {
            Some(record) => LoadedRecord::Record(record.clone()),
            None => LoadedRecord::Gone,
        });
        Ok(loaded.collect())
    }

    async fn acquire_lease(
        &self,
        name: Name,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        self.kept.leases.acquire(name, holder, ttl, self.now_ms())
    }

    async fn renew_lease(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError> {
        Ok(self.kept.leases.renew(lease, ttl, self.now_ms()))
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        self.kept.leases.release(lease);
        Ok(())
    }

    async fn remember(&self, name: Name, value: &[u8], ttl: Duration) -> Result<Option<Vec<u8>>, StoreError> {
        let now_ms = self.now_ms();
        let mut state = self.kept.state();
        state.sweep(now_ms, CLEARED_PER_WRITE);
        if let Some((until, known)) = state.remembered.get(&name) {
            if now_ms < *until {
                return Ok(Some(known.clone()));
            }
            let stale = (*until, name);
            state.forgetting.remove(&stale);
            state.remembered.remove(&name);
        }
        if state.remembered.len() >= self.capacity {
            state.sweep(now_ms, usize::MAX);
        }
        if state.remembered.len() >= self.capacity {
            return Err(StoreError::Full);
        }
        let until = now_ms.saturating_add(super::millis(ttl));
        state.remembered.insert(name, (until, value.to_vec()));
        state.forgetting.insert((until, name));
        Ok(None)
    }

    async fn published(
        &self,
        after: Option<String>,
    ) -> Result<BoxStream<'static, Result<StoreUpdate, StoreError>>, StoreError> {
        let latest = self.kept.latest.subscribe();
        Ok(follow::follow(
            Arc::clone(&self.kept),
            Arc::clone(&self.origin),
            latest,
            after.as_deref(),
        ))
    }

    async fn position(&self) -> Result<String, StoreError> {
        Ok(follow::position(&self.origin, *self.kept.latest.borrow()))
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
