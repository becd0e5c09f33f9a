//! The store in one file: crash-safe, for one process, without a server. Also in memory, for tests.
//!
//! Invariants
//! - A write is acknowledged after its commit is on the disk. Writes that arrive during a commit share the
//!   next one, so that many writers need few disk flushes.
//! - Records, indexes, expiry and events change in one transaction: a crash leaves all or nothing.
//! - Without room no session begins; everything else continues in the released `ballast`. After a failed
//!   commit the file is reopened. Neither needs a restart.
//! - The file belongs to one process at a time and is readable by its owner only.
//!
//! Reads run on the caller's thread. They come from the engine's or the system's page cache and take
//! microseconds, less than handing them to another thread. Deliberately absent: leases on disk, see `leases`.

mod ballast;
mod error;
mod follow;
mod leases;
mod open_file;
mod tables;
mod worker;
mod writer;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chassis::clock::Clock;
use futures_util::stream::BoxStream;
use redb::{Error, ReadTransaction, ReadableTableMetadata as _};
use tokio::sync::watch;

use self::ballast::{Ballast, WriteKind};
use self::error::unreadable;
use self::leases::Leases;
use self::open_file::OpenFile;
use self::tables::{INDEX, RECORDS, REMEMBERED, Start};
use self::worker::Worker;
use self::writer::Writer;
use super::{
    IndexEntry, Inserted, KeyValueStore, LOOKED_AT, Lease, Listing, Loaded, Name, Record, Replaced,
    StoreCounts, StoreError, StoreUpdate, codec,
};

pub use self::error::{FileError, FileProblem};

/// Most records of a store in memory, and most remembered values: some 500 MB of usual sessions.
pub const DEFAULT_CAPACITY: usize = 100_000;

/// Most leases at a time: one for each session that is refreshing.
const MOST_LEASES: usize = 100_000;

/// A store of this process; clones share it.
#[derive(Clone)]
pub struct EmbeddedStore(Arc<EmbeddedState>);

struct EmbeddedState {
    // Dropped first, so that the last commit is done before the file is closed.
    writer: Writer,
    file: Arc<OpenFile>,
    latest: watch::Sender<u64>,
    leases: Mutex<Leases>,
    clock: Arc<dyn Clock>,
    origin: Arc<str>,
    /// Most records, and most remembered values. Without a value, the disk is the bound.
    capacity: Option<usize>,
}

