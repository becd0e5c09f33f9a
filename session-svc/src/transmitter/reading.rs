//! Reading notes, and whether what they say has happened.
//!
//! Invariant: of a session that is still there nobody is told that it ended; a note of an ending that failed is dropped once no call
//! can be under way any more, and written again if its session went just then.

use std::collections::HashSet;

use super::Context;
use super::note::SignalNote;
use super::queue::QueueEntry;
use super::receiver::Receiver;
use crate::keeper::KeeperError;
use crate::session::Name;
use crate::store::{LoadedRecord, Record, Replaced, StoreError};

/// How old the note of a session that is still there is before it is dropped, in milliseconds: longer than any call may take.
const FAILED_MS: u64 = 120_000;

/// How long a note that is dropped is still there, in milliseconds.
const DROPPED_MS: u64 = 1_000;

/// What became of reading a note.
pub(super) enum Read {
    /// Its receiver can be told.
    Ready(SignalNote),
    /// Not yet: its session is still there, or another replica has the key.
    Waits,
    /// There is none any more.
    Gone,
}

/// Reads notes, in their order: two round trips, however many.
pub(super) async fn read(
    context: &Context,
    receiver: &Receiver,
    entries: &[QueueEntry],
) -> Result<Vec<(QueueEntry, Read)>, KeeperError> {
    let keeper = &context.keeper;
    let names: Vec<Name> = entries.iter().map(|entry| entry.name).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let loaded = keeper.store().load_many(&names).await?;
    let mut notes = Vec::new();
    for (entry, loaded) in entries.iter().zip(loaded) {
        let note = match &loaded {
            LoadedRecord::Record(record) => SignalNote::open(record, keeper).ok(),
            LoadedRecord::Unreadable | LoadedRecord::Gone => None,
        };
        notes.push((*entry, loaded, note));
    }
    let endings = notes.iter().filter_map(|(_, _, note)| note.as_ref()?.ending());
    let endings: Vec<Name> = endings.map(|handle| handle.name()).collect();
    let still_there = if endings.is_empty() {
        HashSet::new()
    } else {
        let loaded = keeper.store().load_many(&endings).await?;
        let there = endings.iter().zip(loaded);
        there
            .filter(|(_, loaded)| *loaded != LoadedRecord::Gone)
            .map(|(name, _)| *name)
            .collect()
    };
    let mut read = Vec::new();
    for (entry, loaded, note) in notes {
        let one = match (loaded, note) {
            (LoadedRecord::Gone, _) => Read::Gone,
            (LoadedRecord::Record(record), Some(note)) => {
                let ending = note.ending().map(|handle| handle.name());
                match ending.filter(|ending| still_there.contains(ending)) {
                    None => Read::Ready(note),
                    Some(ending) => of_session_still_there(context, receiver, record, note, ending).await?,
                }
            }
            _ => Read::Waits,
        };
        read.push((entry, one));
    }
    Ok(read)
}

async fn of_session_still_there(
    context: &Context,
    receiver: &Receiver,
    record: Record,
    note: SignalNote,
    ending: Name,
) -> Result<Read, KeeperError> {
    let (store, now_ms) = (context.keeper.store(), context.keeper.now_ms());
    let noted_at_ms = record.created_at_ms.max(note.renewed_at_ms);
    let is_young = now_ms.saturating_sub(noted_at_ms) < FAILED_MS;
    if is_young || record.expires_at_ms <= now_ms.saturating_add(DROPPED_MS) {
        return Ok(Read::Waits);
    }
    // It expires, rather than being removed: in one step with a look at its version, so that a note of another ending of the same session,
    // which has renewed it, stays.
    let version = record.version;
    let dropped = Record {
        version: version + 1,
        expires_at_ms: now_ms.saturating_add(DROPPED_MS),
        ..record
    };
    match store.replace(dropped, version, None).await {
        Ok(Replaced::Done) => {}
        Ok(Replaced::Missing) => return Ok(Read::Gone),
        Ok(Replaced::Stale) | Err(StoreError::Full) => return Ok(Read::Waits),
        Err(error) => return Err(error.into()),
    }
    if store.load(ending).await?.is_some() {
        tracing::debug!(
            receiver = receiver.id,
            "an ending that was noted has failed: nobody is told"
        );
        return Ok(Read::Gone);
    }
    context.outbox.keep(receiver, &note).await?;
    Ok(Read::Waits)
}
