//! Loads and writes of records, in one step where one server has all keys.

use std::sync::Arc;

use deadpool_redis::redis;
use futures_util::future::try_join_all;

use crate::store::{Inserted, Record, Replaced, StoreError, codec};

use super::connections::Connections;
use super::entries::Says;
use super::events::{Events, KEPT_EVENTS};
use super::keys::{self, Keys};
use super::scripts::{self, Call};
use super::unavailable;

/// What writes need.
pub(super) struct Writes {
    pub(super) connections: Arc<Connections>,
    pub(super) events: Events,
    pub(super) keys: Keys,
    /// Whether keys live on several nodes, so that one script cannot change them together.
    pub(super) scattered: bool,
}

impl Writes {
    pub(super) async fn load(&self, name: &str) -> Result<Option<Record>, StoreError> {
        let mut command = redis::cmd("GET");
        command.arg(self.keys.record(name));
        let bytes: Option<Vec<u8>> = self.connections.read(&command).await.map_err(unavailable)?;
        bytes.map(|bytes| codec::decode(name, &bytes)).transpose()
    }

    pub(super) async fn insert(&self, record: &Record, event: Vec<u8>) -> Result<Inserted, StoreError> {
        self.enter(record).await?;
        let call = scripts::INSERT
            .call()
            .arg(codec::encode(record))
            .arg(record.expires_at_ms);
        let call = call
            .arg(keys::member(record))
            .arg(KEPT_EVENTS)
            .arg(event.as_slice());
        match self.write::<u8>(call, record).await? {
            0 => Ok(Inserted::Taken),
            _ => {
                self.publish(Some(event)).await;
                Ok(Inserted::Done)
            }
        }
    }

    pub(super) async fn replace(
        &self,
        record: &Record,
        expected: u64,
        event: Option<Vec<u8>>,
    ) -> Result<Replaced, StoreError> {
        self.enter(record).await?;
        let call = scripts::REPLACE
            .call()
            .arg(codec::encode(record))
            .arg(record.expires_at_ms);
        let call = call
            .arg(keys::member(record))
            .arg(KEPT_EVENTS)
            .arg(event.as_deref().unwrap_or_default());
        let call = call
            .arg(expected.to_be_bytes().as_slice())
            .arg(u8::from(event.is_some()));
        match self.write::<u8>(call, record).await? {
            0 => Ok(Replaced::Missing),
            1 => Ok(Replaced::Stale),
            _ => {
                self.publish(event).await;
                Ok(Replaced::Done)
            }
        }
    }

    pub(super) async fn remove(&self, name: &str, event: Vec<u8>) -> Result<Option<Record>, StoreError> {
        // Its indexes never change, so they can be learned first.
        let Some(known) = self.load(name).await? else {
            return Ok(None);
        };
        let call = scripts::REMOVE
            .call()
            .arg(keys::member(&known))
            .arg(KEPT_EVENTS)
            .arg(event.as_slice());
        let removed: Option<Vec<u8>> = self.write(call, &known).await?;
        let Some(removed) = removed else { return Ok(None) };
        self.publish(Some(event)).await;
        self.leave(&known).await;
        codec::decode(name, &removed).map(Some)
    }

    /// Calls `call` with the record's key and, where one script can change them together, the events' and
    /// the indexes' keys.
    async fn write<T: redis::FromRedisValue>(&self, call: Call, record: &Record) -> Result<T, StoreError> {
        let mut call = call.key(self.keys.record(&record.name));
        if !self.scattered {
            call = call.key(self.keys.events().to_owned());
            for index in &record.indexes {
                call = call.key(self.keys.index(index));
            }
        }
        let answer = call.run(&self.connections).await;
        if let (Err(StoreError::Unavailable(_)), true) = (&answer, self.scattered) {
            // It may have been done all the same.
            self.events.publish(Says::Gap).await;
        }
        answer
    }

    /// In a cluster: enters a record into its indexes, or moves its entries' expiry on.
    async fn enter(&self, record: &Record) -> Result<(), StoreError> {
        if self.scattered {
            let entered = record.indexes.iter().map(|index| async {
                let call = scripts::ENTER
                    .call()
                    .arg(record.expires_at_ms)
                    .arg(keys::member(record));
                call.key(self.keys.index(index))
                    .run::<()>(&self.connections)
                    .await
            });
            try_join_all(entered).await?;
        }
        Ok(())
    }

    /// In a cluster: takes a removed record out of its indexes. What fails is left to expiry.
    async fn leave(&self, record: &Record) {
        if self.scattered {
            for index in &record.indexes {
                let mut command = redis::cmd("ZREM");
                command.arg(self.keys.index(index)).arg(keys::member(record));
                if let Err(error) = self.connections.once::<i64>(&command).await {
                    tracing::debug!(%error, "an index entry without a record is left to its expiry");
                }
            }
        }
    }

    /// In a cluster: publishes what a write could not publish in its own script.
    async fn publish(&self, event: Option<Vec<u8>>) {
        if let Some(event) = event.filter(|_| self.scattered) {
            self.events.publish(Says::Event(event.into())).await;
        }
    }
}
