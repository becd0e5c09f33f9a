//! The store port: what sessions need from whatever keeps them.
//!
//! A store sees names that were hashed and payloads that were sealed above it; it never sees a session
//! ID, a token or a claim. Every adapter passes the same contract suite.
//!
//! Invariants
//! - A write is acknowledged only when it survives what the adapter promises to survive.
//! - Every write compares versions and publishes its event in the same atomic step.
//! - A removed record can not be written again: `replace` on it answers `Missing`.
//! - A record is gone once `expires_at_ms` is reached by the store's own clock, and its index entries with it.

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

/// A sealed record: a session, a mark of an ending, a note of a revocation or of an event. A store cannot tell them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it is found by: a session's handle, or a one-way hash.
    pub name: Name,
    /// Grows by one with every write that changes something; the first is 1.
    pub version: u64,
    /// When the store may forget the record, in milliseconds since the Unix epoch by the store's clock.
    pub expires_at_ms: u64,
    /// Order within an index: creation time in milliseconds since the Unix epoch. Never changes.
    pub created_at_ms: u64,
    /// Lists the record is found by, none for a mark: those of its last write. The first, a session's person, is listed in
    /// the order of creation.
    pub indexes: Vec<Name>,
    /// What was sealed.
    pub payload: Vec<u8>,
}

/// What became of a `replace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// The record is now the one given.
    Done,
    /// The record has another version than expected; nothing was written.
    Stale,
    /// There is no such record; nothing was written.
    Missing,
}

/// What became of an `insert`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The record is kept.
    Done,
    /// A record of that name is there already; nothing was written.
    Taken,
    /// The record is there that keeps this one out; nothing was written.
    Barred,
}

/// An entry of a list. A list goes on behind one, also when that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When the record was created, in milliseconds since the Unix epoch by the store's clock.
    pub created_at_ms: u64,
    /// Which record.
    pub name: Name,
}

impl Entry {
    /// Reads what [`Entry::to_bytes`] wrote; `None` if it is something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (created_at_ms, name) = bytes.split_first_chunk()?;
        Some(Self {
            created_at_ms: u64::from_be_bytes(*created_at_ms),
            name: Name::from_bytes(name.try_into().ok()?),
        })
    }

    /// For a client that continues the list.
    pub fn to_bytes(self) -> Vec<u8> {
        [&self.created_at_ms.to_be_bytes()[..], self.name.as_bytes()].concat()
    }
}

/// A part of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// What was found; may be short or empty before the end.
    pub entries: Vec<Entry>,
    /// Gives the next part; `None` at the end.
    pub next: Option<Entry>,
}

/// What reading a record brings: `None` once it has expired or was removed, `Corrupt` if it is not what this release writes.
pub type Loaded = Result<Option<Record>, StoreError>;

/// A right to do something alone, held for a limited time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What is held.
    pub name: Name,
    /// Tells the leases of one holder apart when one is given back: grows with every lease granted on this name.
    /// No write is compared with it; what a late holder writes is refused by the record's version.
    pub serial: u64,
    /// The holder's name, which nobody else has.
    pub holder: String,
}

/// Something published by a write. Those of one record come in the order of its writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUpdate {
    /// The sealed event, and the position to resume after it.
    Event {
        /// Opaque position.
        position: String,
        /// The sealed event.
        payload: Vec<u8>,
    },
    /// Events between the position requested (or the last one sent) and the next were lost.
    Missed,
}

/// Why a store could not do its work. Always worth retrying unless it says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The engine cannot be reached, is failing over, or answered too late.
    #[error("the session store cannot be reached")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The store is at its configured bound.
    #[error("the session store is full")]
    Full,
    /// What the store gave back is not what this service writes.
    #[error("the session store holds a record this service cannot read")]
    Corrupt,
}

