//! The tables of the file, and the verbs that change them inside a transaction.

use std::time::Duration;

use chassis::random;
use redb::{ReadableTable as _, StorageError, Table, TableDefinition, WriteTransaction};

use crate::store::{Inserted, Name, Record, Replaced, StoreError, codec, millis};

use super::error::store_error;
use super::follow::KEPT_EVENTS;

/// Records by name, as `codec` writes them.
pub(super) const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records");
/// Index entries: (index, creation time, record name).
pub(super) const INDEX: TableDefinition<'_, (&str, u64, &str), ()> = TableDefinition::new("index");
/// Published events by number.
pub(super) const EVENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("events");
const EXPIRY: TableDefinition<'_, (u64, &str), ()> = TableDefinition::new("expiry");
/// Remembered values by name: until when, and what.
pub(super) const REMEMBERED: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("remembered");
const FORGETTING: TableDefinition<'_, (u64, &str), ()> = TableDefinition::new("forgetting");
const FACTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("facts");

/// Sorts after every record name.
pub(super) const PAST_ANY_NAME: &str = "\u{10FFFF}";

/// The layout of these tables; a file of another one is refused.
const LAYOUT: &[u8] = b"1";

/// What a file says when it is opened.
pub(super) struct Start {
    /// Random name of the file's event log.
    pub(super) origin: String,
    /// How often the file was opened, this time included.
    pub(super) openings: u64,
    /// Number of the last event.
    pub(super) latest_event: u64,
}

/// Makes the tables if they are not there, and counts this opening.
pub(super) fn start(transaction: WriteTransaction) -> Result<Start, StoreError> {
    let start = {
        let tables = Tables::open(&transaction, 0)?;
        let mut facts = transaction.open_table(FACTS).map_err(store_error)?;
        let known = |name: &str| -> Result<Option<Vec<u8>>, StoreError> {
            Ok(facts
                .get(name)
                .map_err(store_error)?
                .map(|value| value.value().to_vec()))
        };
        if known("layout")?.is_some_and(|layout| layout != LAYOUT) {
            return Err(StoreError::Unavailable(
                "its tables are those of another release".into(),
            ));
        }
        let origin = match known("origin")? {
            Some(origin) => String::from_utf8(origin).map_err(|_| StoreError::Corrupt)?,
            None => random_name()?,
        };
        let openings = match known("openings")? {
            Some(count) => u64::from_be_bytes(count.try_into().map_err(|_| StoreError::Corrupt)?),
            None => 0,
        };
        let openings = openings + 1;
        for (name, value) in [
            ("layout", LAYOUT),
            ("origin", origin.as_bytes()),
            ("openings", &openings.to_be_bytes()),
        ] {
            facts.insert(name, value).map_err(store_error)?;
        }
        let latest_event = tables.latest_event;
        Start {
            origin,
            openings,
            latest_event,
        }
    };
    transaction.commit().map_err(store_error)?;
    Ok(start)
}

fn random_name() -> Result<String, StoreError> {
    let bytes = random::bytes::<8>().map_err(|error| StoreError::Unavailable(Box::new(error)))?;
    Ok(base16ct::lower::encode_string(&bytes))
}

/// All tables of one write transaction.
pub(super) struct Tables<'t> {
    records: Table<'t, &'static str, &'static [u8]>,
    index: Table<'t, (&'static str, u64, &'static str), ()>,
    events: Table<'t, u64, &'static [u8]>,
    expiry: Table<'t, (u64, &'static str), ()>,
    remembered: Table<'t, &'static str, (u64, &'static [u8])>,
    forgetting: Table<'t, (u64, &'static str), ()>,
    now_ms: u64,
    /// Number of the last event, those of this transaction included.
    pub(super) latest_event: u64,
    /// Whether anything was written.
    pub(super) changed: bool,
}

impl<'t> Tables<'t> {
    /// Opens all of them; expiry is judged by `now_ms`.
    pub(super) fn open(transaction: &'t WriteTransaction, now_ms: u64) -> Result<Self, StoreError> {
        let events = transaction.open_table(EVENTS).map_err(store_error)?;
        let latest_event = events
            .last()
            .map_err(store_error)?
            .map_or(0, |(number, _)| number.value());
        Ok(Self {
            records: transaction.open_table(RECORDS).map_err(store_error)?,
            index: transaction.open_table(INDEX).map_err(store_error)?,
            events,
            expiry: transaction.open_table(EXPIRY).map_err(store_error)?,
            remembered: transaction.open_table(REMEMBERED).map_err(store_error)?,
            forgetting: transaction.open_table(FORGETTING).map_err(store_error)?,
            now_ms,
            latest_event,
            changed: false,
        })
    }

    fn find(&self, name: Name) -> Result<Option<Record>, StoreError> {
        let found = self.records.get(&*name.digits()).map_err(store_error)?;
        found.map(|bytes| codec::decode(name, bytes.value())).transpose()
    }

    fn live(&self, name: Name) -> Result<Option<Record>, StoreError> {
        Ok(self
            .find(name)?
            .filter(|record| self.now_ms < record.expires_at_ms))
    }

    fn put(&mut self, record: &Record) -> Result<(), StorageError> {
        self.changed = true;
        let name = record.name.digits();
        self.records.insert(&*name, codec::encode(record).as_slice())?;
        self.expiry.insert((record.expires_at_ms, &*name), ())?;
        for index in &record.indexes {
            self.index
                .insert((&*index.digits(), record.created_at_ms, &*name), ())?;
        }
        Ok(())
    }

