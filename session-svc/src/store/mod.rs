//! The store port: what sessions need from a store.
//!
//! Stores receive hashed names and sealed payloads, never session IDs, tokens or claims. All adapters pass
//! the same contract suite.
//!
//! Invariants
//! - A write is acknowledged only when it survives the failures that the adapter promises to survive.
//! - Every write compares versions and publishes its event in the same atomic step.
//! - A removed record cannot be written again: `replace` on it answers `Missing`.
//! - A record disappears with its index entries once the store's own clock reaches `expires_at_ms`.

mod codec;
pub mod embedded;
mod measured;
mod open;
pub(crate) mod redis;
pub mod url;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chassis::findings::Check;
use futures_util::stream::BoxStream;

pub(crate) use self::measured::MeasuredStore;
pub(crate) use self::open::check;
pub use self::open::{OpenError, open, open_from};

pub use crate::session::Name;

/// A sealed record: a session, a mark of an ending, or a note of a revocation or an event. Stores see no
/// difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its key: a session's handle, or a one-way hash.
    pub name: Name,
    /// Grows by one with every write that changes something; the first is 1.
    pub version: u64,
    /// When the store may forget the record, in milliseconds since the Unix epoch by the store's clock.
    pub expires_at_ms: u64,
    /// Order within an index: creation time in milliseconds since the Unix epoch. Never changes.
    pub created_at_ms: u64,
    /// The indexes that list the record since its last write; none for a mark. The first index is that of the
    /// session's user.
    pub indexes: Vec<Name>,
    /// The sealed content.
    pub payload: Vec<u8>,
}

/// The result of `replace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// The record was replaced.
    Done,
    /// The record has another version than expected; nothing was written.
    Stale,
    /// There is no such record; nothing was written.
    Missing,
}

/// The result of `insert`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The record is kept.
    Done,
    /// A record of that name exists; nothing was written.
    Taken,
    /// The barrier record exists; nothing was written.
    Barred,
}

/// An entry of a list. A list can continue after an entry that no longer exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// When the record was created, in milliseconds since the Unix epoch by the store's clock.
    pub created_at_ms: u64,
    /// The record.
    pub name: Name,
}

impl IndexEntry {
    /// Parses the form of [`IndexEntry::to_bytes`]; `None` for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (created_at_ms, name) = bytes.split_first_chunk()?;
        Some(Self {
            created_at_ms: u64::from_be_bytes(*created_at_ms),
            name: Name::from_bytes(name.try_into().ok()?),
        })
    }

    /// The form for a client that continues the list.
    pub fn to_bytes(self) -> Vec<u8> {
        [&self.created_at_ms.to_be_bytes()[..], self.name.as_bytes()].concat()
    }
}

/// A part of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The entries found; may be short or empty before the end.
    pub entries: Vec<IndexEntry>,
    /// Where the next part begins; `None` at the end.
    pub next: Option<IndexEntry>,
}

/// The result of reading a record: `None` after expiry or removal, `Corrupt` if this release cannot read it.
pub type Loaded = Result<Option<Record>, StoreError>;

/// An exclusive right, held for a limited time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The name of the lease.
    pub name: Name,
    /// Grows with every lease granted under this name, so that a holder can only release its last lease. Writes
    /// do not check the serial: the record's version rejects the write of a late holder.
    pub serial: u64,
    /// The holder's name, which is unique.
    pub holder: String,
}

/// An event published by a write. Events of one record arrive in the order of its writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUpdate {
    /// The sealed event, and the position to resume after it.
    Event {
        /// Opaque position.
        position: String,
        /// The sealed event.
        payload: Vec<u8>,
    },
    /// Events after the requested position, or after the last event sent, were lost.
    Missed,
}

/// Why a store failed. A retry may help unless the error says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The engine cannot be reached, is failing over, or answered too late.
    #[error("the session store cannot be reached")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The store has no room: its memory, its disk or its configured capacity is used up.
    #[error("the session store is full")]
    Full,
    /// The store returned something that this service does not write.
    #[error("the session store holds a record this service cannot read")]
    Corrupt,
}

