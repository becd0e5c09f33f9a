//! The shared store: Redis or Valkey, alone, watched by Sentinels, or a cluster.
//!
//! Keys, all below one prefix:
//! ```text
//! s:NAME   a record as `codec` writes it, expiring at its time
//! i:NAME   an index: sorted set of (creation time, record name), scored by the record's expiry
//! l:NAME   a lease: "fence:holder"
//! m:NAME   a remembered value
//! e        the stream of published events
//! ```
//!
//! Invariants
//! - One round trip for a load and for each write (two for a removal, which first learns the indexes).
//! - On one server or behind Sentinels a write, its index entries and its event are one script: all or nothing.
//! - The time is the server's: keys expire by it, and `now_ms` follows it (see `clock`).
//! - An index cannot leak: entries are scored by their record's expiry, every write to an index trims what is
//!   past, and the index itself expires with its last entry. It cannot lie: a listing reads each record.
//! - Fences come from the server's clock in microseconds; they grow unless that clock is set back, and
//!   every write is refused by its version anyway.
//!
//! In a cluster a record, its indexes and the events live on different nodes, so there is no common script.
//! Entries are written (or prolonged) before their record and removed after it: what a crash leaves is
//! an entry without a record, which listings skip and expiry clears, never a record without its entry.
//! The event follows the write; should its node be away it is retried for a while, during which listeners
//! are cut off from the same node and know that they hear nothing. If the answer to a write was lost, listeners
//! are told that they may have missed something. Only a replica that dies between a write and its event loses it.
//!
//! Deliberately absent: reads from replicas, which could show a session that was ended.

mod clock;
mod connections;
mod entries;
mod events;
mod keys;
mod scripts;
mod source;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chassis::clock::Clock;
use deadpool_redis::redis::{self, RedisError};
use futures_util::stream::BoxStream;

use self::clock::ServerClock;
use self::connections::Connections;
use self::events::Events;
use self::keys::Keys;
pub use self::source::SetupError;
use self::writes::Writes;
use super::url::{RedisSettings, Topology};
use super::{Cursor, Inserted, Lease, Published, Record, Replaced, SessionStore, StoreError, codec, millis};

/// Records read at once by a listing: bounds one answer to a few megabytes.
const READ_AT_ONCE: usize = 64;

/// How long `open` waits for a first connection, so that the server's time is known; the store opens anyway.
const FIRST_CONTACT: Duration = Duration::from_secs(2);

/// A store in Redis or Valkey, shared by all replicas.
pub struct RedisStore {
    connections: Arc<Connections>,
    clock: Arc<ServerClock>,
    keys: Keys,
    writes: Arc<Writes>,
}

impl RedisStore {
    /// Connects in the background; `fallback` is the time until the server's is known.
    pub async fn open(settings: &RedisSettings, fallback: Arc<dyn Clock>) -> Result<Self, SetupError> {
        let connections = Arc::new(Connections::new(settings)?);
        let clock = ServerClock::start(Arc::clone(&connections), &*fallback);
        let first_contact = async {
            // The first answer comes after connecting, the second tells the time.
            clock.synchronise(&connections).await?;
            clock.synchronise(&connections).await
        };
        let _ = tokio::time::timeout(FIRST_CONTACT, first_contact).await;
        let keys = Keys::new(&settings.prefix);
        let writes = Arc::new(Writes {
            events: Events::new(Arc::clone(&connections), keys.events().to_owned()),
            connections: Arc::clone(&connections),
            keys: keys.clone(),
            scattered: matches!(settings.topology, Topology::Cluster(_)),
        });
        Ok(Self {
            connections,
            clock,
            keys,
            writes,
        })
    }

    /// Does a write to its end. In a cluster it has several steps, which a caller that goes away must not
    /// interrupt.
    async fn whole<T: Send + 'static>(
        &self,
        write: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        if !self.writes.scattered {
            return write.await;
        }
        match tokio::spawn(write).await {
            Ok(outcome) => outcome,
            Err(stopped) => Err(StoreError::Unavailable(Box::new(stopped))),
        }
    }
}

