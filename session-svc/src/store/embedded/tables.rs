//! The tables of the file, and the changes to them inside a transaction.

use std::io;
use std::time::Duration;

use chassis::random;
use redb::{Error, ReadableTable as _, Table, TableDefinition, WriteTransaction};

use crate::store::{Inserted, Name, Record, Replaced, codec, millis};

use super::error::unreadable;
use super::follow::KEPT_EVENTS;

/// Records by name, as `codec` writes them.
pub(super) const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records");
/// Index entries: (index, creation time, record name).
pub(super) const INDEX: TableDefinition<'_, (&str, u64, &str), ()> = TableDefinition::new("index");
/// Published events by number.
pub(super) const EVENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("events");
const EXPIRY: TableDefinition<'_, (u64, &str), ()> = TableDefinition::new("expiry");
/// Remembered values by name: expiry and value.
pub(super) const REMEMBERED: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("remembered");
const FORGETTING: TableDefinition<'_, (u64, &str), ()> = TableDefinition::new("forgetting");
const FACTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("facts");

/// Sorts after every record name.
pub(super) const PAST_ANY_NAME: &str = "\u{10FFFF}";

/// The layout of these tables. A file with another layout is rejected.
const LAYOUT: &[u8] = b"1";

/// The state of a file when it is opened.
pub(super) struct Start {
    /// Random name of the file's event log.
    pub(super) origin: String,
    /// Number of the last event.
    pub(super) latest_event: u64,
}

/// Creates missing tables.
pub(super) fn start(transaction: WriteTransaction) -> Result<Start, Error> {
    let latest_event = Tables::open(&transaction, 0)?.latest_event;
    let mut facts = transaction.open_table(FACTS)?;
    let known = |name: &str| -> Result<Option<Vec<u8>>, Error> {
        Ok(facts.get(name)?.map(|value| value.value().to_vec()))
    };
    if known("layout")?.is_some_and(|layout| layout != LAYOUT) {
        let why = "its tables are those of another release";
        return Err(io::Error::new(io::ErrorKind::InvalidData, why).into());
    }
    let origin = match known("origin")? {
        Some(origin) => String::from_utf8(origin).map_err(|_| unreadable())?,
        None => base16ct::lower::encode_string(&random::bytes::<8>().map_err(io::Error::other)?),
    };
    facts.insert("layout", LAYOUT)?;
    facts.insert("origin", origin.as_bytes())?;
    drop(facts);
    transaction.commit()?;
    Ok(Start { origin, latest_event })
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
    /// Number of the last event, including those of this transaction.
    pub(super) latest_event: u64,
    /// Whether anything was written.
    pub(super) changed: bool,
}

impl<'t> Tables<'t> {
    /// Opens all tables. `now_ms` decides what has expired.
    pub(super) fn open(transaction: &'t WriteTransaction, now_ms: u64) -> Result<Self, Error> {
        let events = transaction.open_table(EVENTS)?;
        let latest_event = events.last()?.map_or(0, |(number, _)| number.value());
        Ok(Self {
            records: transaction.open_table(RECORDS)?,
            index: transaction.open_table(INDEX)?,
            events,
            expiry: transaction.open_table(EXPIRY)?,
            remembered: transaction.open_table(REMEMBERED)?,
            forgetting: transaction.open_table(FORGETTING)?,
            now_ms,
            latest_event,
            changed: false,
        })
    }

    fn find(&self, name: Name) -> Result<Option<Record>, Error> {
        let found = self.records.get(&*name.digits())?;
        found
            .map(|bytes| codec::decode(name, bytes.value()).ok_or_else(unreadable))
            .transpose()
    }

    fn live(&self, name: Name) -> Result<Option<Record>, Error> {
        Ok(self
            .find(name)?
            .filter(|record| self.now_ms < record.expires_at_ms))
    }

