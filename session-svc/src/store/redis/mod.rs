//! The shared store: Redis or Valkey, as one server, with Sentinels, or as a cluster.
//!
//! Keys, all below one prefix:
//! ```text
//! sNAME   a record as `codec` writes it, expiring at its time
//! i{XXXX} the indexes whose names begin with these digits: sorted set of entries by expiry, see `keys`
//! o{XXXX} the entries of a large index by creation
//! lNAME   a lease: "serial:holder"
//! mNAME   a remembered value
//! e       the stream of published events
//! e{N}    in a cluster instead: one stream for each of the `partitions`
//! w       written and removed at once, so that replicas acknowledge it; in a cluster one next to each stream
//! ```
//!
//! Invariants
//! - A load, a page of a list and a write each take one round trip. In a cluster, keys live on different
//!   nodes, so writes that touch indexes take more.
//! - On one server or with Sentinels, a write, its index entries and its event are one atomic script.
//! - The time is the server's: keys expire by it, and `now_ms` follows it (see `clock`).
//! - An index cannot leak: entries are scored by their record's expiry. Every write to a set trims expired
//!   entries, and the set itself expires with its last entry.
//! - A list costs a page. A small set is read at once; a large one is read by range.
//! - Serials of leases come from the server's clock in microseconds. They grow unless that clock is set back.
//!   No write depends on them: the version check rejects stale writes.
//!
//! In a cluster, a record and its indexes live on different nodes, so there is no common script. Entries are
//! written or extended before their record and removed after it. A crash may leave an entry without a record,
//! never the reverse. Readers of the list skip such an entry, and it expires.
//!
//! The script of a write publishes the event in a stream on the same node. If the node has no candidate stream
//! (fragmented or migrating slots), the replica publishes the event after the write, with retries for a while.
//! If the stream's node is down meanwhile, listeners receive an error. If the answer to a write is lost, the
//! replica publishes a gap. An event is lost only if the replica dies before it, or all retries fail.
//!
//! Deliberately absent: reads from replicas, which could return an ended session.

mod acknowledged;
mod answers;
mod clock;
mod entries;
mod events;
mod facts;
mod keys;
mod partitions;
mod pool;
mod positions;
mod reload;
mod scripts;
mod sentinels;
mod source;
mod span;
mod stream;
mod writes;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chassis::clock::Clock;
use chassis::findings::Check;
use chassis::tls::CertificateGauges;
use futures_util::future::try_join_all;
use futures_util::stream::BoxStream;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use self::answers::unavailable;
use self::clock::ServerClock;
use self::events::EventFeed;
use self::keys::{KeyNames, PAST_ANY_ENTRY};
use self::pool::WorkerConnection;
use self::source::ConnectionSource;
pub(crate) use self::source::{SetupError, check};
use super::url::{RedisSettings, Topology};
use super::{
    IndexEntry, Inserted, KeyValueStore, LOOKED_AT, Lease, Listing, Loaded, Name, Record, Replaced,
    StoreError, StoreUpdate, codec, millis,
};

/// How long `open` waits for a first connection and the server's time. The store opens in any case.
const FIRST_CONTACT: Duration = Duration::from_secs(2);

/// A store in Redis or Valkey, shared by all replicas.
#[derive(Clone)]
pub(crate) struct RedisStore {
    shared: Arc<RedisShared>,
    connection: WorkerConnection,
}

/// State that the stores of all workers share.
struct RedisShared {
    clock: Arc<ServerClock>,
    events: EventFeed,
    /// For `WAIT` only, which blocks later commands.
    waiting: WorkerConnection,
    keys: KeyNames,
    /// Whether keys live on several nodes, so that no script can read or change them together.
    scattered: bool,
    /// Whether a replica has to replace a lost master: with Sentinels, and in a cluster.
    needs_replicas: bool,
    _following: Option<AbortOnDropHandle<()>>,
}