fn unavailable(error: RedisError) -> StoreError {
    // A server that is out of memory refuses writes and says so.
    if error.code() == Some("OOM") {
        StoreError::Full
    } else {
        StoreError::Unavailable(Box::new(error))
    }
}

#[async_trait]
impl SessionStore for RedisStore {
    fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    async fn insert(&self, record: Record, event: Vec<u8>) -> Result<Inserted, StoreError> {
        let writes = Arc::clone(&self.writes);
        self.whole(async move { writes.insert(&record, event).await })
            .await
    }

    async fn load(&self, name: &str) -> Result<Option<Record>, StoreError> {
        self.writes.load(name).await
    }

    async fn replace(
        &self,
        record: Record,
        expected: u64,
        event: Option<Vec<u8>>,
    ) -> Result<Replaced, StoreError> {
        let writes = Arc::clone(&self.writes);
        self.whole(async move { writes.replace(&record, expected, event).await })
            .await
    }

    async fn remove(&self, name: &str, event: Vec<u8>) -> Result<Option<Record>, StoreError> {
        let (writes, name) = (Arc::clone(&self.writes), name.to_owned());
        self.whole(async move { writes.remove(&name, event).await }).await
    }

    async fn list(
        &self,
        index: &str,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let mut command = redis::cmd("ZRANGE");
        command
            .arg(self.keys.index(index))
            .arg(format!("({}", self.now_ms()))
            .arg("+inf")
            .arg("BYSCORE");
        let members: Vec<Vec<u8>> = self.connections.read(&command).await.map_err(unavailable)?;
        let mut entries = members
            .iter()
            .map(|member| keys::parse_member(member).ok_or(StoreError::Corrupt))
            .collect::<Result<Vec<(u64, String)>, _>>()?;
        if let Some(cursor) = after {
            entries.retain(|(created, name)| (*created, name) < (cursor.created_at_ms, &cursor.name));
        }
        entries.sort_unstable_by(|one, other| other.cmp(one));
        let mut found = Vec::new();
        for page in entries.chunks(READ_AT_ONCE.min(limit.max(1))) {
            if found.len() >= limit {
                break;
            }
            let mut command = redis::cmd("MGET");
            for (_, name) in page {
                command.arg(self.keys.record(name));
            }
            let records: Vec<Option<Vec<u8>>> = self.connections.read(&command).await.map_err(unavailable)?;
            for ((_, name), bytes) in page.iter().zip(records) {
                found.extend(bytes.map(|bytes| codec::decode(name, &bytes)).transpose()?);
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    async fn acquire_lease(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let call = scripts::ACQUIRE
            .call()
            .key(self.keys.lease(name))
            .arg(holder)
            .arg(millis(ttl).max(1));
        let fence: Option<u64> = call.run(&self.connections).await?;
        Ok(fence.map(|fence| Lease {
            name: name.to_owned(),
            fence,
            holder: holder.to_owned(),
        }))
    }

    async fn renew_lease(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError> {
        let call = scripts::RENEW.call().key(self.keys.lease(&lease.name));
        call.arg(keys::held(lease))
            .arg(millis(ttl).max(1))
            .run(&self.connections)
            .await
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        let call = scripts::RELEASE
            .call()
            .key(self.keys.lease(&lease.name))
            .arg(keys::held(lease));
        call.run(&self.connections).await
    }

    async fn remember(&self, name: &str, value: &[u8], ttl: Duration) -> Result<Option<Vec<u8>>, StoreError> {
        let call = scripts::REMEMBER
            .call()
            .key(self.keys.remembered(name))
            .arg(value)
            .arg(millis(ttl).max(1));
        call.run(&self.connections).await
    }

    async fn published(
        &self,
        after: Option<String>,
    ) -> Result<BoxStream<'static, Result<Published, StoreError>>, StoreError> {
        self.writes.events.follow(after).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.clock
            .synchronise(&self.connections)
            .await
            .map_err(unavailable)
    }
}
