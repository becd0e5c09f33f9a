//! A store of a few maps for the many runs of `interleavings`: no time passes, no events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use session_svc::store::{
    IndexEntry, Inserted, KeyValueStore, Lease, Listing, Loaded, Name, Record, Replaced, StoreError,
    StoreUpdate,
};

use super::support::START_MS;

#[derive(Clone, Default)]
pub(crate) struct PlainStore(Arc<Mutex<Maps>>);

#[derive(Default)]
struct Maps {
    records: HashMap<Name, Record>,
    leases: HashMap<Name, Lease>,
    remembered: HashMap<Name, Vec<u8>>,
    granted: u64,
}

impl PlainStore {
    fn maps(&self) -> MutexGuard<'_, Maps> {
        self.0.lock().unwrap()
    }

    /// Whether a listed record remains: a session or a note, but no mark.
    pub(crate) fn lists_any(&self) -> bool {
        self.maps()
            .records
            .values()
            .any(|record| !record.indexes.is_empty())
    }
}

#[async_trait]
impl KeyValueStore for PlainStore {
    fn now_ms(&self) -> u64 {
        START_MS
    }

    async fn insert_unless(
        &self,
        barrier: Option<Name>,
        record: Record,
        _event: Vec<u8>,
    ) -> Result<Inserted, StoreError> {
        let mut maps = self.maps();
        if barrier.is_some_and(|barrier| maps.records.contains_key(&barrier)) {
            return Ok(Inserted::Barred);
        }
        if maps.records.contains_key(&record.name) {
            return Ok(Inserted::Taken);
        }
        maps.records.insert(record.name, record);
        Ok(Inserted::Done)
    }

    async fn load(&self, name: Name) -> Result<Option<Record>, StoreError> {
        Ok(self.maps().records.get(&name).cloned())
    }

    async fn replace(
        &self,
        record: Record,
        expected: u64,
        _event: Option<Vec<u8>>,
    ) -> Result<Replaced, StoreError> {
        match self.maps().records.get_mut(&record.name) {
            None => Ok(Replaced::Missing),
            Some(known) if known.version != expected => Ok(Replaced::Stale),
            Some(known) => {
                *known = record;
                Ok(Replaced::Done)
            }
        }
    }

    async fn remove(&self, name: Name, _event: Vec<u8>) -> Result<Option<Record>, StoreError> {
        Ok(self.maps().records.remove(&name))
    }

    async fn list(
        &self,
        index: Name,
        after: Option<&IndexEntry>,
        limit: usize,
    ) -> Result<Listing, StoreError> {
        assert!(after.is_none(), "one page is enough for a session or two");
        let maps = self.maps();
        let listed = maps
            .records
            .values()
            .filter(|record| record.indexes.contains(&index));
        let mut entries: Vec<IndexEntry> = listed
            .map(|record| IndexEntry {
                created_at_ms: record.created_at_ms,
                name: record.name,
            })
            .collect();
        entries.sort_by_key(|entry| std::cmp::Reverse((entry.created_at_ms, entry.name)));
        assert!(entries.len() <= limit, "one page is enough for a session or two");
        Ok(Listing { entries, next: None })
    }

    async fn load_many(&self, names: &[Name]) -> Result<Vec<Loaded>, StoreError> {
        let maps = self.maps();
        let loaded = names.iter().map(|name| Ok(maps.records.get(name).cloned()));
        Ok(loaded.collect())
    }

    async fn acquire_lease(
        &self,
        name: Name,
        holder: &str,
        _ttl: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let mut maps = self.maps();
        if maps.leases.get(&name).is_some_and(|held| held.holder != holder) {
            return Ok(None);
        }
        maps.granted += 1;
        let lease = Lease {
            name,
            serial: maps.granted,
            holder: holder.to_owned(),
        };
        maps.leases.insert(name, lease.clone());
        Ok(Some(lease))
    }

    async fn renew_lease(&self, lease: &Lease, _ttl: Duration) -> Result<bool, StoreError> {
        let maps = self.maps();
        let held = maps.leases.get(&lease.name);
        Ok(held.is_some_and(|held| held.holder == lease.holder))
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        let mut maps = self.maps();
        if maps.leases.get(&lease.name) == Some(lease) {
            maps.leases.remove(&lease.name);
        }
        Ok(())
    }

    async fn remember(
        &self,
        name: Name,
        value: &[u8],
        _ttl: Duration,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let mut maps = self.maps();
        let before = maps.remembered.get(&name).cloned();
        if before.is_none() {
            maps.remembered.insert(name, value.to_vec());
        }
        Ok(before)
    }

    async fn published(
        &self,
        _after: Option<String>,
    ) -> Result<BoxStream<'static, Result<StoreUpdate, StoreError>>, StoreError> {
        Ok(stream::pending().boxed())
    }

    async fn position(&self) -> Result<String, StoreError> {
        Ok("0".to_owned())
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
