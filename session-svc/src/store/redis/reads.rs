//! Loads and lists of records.

use std::sync::Arc;

use deadpool_redis::redis;

use crate::store::{Cursor, Record, StoreError, codec};

use super::clock::ServerClock;
use super::connections::Connections;
use super::keys::{Entry, Keys};
use super::scripts;
use super::unavailable;

/// Records read at once by a listing: bounds one answer to a few megabytes.
const READ_AT_ONCE: usize = 64;

/// What reads need.
pub(super) struct Reads {
    pub(super) connections: Arc<Connections>,
    pub(super) clock: Arc<ServerClock>,
    pub(super) keys: Keys,
    /// Whether keys live on several nodes, so that one script cannot read them together.
    pub(super) scattered: bool,
}

impl Reads {
    pub(super) async fn load(&self, name: &str) -> Result<Option<Record>, StoreError> {
        let mut command = redis::cmd("GET");
        command.arg(self.keys.record(name));
        let bytes: Option<Vec<u8>> = self.connections.read(&command).await.map_err(unavailable)?;
        bytes.map(|bytes| codec::decode(name, &bytes)).transpose()
    }

    pub(super) async fn list(
        &self,
        index: &str,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let mut after = after.map(Entry::of_cursor);
        if self.scattered {
            return self.list_scattered(index, after, limit).await;
        }
        let mut found = Vec::new();
        while found.len() < limit {
            let wanted = READ_AT_ONCE.min(limit - found.len());
            let page = self.page(index, after.as_ref(), wanted).await?;
            let is_last = page.len() < wanted;
            found.extend(
                page.iter()
                    .filter_map(|(entry, bytes)| readable(index, entry, bytes)),
            );
            after = page.into_iter().next_back().map(|(entry, _)| entry).or(after);
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    async fn page(
        &self,
        index: &str,
        after: Option<&Entry>,
        limit: usize,
    ) -> Result<Vec<(Entry, Vec<u8>)>, StoreError> {
        let place = self.keys.index(index);
        let call = scripts::LIST.call().key(place.key).arg(place.begins);
        let after = after.map_or(&[][..], |entry| &entry.0);
        let call = call.arg(after).arg(limit).arg(self.keys.prefix());
        let flat: Vec<Vec<u8>> = call.read(&self.connections).await?;
        let mut flat = flat.into_iter();
        let mut pairs = Vec::with_capacity(flat.len() / 2);
        while let (Some(entry), Some(bytes)) = (flat.next(), flat.next()) {
            pairs.push((Entry(entry), bytes));
        }
        Ok(pairs)
    }

    /// In a cluster: the entries from their node, then the records from theirs.
    async fn list_scattered(
        &self,
        index: &str,
        after: Option<Entry>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let place = self.keys.index(index);
        let mut command = redis::cmd("ZRANGE");
        command
            .arg(&place.key)
            .arg(format!("({}", self.clock.now_ms()))
            .arg("+inf")
            .arg("BYSCORE");
        let members: Vec<Vec<u8>> = self.connections.read(&command).await.map_err(unavailable)?;
        let mut entries: Vec<Entry> = members
            .iter()
            .filter_map(|member| member.strip_prefix(place.begins.as_slice()))
            .map(|end| Entry(end.to_vec()))
            .filter(|entry| after.as_ref().is_none_or(|after| entry < after))
            .collect();
        entries.sort_unstable_by(|one, other| other.cmp(one));
        let mut found = Vec::new();
        for page in entries.chunks(READ_AT_ONCE.min(limit.max(1))) {
            if found.len() >= limit {
                break;
            }
            let mut command = redis::cmd("MGET");
            for entry in page {
                command.arg(self.keys.record_of(entry));
            }
            let records: Vec<Option<Vec<u8>>> = self.connections.read(&command).await.map_err(unavailable)?;
            for (entry, bytes) in page.iter().zip(records) {
                found.extend(bytes.and_then(|bytes| readable(index, entry, &bytes)));
            }
        }
        found.truncate(limit);
        Ok(found)
    }
}

/// The record of an entry of `index`. One that is found by other lists by now is passed over, and so is one that cannot be
/// read: it must not stand in the way of the others.
fn readable(index: &str, entry: &Entry, bytes: &[u8]) -> Option<Record> {
    let name = entry.name()?;
    match codec::decode(&name, bytes) {
        Ok(record) => record.indexes.iter().any(|its| its == index).then_some(record),
        Err(error) => {
            tracing::error!(session = name, %error, "a listed record cannot be read");
            None
        }
    }
}
