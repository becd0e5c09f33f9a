//! What an operator may see of a file, while no service has it open.

use async_trait::async_trait;
use redb::{ReadTransaction, ReadableTableMetadata as _};

use super::tables::{INDEX, PAST_ANY_NAME, RECORDS, REMEMBERED};
use super::writer::Needs;
use super::{FileStore, store_error};
use crate::store::inspect::{Fact, FoundItem, InspectedStore, KeySpace, Sealed, Walked, resealed};
use crate::store::{Replaced, SessionStore as _, StoreError, codec};

#[async_trait]
impl InspectedStore for FileStore {
    async fn walk(
        &self,
        key_space: KeySpace,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Walked, StoreError> {
        let (now_ms, after) = (self.now_ms(), after.unwrap_or_default());
        self.kept.file.read(|reading| match key_space {
            KeySpace::Records => records(reading, after, limit, now_ms),
            KeySpace::Remembered => remembered(reading, after, limit, now_ms),
            KeySpace::Indexes => indexes(reading, after, limit, now_ms),
        })
    }

    async fn exchange(&self, was: &Sealed, bytes: Vec<u8>) -> Result<Replaced, StoreError> {
        let was = was.clone();
        self.writer
            .write(Needs::Change, move |tables| match &was {
                Sealed::Record(record) => tables.exchange(record, &resealed(record, bytes.clone())),
                Sealed::Remembered { name, value } => tables.exchange_remembered(name, value, &bytes),
            })
            .await
    }

    async fn facts(&self, _server_memory: Option<u64>) -> Result<Vec<Fact>, StoreError> {
        let bytes = self.kept.file.read(|reading| {
            let stored = || {
                Ok::<_, redb::Error>(
                    reading.open_table(RECORDS)?.stats()?.stored_bytes()
                        + reading.open_table(INDEX)?.stats()?.stored_bytes()
                        + reading.open_table(REMEMBERED)?.stats()?.stored_bytes(),
                )
            };
            stored().map_err(store_error)
        })?;
        Ok(vec![
            Fact::fine("engine", "file"),
            Fact::fine("stored_bytes", bytes.to_string()),
        ])
    }
}

/// The end of a page: where the next goes on, if this one is full.
fn page(found: Vec<FoundItem>, last: Option<String>, full: bool) -> Walked {
    Walked {
        found,
        next: last.filter(|_| full),
    }
}

fn records(reading: &ReadTransaction, after: &str, limit: usize, now_ms: u64) -> Result<Walked, StoreError> {
    let table = reading.open_table(RECORDS).map_err(store_error)?;
    let range = table
        .range::<&str>((std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded))
        .map_err(store_error)?;
    let (mut found, mut last, mut seen) = (Vec::new(), None, 0);
    for entry in range.take(limit) {
        let (name, bytes) = entry.map_err(store_error)?;
        let name = name.value();
        match codec::decode_named(name, bytes.value()) {
            Ok(record) if now_ms < record.expires_at_ms => {
                found.push(FoundItem::Sealed(Sealed::Record(record)));
            }
            Ok(_) => {}
            Err(_) => found.push(FoundItem::Unreadable {
                name: name.to_owned(),
            }),
        }
        last = Some(name.to_owned());
        seen += 1;
    }
    Ok(page(found, last, seen == limit))
}

fn remembered(
    reading: &ReadTransaction,
    after: &str,
    limit: usize,
    now_ms: u64,
) -> Result<Walked, StoreError> {
    let table = reading.open_table(REMEMBERED).map_err(store_error)?;
    let range = table
        .range::<&str>((std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded))
        .map_err(store_error)?;
    let (mut found, mut last, mut seen) = (Vec::new(), None, 0);
    for entry in range.take(limit) {
        let (name, value) = entry.map_err(store_error)?;
        let (until, value) = value.value();
        if now_ms < until {
            found.push(FoundItem::Sealed(Sealed::Remembered {
                name: name.value().to_owned(),
                value: value.to_vec(),
            }));
        }
        last = Some(name.value().to_owned());
        seen += 1;
    }
    Ok(page(found, last, seen == limit))
}

fn indexes(reading: &ReadTransaction, after: &str, limit: usize, now_ms: u64) -> Result<Walked, StoreError> {
    let records = reading.open_table(RECORDS).map_err(store_error)?;
    let table = reading.open_table(INDEX).map_err(store_error)?;
    // Behind every entry of the index named; the empty name is none, so that "" is the beginning.
    let range = table
        .range((after, u64::MAX, PAST_ANY_NAME)..)
        .map_err(store_error)?;
    let mut found: Vec<FoundItem> = Vec::new();
    for entry in range {
        let (key, _) = entry.map_err(store_error)?;
        let (index, _, record) = key.value();
        let is_new = !matches!(found.last(), Some(FoundItem::Index { name, .. }) if name == index);
        if is_new {
            if found.len() == limit {
                let last = match found.last() {
                    Some(FoundItem::Index { name, .. }) => Some(name.clone()),
                    _ => None,
                };
                return Ok(page(found, last, true));
            }
            found.push(FoundItem::Index {
                name: index.to_owned(),
                entries: 0,
                without_record: 0,
            });
        }
        let bytes = records.get(record).map_err(store_error)?;
        let expired = bytes.as_ref().is_some_and(|bytes| {
            codec::decode_named(record, bytes.value()).is_ok_and(|record| record.expires_at_ms <= now_ms)
        });
        if let Some(FoundItem::Index {
            entries,
            without_record,
            ..
        }) = found.last_mut()
            && !expired
        {
            *entries += 1;
            *without_record += usize::from(bytes.is_none());
        }
    }
    Ok(page(found, None, false))
}