impl EmbeddedStore {
    /// Opens or creates the file at `path`. Recovers it if the last process was killed.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, FileError> {
        let unusable = |error: std::io::Error| FileProblem::Unusable(error).of(path);
        let ballast = Ballast::of(path);
        let opened = loop {
            match OpenFile::open(path) {
                Err(error)
                    if matches!(error.problem, FileProblem::Full)
                        && ballast.give_up().map_err(unusable)?.is_some() => {}
                opened => break opened?,
            }
        };
        Self::over(opened, Some(ballast), clock, None).map_err(unusable)
    }

    /// An empty store of at most `capacity` records, in the memory of this process.
    pub fn in_memory(clock: Arc<dyn Clock>, capacity: usize) -> Result<Self, FileError> {
        let store = Self::over(OpenFile::in_memory()?, None, clock, Some(capacity));
        store.map_err(|error| FileProblem::Unusable(error).of(Path::new("memory:")))
    }

    fn over(
        (file, start): (OpenFile, Start),
        ballast: Option<Ballast>,
        clock: Arc<dyn Clock>,
        capacity: Option<usize>,
    ) -> std::io::Result<Self> {
        let (file, latest) = (Arc::new(file), watch::Sender::new(start.latest_event));
        let worker = Worker::new(Arc::clone(&file), ballast, latest.clone(), Arc::clone(&clock))?;
        Ok(Self(Arc::new(EmbeddedState {
            writer: Writer::start(worker)?,
            file,
            latest,
            leases: Mutex::new(Leases::new(capacity.unwrap_or(MOST_LEASES))),
            clock,
            origin: start.origin.into(),
            capacity,
        })))
    }

    /// Checks that the file can be opened, or created in its directory. Another process may have it open.
    pub(crate) fn check(path: &Path) -> Result<(), FileError> {
        open_file::check(path).map_err(|problem| problem.of(path))
    }

    /// The current contents, including expired entries that were not removed yet.
    pub fn holdings(&self) -> Result<StoreCounts, StoreError> {
        let held = |count| usize::try_from(count).unwrap_or(usize::MAX);
        self.0.file.read(|reading| {
            Ok(StoreCounts {
                records: held(reading.open_table(RECORDS)?.len()?),
                index_entries: held(reading.open_table(INDEX)?.len()?),
                remembered: held(reading.open_table(REMEMBERED)?.len()?),
            })
        })
    }

    /// Removes all expired entries. Writes do so little by little.
    pub async fn sweep(&self) -> Result<(), StoreError> {
        let clear = |tables: &mut tables::Tables<'_>| tables.sweep(usize::MAX);
        self.0.writer.write(WriteKind::Ending, clear).await
    }

    /// Fails if the store is at its capacity, expired entries not counted. A write of a known entry adds
    /// nothing.
    async fn check_room(
        &self,
        of: fn(&StoreCounts) -> usize,
        is_known: impl FnOnce(&ReadTransaction) -> Result<bool, Error>,
    ) -> Result<(), StoreError> {
        let Some(capacity) = self.0.capacity else {
            return Ok(());
        };
        if of(&self.holdings()?) < capacity {
            return Ok(());
        }
        self.sweep().await?;
        match of(&self.holdings()?) < capacity || self.0.file.read(is_known)? {
            true => Ok(()),
            false => Err(StoreError::Full),
        }
    }

    fn leases(&self) -> MutexGuard<'_, Leases> {
        self.0.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(reading: &ReadTransaction, name: Name, now_ms: u64) -> Result<Option<Record>, Error> {
    let records = reading.open_table(RECORDS)?;
    let Some(bytes) = records.get(&*name.digits())? else {
        return Ok(None);
    };
    let record = codec::decode(name, bytes.value()).ok_or_else(unreadable)?;
    Ok(Some(record).filter(|record| now_ms < record.expires_at_ms))
}

fn list(
    reading: &ReadTransaction,
    index: Name,
    after: Option<&IndexEntry>,
    limit: usize,
    now_ms: u64,
) -> Result<Listing, Error> {
    let records = reading.open_table(RECORDS)?;
    let entries = reading.open_table(INDEX)?;
    let digits = after.map(|after| after.name.digits());
    let created_at_ms = after.map_or(u64::MAX, |after| after.created_at_ms);
    let name = digits.as_deref().unwrap_or(tables::PAST_ANY_NAME);
    let index = index.digits();
    let range = entries.range((&*index, 0, "")..(&*index, created_at_ms, name))?;
    let mut listing = Listing::default();
    let mut range = range.rev();
    for entry in range.by_ref().take(limit.min(LOOKED_AT)) {
        let (key, _) = entry?;
        let (_, created_at_ms, digits) = key.value();
        let Ok(name) = Name::parse(digits) else { continue };
        let found = IndexEntry { name, created_at_ms };
        listing.next = Some(found);
        // A record and its entry are written together. Only an unreadable record leaves an entry when removed.
        let record = records.get(digits)?;
        let is_live = |bytes: &[u8]| codec::expiry(bytes).is_none_or(|expires_at_ms| now_ms < expires_at_ms);
        if record.is_some_and(|record| is_live(record.value())) {
            listing.entries.push(found);
        }
    }
    listing.next = listing.next.filter(|_| range.next().is_some());
    Ok(listing)
}

#[async_trait]
impl KeyValueStore for EmbeddedStore {
    fn now_ms(&self) -> u64 {
        self.0.clock.now_ms()
    }