impl RedisStore {
    /// Connects in the background; `fallback` gives the time until the server has answered. Follows changes of
    /// the certificates and of the settings file `came_from`. `shown` reports the certificate of this service.
    pub(crate) async fn open(
        settings: &RedisSettings,
        came_from: Option<&Path>,
        fallback: Arc<dyn Clock>,
        shown: Option<CertificateGauges>,
    ) -> Result<Self, SetupError> {
        let source = Arc::new(ConnectionSource::new(settings)?);
        let (sender, sources) = watch::channel(source);
        let following = reload::follow(sender, settings, came_from, shown);
        let connection = WorkerConnection::new(sources)?;
        let clock = ServerClock::start(connection.clone(), &*fallback);
        let first_contact = async {
            // The first answer includes connecting; the second gives the time.
            clock.synchronise(&connection).await?;
            clock.synchronise(&connection).await
        };
        let _ = tokio::time::timeout(FIRST_CONTACT, first_contact).await;
        let keys = KeyNames::new(&settings.prefix);
        let scattered = matches!(settings.topology, Topology::Cluster(_));
        let shared = RedisShared {
            clock,
            events: EventFeed::new(&connection, &keys, scattered),
            waiting: connection.another()?,
            keys,
            scattered,
            needs_replicas: !matches!(settings.topology, Topology::Single(_)),
            _following: following,
        };
        Ok(Self {
            shared: Arc::new(shared),
            connection,
        })
    }

    /// The bytes of a record.
    async fn read_record(&self, name: Name) -> Result<Option<Vec<u8>>, StoreError> {
        let mut command = redis::cmd("GET");
        command.arg(self.shared.keys.record(name));
        self.connection.read(&command).await.map_err(unavailable)
    }

    /// Completes a write even if its caller goes away: in a cluster it has several steps.
    async fn whole<T: Send + 'static>(
        &self,
        write: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        if !self.shared.scattered {
            return write.await;
        }
        match tokio::spawn(write.in_current_span()).await {
            Ok(outcome) => outcome,
            Err(stopped) => Err(StoreError::Unavailable(Box::new(stopped))),
        }
    }
}

/// The longest lifetime. The server still represents the current time plus this lifetime exactly.
const LONGEST_MS: u64 = 1 << 52;

/// The lifetime in milliseconds, at least one.
fn lasting(ttl: Duration) -> u64 {
    millis(ttl).clamp(1, LONGEST_MS)
}

fn decoded(name: Name, bytes: Option<Vec<u8>>) -> Loaded {
    let record = bytes.map(|bytes| codec::decode(name, &bytes).ok_or(StoreError::Corrupt));
    record.transpose()
}

#[async_trait]
impl KeyValueStore for RedisStore {
    fn for_worker(&self) -> Option<Arc<dyn KeyValueStore>> {
        Some(Arc::new(Self {
            shared: Arc::clone(&self.shared),
            connection: self.connection.another().ok()?,
        }))
    }

    fn now_ms(&self) -> u64 {
        self.shared.clock.now_ms()
    }

    async fn insert_unless(
        &self,
        mut barrier: Option<Name>,
        record: Record,
        event: Vec<u8>,
    ) -> Result<Inserted, StoreError> {
        if self.shared.scattered
            && let Some(elsewhere) = barrier.take()
            && self.load(elsewhere).await?.is_some()
        {
            return Ok(Inserted::Barred);
        }
        let store = self.clone();
        self.whole(async move { store.insert_record(&record, event, barrier).await })
            .await
    }

    async fn load(&self, name: Name) -> Loaded {
        decoded(name, self.read_record(name).await?)
    }

    async fn replace(
        &self,
        record: Record,
        expected: u64,
        event: Option<Vec<u8>>,
    ) -> Result<Replaced, StoreError> {
        let store = self.clone();
        self.whole(async move { store.replace_record(&record, expected, event).await })
            .await
    }

    async fn remove(&self, name: Name, event: Vec<u8>) -> Result<Option<Record>, StoreError> {
        let store = self.clone();
        self.whole(async move { store.remove_record(name, event).await })
            .await
    }

    async fn confirm_removed(&self, names: &[Name]) -> Result<bool, StoreError> {
        self.shared.acknowledged(names).await
    }

