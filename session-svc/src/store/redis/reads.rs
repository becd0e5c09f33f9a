//! Loads of records; their lists are in `lists`.

use std::sync::Arc;

use crate::store::{LoadedRecord, Name, Record, StoreError, codec};

use super::clock::ServerClock;
use super::keys::KeyNames;
use super::pool::WorkerConnection;
use super::unavailable;

/// What reads need.
pub(super) struct RecordReads {
    pub(super) connection: WorkerConnection,
    pub(super) clock: Arc<ServerClock>,
    pub(super) keys: KeyNames,
    /// Whether keys live on several nodes, so that one script cannot read them together.
    pub(super) scattered: bool,
}

impl RecordReads {
    pub(super) async fn load(&self, name: Name) -> Result<Option<Record>, StoreError> {
        let mut command = redis::cmd("GET");
        command.arg(self.keys.record(name));
        let bytes: Option<Vec<u8>> = self.connection.read(&command).await.map_err(unavailable)?;
        bytes.map(|bytes| codec::decode(name, &bytes)).transpose()
    }

    pub(super) async fn load_many(&self, names: &[Name]) -> Result<Vec<LoadedRecord>, StoreError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut command = redis::cmd("MGET");
        for name in names {
            command.arg(self.keys.record(*name));
        }
        let records: Vec<Option<Vec<u8>>> = self.connection.read(&command).await.map_err(unavailable)?;
        let loaded = names.iter().zip(records).map(|(&name, bytes)| match bytes {
            None => LoadedRecord::Gone,
            Some(bytes) => codec::decode(name, &bytes).map_or(LoadedRecord::Unreadable, LoadedRecord::Record),
        });
        Ok(loaded.collect())
    }
}