    async fn insert_unless(
        &self,
        barrier: Option<Name>,
        record: Record,
        event: Vec<u8>,
    ) -> Result<Inserted, StoreError> {
        let (now_ms, name) = (self.now_ms(), record.name);
        let is_there = |reading: &ReadTransaction| {
            let mut names = barrier.into_iter().chain([name]);
            Ok(names.any(|name| !matches!(load(reading, name, now_ms), Ok(None))))
        };
        self.check_room(|held| held.records, is_there).await?;
        // A record without an index is a mark or another small note.
        let kind = if record.indexes.is_empty() {
            WriteKind::Ending
        } else {
            WriteKind::Addition
        };
        self.0
            .writer
            .write(kind, move |tables| tables.insert(&record, &event, barrier))
            .await
    }

    async fn load(&self, name: Name) -> Loaded {
        let now_ms = self.now_ms();
        self.0.file.read(|reading| load(reading, name, now_ms))
    }

    async fn replace(
        &self,
        record: Record,
        expected: u64,
        event: Option<Vec<u8>>,
    ) -> Result<Replaced, StoreError> {
        self.0
            .writer
            .write(WriteKind::Change, move |tables| {
                tables.replace(&record, expected, event.as_deref())
            })
            .await
    }

    async fn remove(&self, name: Name, event: Vec<u8>) -> Result<Option<Record>, StoreError> {
        self.0
            .writer
            .write(WriteKind::Ending, move |tables| tables.remove(name, &event))
            .await
    }

    async fn list(
        &self,
        index: Name,
        after: Option<&IndexEntry>,
        limit: usize,
    ) -> Result<Listing, StoreError> {
        let now_ms = self.now_ms();
        self.0
            .file
            .read(|reading| list(reading, index, after, limit, now_ms))
    }

    async fn load_many(&self, names: &[Name]) -> Result<Vec<Loaded>, StoreError> {
        let now_ms = self.now_ms();
        self.0.file.read(|reading| {
            let loaded = names.iter().map(|name| match load(reading, *name, now_ms) {
                Err(Error::Corrupted(_)) => Ok(Err(StoreError::Corrupt)),
                loaded => loaded.map(Ok),
            });
            loaded.collect()
        })
    }

    async fn acquire_lease(
        &self,
        name: Name,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        // Work under a lease, such as a refresh, has a result that must be stored.
        self.0.writer.check_changes()?;
        self.leases().acquire(name, holder, ttl, self.now_ms())
    }

    async fn renew_lease(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError> {
        Ok(self.leases().renew(lease, ttl, self.now_ms()))
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        self.leases().release(lease);
        Ok(())
    }

    async fn remember(&self, name: Name, value: &[u8], ttl: Duration) -> Result<Option<Vec<u8>>, StoreError> {
        let (name, value) = (name.to_string(), value.to_vec());
        let is_remembered =
            |reading: &ReadTransaction| Ok(reading.open_table(REMEMBERED)?.get(&*name)?.is_some());
        self.check_room(|held| held.remembered, is_remembered).await?;
        self.0
            .writer
            .write(WriteKind::Addition, move |tables| {
                tables.remember(&name, &value, ttl)
            })
            .await
    }

    async fn published(
        &self,
        after: Option<String>,
    ) -> Result<BoxStream<'static, Result<StoreUpdate, StoreError>>, StoreError> {
        let (file, origin) = (Arc::clone(&self.0.file), Arc::clone(&self.0.origin));
        Ok(follow::follow(
            file,
            origin,
            self.0.latest.subscribe(),
            after.as_deref(),
        ))
    }

    async fn position(&self) -> Result<String, StoreError> {
        Ok(follow::position(&self.0.origin, *self.0.latest.borrow()))
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.0.writer.check()?;
        self.0
            .file
            .read(|reading| load(reading, Name::FIRST, 0))
            .map(|_| ())
    }
}