    fn take(&mut self, record: &Record) -> Result<(), StorageError> {
        self.changed = true;
        let name = record.name.digits();
        self.records.remove(&*name)?;
        self.expiry.remove((record.expires_at_ms, &*name))?;
        for index in &record.indexes {
            self.index
                .remove((&*index.digits(), record.created_at_ms, &*name))?;
        }
        Ok(())
    }

    /// Clears away what cannot be read any more, so that it does not block sweeping.
    fn discard(&mut self, at: u64, name: &str) -> Result<(), StorageError> {
        self.changed = true;
        self.records.remove(name)?;
        self.expiry.remove((at, name))?;
        Ok(())
    }

    fn publish(&mut self, event: &[u8]) -> Result<(), StorageError> {
        self.changed = true;
        self.latest_event += 1;
        self.events.insert(self.latest_event, event)?;
        if let Some(dropped) = self.latest_event.checked_sub(KEPT_EVENTS) {
            self.events.remove(dropped)?;
        }
        Ok(())
    }

    pub(super) fn insert(
        &mut self,
        record: &Record,
        event: &[u8],
        barrier: Option<Name>,
    ) -> Result<Inserted, StoreError> {
        if let Some(barrier) = barrier
            && self.live(barrier)?.is_some()
        {
            return Ok(Inserted::Barred);
        }
        match self.find(record.name)? {
            Some(known) if self.now_ms < known.expires_at_ms => return Ok(Inserted::Taken),
            Some(expired) => self.take(&expired).map_err(store_error)?,
            None => {}
        }
        self.put(record).map_err(store_error)?;
        self.publish(event).map_err(store_error)?;
        Ok(Inserted::Done)
    }

    pub(super) fn replace(
        &mut self,
        record: &Record,
        expected: u64,
        event: Option<&[u8]>,
    ) -> Result<Replaced, StoreError> {
        let Some(known) = self.live(record.name)? else {
            return Ok(Replaced::Missing);
        };
        if known.version != expected {
            return Ok(Replaced::Stale);
        }
        let name = known.name.digits();
        if known.expires_at_ms != record.expires_at_ms {
            self.expiry
                .remove((known.expires_at_ms, &*name))
                .map_err(store_error)?;
        }
        for index in known
            .indexes
            .iter()
            .filter(|index| !record.indexes.contains(index))
        {
            self.index
                .remove((&*index.digits(), known.created_at_ms, &*name))
                .map_err(store_error)?;
        }
        self.put(record).map_err(store_error)?;
        if let Some(event) = event {
            self.publish(event).map_err(store_error)?;
        }
        Ok(Replaced::Done)
    }

    pub(super) fn remove(&mut self, name: Name, event: &[u8]) -> Result<Option<Record>, StoreError> {
        let known = match self.live(name) {
            Ok(Some(known)) => known,
            Err(StoreError::Corrupt) => {
                // Its other entries are cleared away when they are met: its expiry by sweeping; index entries without a record are not listed.
                self.records.remove(&*name.digits()).map_err(store_error)?;
                self.publish(event).map_err(store_error)?;
                return Err(StoreError::Corrupt);
            }
            other => return other,
        };
        self.take(&known).map_err(store_error)?;
        self.publish(event).map_err(store_error)?;
        Ok(Some(known))
    }

    pub(super) fn remember(
        &mut self,
        name: &str,
        value: &[u8],
        ttl: Duration,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let known = self.remembered.get(name).map_err(store_error)?.map(|known| {
            let (until, value) = known.value();
            (until, value.to_vec())
        });
        match known {
            Some((until, value)) if self.now_ms < until => return Ok(Some(value)),
            Some((until, _)) => drop(self.forgetting.remove((until, name)).map_err(store_error)?),
            None => {}
        }
        self.changed = true;
        let until = self.now_ms.saturating_add(millis(ttl));
        self.remembered
            .insert(name, (until, value))
            .map_err(store_error)?;
        self.forgetting.insert((until, name), ()).map_err(store_error)?;
        Ok(None)
    }

    /// Clears away at most `at_most` expired records and as many expired values.
    pub(super) fn sweep(&mut self, at_most: usize) -> Result<(), StoreError> {
        let expired = due(&self.expiry, self.now_ms, at_most).map_err(store_error)?;
        for (at, name) in expired {
            let found = Name::parse(&name).map_err(|_malformed| StoreError::Corrupt);
            match found.and_then(|name| self.find(name)) {
                Ok(Some(record)) => self.take(&record).map_err(store_error)?,
                Ok(None) | Err(StoreError::Corrupt) => self.discard(at, &name).map_err(store_error)?,
                Err(error) => return Err(error),
            }
        }
        let forgotten = due(&self.forgetting, self.now_ms, at_most).map_err(store_error)?;
        for (at, name) in forgotten {
            self.changed = true;
            self.remembered.remove(name.as_str()).map_err(store_error)?;
            self.forgetting.remove((at, name.as_str())).map_err(store_error)?;
        }
        Ok(())
    }
}

fn due(
    table: &Table<'_, (u64, &'static str), ()>,
    now_ms: u64,
    at_most: usize,
) -> Result<Vec<(u64, String)>, StorageError> {
    let range = table.range((0, "")..=(now_ms, PAST_ANY_NAME))?;
    let names = range.take(at_most).map(|entry| {
        let (key, _) = entry?;
        let (at, name) = key.value();
        Ok((at, name.to_owned()))
    });
    names.collect()
}
