//! Writes of records, in one step if one server has all keys.

use futures_util::future::try_join_all;
use redis::ToRedisArgs;

use crate::store::{Inserted, Name, Record, Replaced, StoreError, codec};

use super::RedisStore;
use super::keys::IndexLocation;
use super::scripts::{self, Stored, TO_PUBLISH};

impl RedisStore {
    /// Inserts a record unless `barrier` exists. In a cluster the caller has checked the barrier and passes none.
    pub(super) async fn insert_record(
        &self,
        record: &Record,
        event: Vec<u8>,
        barrier: Option<Name>,
    ) -> Result<Inserted, StoreError> {
        let barrier = barrier
            .map(|name| self.shared.keys.record(name))
            .unwrap_or_default();
        match self.write(&scripts::INSERT, record, event, barrier).await? {
            0 => Ok(Inserted::Taken),
            2 => Ok(Inserted::Barred),
            _ => Ok(Inserted::Done),
        }
    }

    pub(super) async fn replace_record(
        &self,
        record: &Record,
        expected: u64,
        event: Option<Vec<u8>>,
    ) -> Result<Replaced, StoreError> {
        let own = (expected.to_be_bytes().to_vec(), u8::from(event.is_some()));
        let event = event.unwrap_or_default();
        match self.write(&scripts::REPLACE, record, event, own).await? {
            0 => Ok(Replaced::Missing),
            1 => Ok(Replaced::Stale),
            _ => Ok(Replaced::Done),
        }
    }

    /// Removes a record. Also removes one that cannot be read, and answers with `Corrupt`.
    pub(super) async fn remove_record(
        &self,
        name: Name,
        event: Vec<u8>,
    ) -> Result<Option<Record>, StoreError> {
        let mut call = scripts::REMOVE.call().key(self.shared.keys.record(name));
        if !self.shared.scattered {
            call = call.key(self.shared.keys.events());
        }
        let events = &self.shared.events;
        let call = call.arg(events.kept).arg(event.as_slice());
        let call = call
            .arg(self.shared.keys.prefix())
            .arg(name.as_bytes())
            .arg(events.near(name));
        let removed: Option<(Vec<u8>, bool)> = self.done(name, call.run(&self.connection).await)?;
        let Some((removed, is_published)) = removed else {
            return Ok(None);
        };
        if !is_published {
            events.publish(name, event).await;
        }
        let removed = codec::decode(name, &removed).ok_or(StoreError::Corrupt)?;
        self.leave(&removed).await;
        Ok(Some(removed))
    }

    /// Runs the script of a write; its `own` arguments follow the common ones. Publishes `event` if the script
    /// did not. `KEYS` has the record, and on one server the event stream and the indexes. In a cluster, `ARGV`
    /// has the candidate streams instead.
    async fn write<T: ToRedisArgs>(
        &self,
        script: &'static Stored,
        record: &Record,
        event: Vec<u8>,
        own: T,
    ) -> Result<u8, StoreError> {
        self.enter(record).await?;
        let events = &self.shared.events;
        let call = script.call().key(self.shared.keys.record(record.name));
        let call = call.arg(codec::encode(record)).arg(expiry(record));
        let call = call.arg(events.kept).arg(event.as_slice()).arg(own);
        let mut call = call.arg(events.near(record.name));
        if !self.shared.scattered {
            call = call.key(self.shared.keys.events());
            for location in self.locations(record) {
                let member = location.member(record);
                call = call.key(location.key).key(location.order).arg(member);
            }
        }
        let outcome = self.done(record.name, call.run(&self.connection).await)?;
        if outcome == TO_PUBLISH {
            events.publish(record.name, event).await;
        }
        Ok(outcome)
    }

    fn locations<'a>(&'a self, record: &'a Record) -> impl Iterator<Item = IndexLocation> + 'a {
        record.indexes.iter().map(|index| self.shared.keys.index(*index))
    }

    /// In a cluster: publishes a gap if the answer to a write was lost.
    fn done<T>(&self, name: Name, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        if let (Err(StoreError::Unavailable(_)), true) = (&answer, self.shared.scattered) {
            // The write may have been done without its event.
            self.shared.events.publish_gap(name);
        }
        answer
    }

    /// In a cluster: enters a record into its indexes, or extends the expiry of its entries.
    async fn enter(&self, record: &Record) -> Result<(), StoreError> {
        if self.shared.scattered {
            let entered = self.locations(record).map(async |location| {
                let call = scripts::ENTER.call().arg(expiry(record));
                let call = call.arg(location.member(record));
                let call = call.key(location.key).key(location.order);
                call.run::<()>(&self.connection).await
            });
            try_join_all(entered).await?;
        }
        Ok(())
    }

    /// In a cluster: removes a record from its indexes. If that fails, the entries expire.
    async fn leave(&self, record: &Record) {
        if self.shared.scattered {
            for location in self.locations(record) {
                let member = location.member(record);
                for key in [&location.key, &location.order] {
                    let mut command = redis::cmd("ZREM");
                    command.arg(key).arg(&member);
                    if let Err(error) = self.connection.once::<i64>(&command).await {
                        tracing::debug!(
                            error = &error as &dyn std::error::Error,
                            "an index entry without a record was not removed and expires"
                        );
                    }
                }
            }
        }
    }
}

/// The last instant that the server represents exactly, some 285,000 years from now (scores are doubles).
const LATEST_MS: u64 = (1 << 53) - 1;

fn expiry(record: &Record) -> u64 {
    record.expires_at_ms.min(LATEST_MS)
}