/// Keeps sealed sessions, leases and published events.
#[async_trait]
pub trait SessionStore: Send + Sync + 'static {
    /// The same store for one worker, with a connection of its own, made on the worker that first uses it; `None` where there
    /// are no connections.
    fn for_worker(&self) -> Option<Arc<dyn SessionStore>> {
        None
    }

    /// The store's clock, in milliseconds since the Unix epoch. All expiry is judged by it. With a
    /// shared store it is the store's own, so that replicas whose clocks differ agree.
    fn now_ms(&self) -> u64;

    /// Keeps a new record and publishes `event`.
    async fn insert(&self, record: Record, event: Vec<u8>) -> Result<Inserted, StoreError> {
        self.insert_unless(None, record, event).await
    }

    /// Keeps a new record and publishes `event`, unless the record `barrier` is there: in one step where one server has both. Where it
    /// does not, a barrier that appears between the two steps is overlooked, so the caller looks for it again.
    async fn insert_unless(
        &self,
        barrier: Option<Name>,
        record: Record,
        event: Vec<u8>,
    ) -> Result<Inserted, StoreError>;

    /// Reads a record. One round trip.
    async fn load(&self, name: Name) -> Loaded;

    /// Replaces a record if its version is `expected`, and publishes `event` if there is one. From then on the record is
    /// found by the lists this one names.
    async fn replace(
        &self,
        record: Record,
        expected: u64,
        event: Option<Vec<u8>>,
    ) -> Result<Replaced, StoreError>;

    /// Removes a record and its index entries and publishes `event`; `None` if there was none. One that cannot be
    /// read is removed as well, and answered with `Corrupt`.
    async fn remove(&self, name: Name, event: Vec<u8>) -> Result<Option<Record>, StoreError>;

    /// Answers when records that were removed, or without names everything that was, will not be back: with a master that is held to its
    /// replicas, once one of them has acknowledged it; false if none is asked. An error leaves them removed, and the question can be
    /// asked again.
    async fn confirm_removed(&self, _names: &[Name]) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Entries of an index, the newest first, at most `limit`, behind `after`. One call looks at a bounded number of entries, and so
    /// may find fewer than there are. What stays from beginning to end is found once. An entry proves nothing: its record may be gone
    /// by now, or may have moved to other lists, which it says itself.
    async fn list(&self, index: Name, after: Option<&Entry>, limit: usize) -> Result<Listing, StoreError>;

    /// Reads several records, in the order of their names. One round trip; the caller bounds how many.
    async fn load_many(&self, names: &[Name]) -> Result<Vec<Loaded>, StoreError>;

    /// Takes a lease for `ttl` if nobody else holds it. Its holder takes it anew, for a request that was given up may have
    /// been done, or be done yet: of its leases the last one acquired can be given back.
    async fn acquire_lease(
        &self,
        name: Name,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError>;

    /// Prolongs a lease by `ttl` from now, also one its holder has acquired anew; false if the holder has none any more.
    async fn renew_lease(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError>;

    /// Gives a lease back; nothing happens if it is not held any more, or was acquired anew since.
    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError>;

    /// Remembers `value` under `name` for `ttl` if nothing is remembered there yet; gives what was there
    /// before. For idempotent requests and replay guards.
    async fn remember(&self, name: Name, value: &[u8], ttl: Duration) -> Result<Option<Vec<u8>>, StoreError>;

    /// Everything published after `after` (or from now on), across replicas; of two records in any order. Ends with an error when the
    /// store's events cannot be read; never silently loses one: a gap is sent as `Missed`.
    async fn published(
        &self,
        after: Option<String>,
    ) -> Result<BoxStream<'static, Result<StoreUpdate, StoreError>>, StoreError>;

    /// The newest position: `published` after it gives everything that is written from now on.
    async fn position(&self) -> Result<String, StoreError>;

    /// Answers if the store can do its work now.
    async fn check(&self) -> Result<(), StoreError>;

    /// What the servers of a shared store say of themselves.
    async fn facts(&self) -> Result<Vec<Check>, StoreError> {
        Ok(Vec::new())
    }
}

/// Entries one call of `list` looks at, at most: bounds how long it keeps a store from other calls.
const LOOKED_AT: usize = 1_000;

/// How much an embedded store holds, expired entries that were not cleared away yet included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holdings {
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