    async fn list(
        &self,
        index: Name,
        after: Option<&IndexEntry>,
        limit: usize,
    ) -> Result<Listing, StoreError> {
        let limit = limit.clamp(1, LOOKED_AT);
        let location = self.shared.keys.index(index);
        let after = after.map_or(PAST_ANY_ENTRY.to_vec(), |after| after.to_bytes());
        let call = scripts::LIST.call().key(location.key).key(location.order);
        let call = call.arg(location.begins).arg(after.as_slice()).arg(limit + 1);
        let (is_small, mut ends): (bool, Vec<Vec<u8>>) = call.read(&self.connection).await?;
        if is_small {
            ends.retain(|end| *end < after);
            ends.sort_unstable_by(|one, other| other.cmp(one));
        }
        let has_more = ends.len() > limit;
        ends.truncate(limit);
        let entries = ends.iter().filter_map(|end| IndexEntry::from_bytes(end));
        let entries: Vec<IndexEntry> = entries.collect();
        let last = entries.last().copied();
        Ok(Listing {
            next: last.filter(|_| has_more),
            entries,
        })
    }

    async fn load_many(&self, names: &[Name]) -> Result<Vec<Loaded>, StoreError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let records: Vec<Option<Vec<u8>>> = if self.shared.scattered {
            // The client sends a command for several nodes only once another of its requests ends, which may be
            // after the deadline. So each record has a command of its own.
            try_join_all(names.iter().map(|name| self.read_record(*name))).await?
        } else {
            let mut command = redis::cmd("MGET");
            for name in names {
                command.arg(self.shared.keys.record(*name));
            }
            self.connection.read(&command).await.map_err(unavailable)?
        };
        let loaded = names.iter().zip(records);
        Ok(loaded.map(|(name, bytes)| decoded(*name, bytes)).collect())
    }

    async fn acquire_lease(
        &self,
        name: Name,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let call = scripts::ACQUIRE
            .call()
            .key(self.shared.keys.lease(name))
            .arg(holder)
            .arg(lasting(ttl));
        let serial: Option<u64> = call.run(&self.connection).await?;
        Ok(serial.map(|serial| Lease {
            name,
            serial,
            holder: holder.to_owned(),
        }))
    }

    async fn renew_lease(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError> {
        let call = scripts::RENEW.call().key(self.shared.keys.lease(lease.name));
        call.arg(&lease.holder)
            .arg(lasting(ttl))
            .run(&self.connection)
            .await
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        let call = scripts::RELEASE
            .call()
            .key(self.shared.keys.lease(lease.name))
            .arg(keys::lease_value(lease));
        call.run(&self.connection).await
    }

    async fn remember(&self, name: Name, value: &[u8], ttl: Duration) -> Result<Option<Vec<u8>>, StoreError> {
        let call = scripts::REMEMBER
            .call()
            .key(self.shared.keys.remembered(name))
            .arg(value)
            .arg(lasting(ttl));
        call.run(&self.connection).await
    }

    async fn published(
        &self,
        after: Option<String>,
    ) -> Result<BoxStream<'static, Result<StoreUpdate, StoreError>>, StoreError> {
        self.shared.events.follow(after).await
    }

    async fn position(&self) -> Result<String, StoreError> {
        self.shared.events.position().await
    }

    async fn facts(&self) -> Result<Vec<Check>, StoreError> {
        self.ask_facts().await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.shared
            .clock
            .synchronise(&self.connection)
            .await
            .map_err(unavailable)?;
        // Writes nothing, but fails for lack of memory if a write would.
        let mut command = redis::cmd("SET");
        command.arg(self.shared.keys.nobodys_lease()).arg("").arg("XX");
        match self
            .connection
            .once::<redis::Value>(&command)
            .await
            .map_err(unavailable)
        {
            Err(StoreError::Full) => Err(StoreError::Full),
            // Other errors surface in the writes.
            Ok(_) | Err(_) => Ok(()),
        }
    }
}