    fn put(&mut self, record: &Record) -> Result<(), Error> {
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

    fn take(&mut self, record: &Record) -> Result<(), Error> {
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

    /// Removes an unreadable record, so that it does not block sweeping.
    fn discard(&mut self, at: u64, name: &str) -> Result<(), Error> {
        self.changed = true;
        self.records.remove(name)?;
        self.expiry.remove((at, name))?;
        Ok(())
    }

    fn publish(&mut self, event: &[u8]) -> Result<(), Error> {
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
    ) -> Result<Inserted, Error> {
        if let Some(barrier) = barrier
            && self.live(barrier)?.is_some()
        {
            return Ok(Inserted::Barred);
        }
        match self.find(record.name)? {
            Some(known) if self.now_ms < known.expires_at_ms => return Ok(Inserted::Taken),
            Some(expired) => self.take(&expired)?,
            None => {}
        }
        self.put(record)?;
        self.publish(event)?;
        Ok(Inserted::Done)
    }

    pub(super) fn replace(
        &mut self,
        record: &Record,
        expected: u64,
        event: Option<&[u8]>,
    ) -> Result<Replaced, Error> {
        let Some(known) = self.live(record.name)? else {
            return Ok(Replaced::Missing);
        };
        if known.version != expected {
            return Ok(Replaced::Stale);
        }
        self.take(&known)?;
        self.put(record)?;
        if let Some(event) = event {
            self.publish(event)?;
        }
        Ok(Replaced::Done)
    }

    pub(super) fn remove(&mut self, name: Name, event: &[u8]) -> Result<Option<Record>, Error> {
        let known = match self.live(name) {
            Ok(Some(known)) => known,
            Err(Error::Corrupted(_)) => {
                // Its other entries remain: sweeping removes the expiry, and lists skip index entries.
                self.records.remove(&*name.digits())?;
                self.publish(event)?;
                return Err(unreadable());
            }
            other => return other,
        };
        self.take(&known)?;
        self.publish(event)?;
        Ok(Some(known))
    }

    pub(super) fn remember(
        &mut self,
        name: &str,
        value: &[u8],
        ttl: Duration,
    ) -> Result<Option<Vec<u8>>, Error> {
        let known = self.remembered.get(name)?.map(|known| {
            let (until, value) = known.value();
            (until, value.to_vec())
        });
        match known {
            Some((until, value)) if self.now_ms < until => return Ok(Some(value)),
            Some((until, _)) => drop(self.forgetting.remove((until, name))?),
            None => {}
        }
        self.changed = true;
        let until = self.now_ms.saturating_add(millis(ttl));
        self.remembered.insert(name, (until, value))?;
        self.forgetting.insert((until, name), ())?;
        Ok(None)
    }

    /// Removes at most `at_most` expired records and as many expired values.
    pub(super) fn sweep(&mut self, at_most: usize) -> Result<(), Error> {
        let expired = due(&self.expiry, self.now_ms, at_most)?;
        for (at, name) in expired {
            let found = Name::parse(&name).map_err(|_malformed| unreadable());
            match found.and_then(|name| self.find(name)) {
                Ok(Some(record)) => self.take(&record)?,
                Ok(None) | Err(Error::Corrupted(_)) => self.discard(at, &name)?,
                Err(error) => return Err(error),
            }
        }
        let forgotten = due(&self.forgetting, self.now_ms, at_most)?;
        for (at, name) in forgotten {
            self.changed = true;
            self.remembered.remove(name.as_str())?;
            self.forgetting.remove((at, name.as_str()))?;
        }
        Ok(())
    }
}

fn due(
    table: &Table<'_, (u64, &'static str), ()>,
    now_ms: u64,
    at_most: usize,
) -> Result<Vec<(u64, String)>, Error> {
    let range = table.range((0, "")..=(now_ms, PAST_ANY_NAME))?;
    let names = range.take(at_most).map(|entry| {
        let (key, _) = entry?;
        let (at, name) = key.value();
        Ok((at, name.to_owned()))
    });
    names.collect()
}