/// Keeps sealed sessions, leases and published events.
#[async_trait]
pub trait KeyValueStore: Send + Sync + 'static {
    /// The same store for one worker, with its own connection, made on first use. `None` for a store without
    /// connections.
    fn for_worker(&self) -> Option<Arc<dyn KeyValueStore>> {
        None
    }

    /// The store's clock, in milliseconds since the Unix epoch, which decides all expiry. A shared store has
    /// its own, so that replicas whose clocks differ agree.
    fn now_ms(&self) -> u64;

    /// Inserts a record and publishes `event`.
    async fn insert(&self, record: Record, event: Vec<u8>) -> Result<Inserted, StoreError> {
        self.insert_unless(None, record, event).await
    }

    /// Inserts a record and publishes `event`, unless the record `barrier` exists. This is one step only if
    /// one server has both. Otherwise it may miss a new barrier, so the caller has to check again.
    async fn insert_unless(
        &self,
        barrier: Option<Name>,
        record: Record,
        event: Vec<u8>,
    ) -> Result<Inserted, StoreError>;

    /// Reads a record. One round trip.
    async fn load(&self, name: Name) -> Loaded;

    /// Replaces a record if its version is `expected`, and publishes `event` if there is one. The new record
    /// names the indexes that list it from then on.
    async fn replace(
        &self,
        record: Record,
        expected: u64,
        event: Option<Vec<u8>>,
    ) -> Result<Replaced, StoreError>;

    /// Removes a record and its index entries and publishes `event`; `None` if the record did not exist. Also
    /// removes an unreadable record, and answers with `Corrupt`.
    async fn remove(&self, name: Name, event: Vec<u8>) -> Result<Option<Record>, StoreError>;

    /// Returns once the removal of these records is permanent; without names, of all records removed so far.
    /// True if a replica acknowledged it, false if no replica was asked. After an error the records are still
    /// removed, and the caller can ask again.
    async fn confirm_removed(&self, _names: &[Name]) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Entries of an index after `after`, the newest first, at most `limit`. One call examines a bounded
    /// number of entries, so it may return fewer. An entry that stays is returned exactly once. The caller has
    /// to check the entry's record: it may be gone, or in other lists by now.
    async fn list(
        &self,
        index: Name,
        after: Option<&IndexEntry>,
        limit: usize,
    ) -> Result<Listing, StoreError>;

    /// Reads several records, in the order of their names. One round trip; the caller bounds their number.
    async fn load_many(&self, names: &[Name]) -> Result<Vec<Loaded>, StoreError>;

    /// Acquires a lease for `ttl` unless another holder has it. Its holder may acquire it again, because an
    /// abandoned request may still take effect. Only the last lease acquired can be released.
    async fn acquire_lease(
        &self,
        name: Name,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError>;

    /// Extends a lease by `ttl` from now, even if its holder acquired it again. False if the holder lost it.
    async fn renew_lease(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError>;

    /// Releases a lease. Does nothing if the lease expired or was acquired again since.
    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError>;

    /// Stores `value` under `name` for `ttl` unless there is a value, and returns the existing value. For
    /// idempotent requests and replay guards.
    async fn remember(&self, name: Name, value: &[u8], ttl: Duration) -> Result<Option<Vec<u8>>, StoreError>;

    /// All events after `after` (or from now on), across replicas, in any order between records. Ends with an
    /// error if the store's events cannot be read. Never loses an event silently: a gap is sent as `Missed`.
    async fn published(
        &self,
        after: Option<String>,
    ) -> Result<BoxStream<'static, Result<StoreUpdate, StoreError>>, StoreError>;

    /// The newest position: `published` after it returns everything written from now on.
    async fn position(&self) -> Result<String, StoreError>;

    /// Succeeds if the store works now.
    async fn check(&self) -> Result<(), StoreError>;

    /// Checks of the servers of a shared store.
    async fn facts(&self) -> Result<Vec<Check>, StoreError> {
        Ok(Vec::new())
    }
}

/// Most entries that one call of `list` examines: bounds how long it occupies a store.
const LOOKED_AT: usize = 1_000;

/// The contents of an embedded store, including expired entries that were not removed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreCounts {
    /// Records.
    pub records: usize,
    /// Entries of all indexes.
    pub index_entries: usize,
    /// Remembered values.
    pub remembered: usize,
}

/// Whole milliseconds of `duration`.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
