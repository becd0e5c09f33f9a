//! Follows the numbered events of an embedded store.
//!
//! Invariants
//! - Positions are `<origin>-<number>`; numbers grow by one. A position of another origin (another store, or
//!   memory of an earlier process) cannot be resumed and gets `Missed`.
//! - A follower reads the log itself, so a slow one costs no memory. It gets `Missed` if the log dropped
//!   events that it had not read.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::watch;

use super::open_file::OpenFile;
use super::tables::EVENTS;
use crate::store::{StoreError, StoreUpdate};

/// Events that a log keeps for resuming: several minutes of a busy replica, about 2 MB at 250 bytes an event.
pub(super) const KEPT_EVENTS: u64 = 8_192;

/// Events per read, so that one follower does not hold the log for long.
const READ_AT_ONCE: usize = 256;

struct LogFollower {
    file: Arc<OpenFile>,
    origin: Arc<str>,
    latest: watch::Receiver<u64>,
    after: u64,
    pending: VecDeque<StoreUpdate>,
}

/// Streams events after the position `resume`, or from now on.
pub(super) fn follow(
    file: Arc<OpenFile>,
    origin: Arc<str>,
    latest: watch::Receiver<u64>,
    resume: Option<&str>,
) -> BoxStream<'static, Result<StoreUpdate, StoreError>> {
    let newest = *latest.borrow();
    let mut pending = VecDeque::new();
    let after = match resume {
        None => newest,
        Some(position) => match parse(position, &origin).filter(|number| *number <= newest) {
            Some(number) => number,
            None => {
                pending.push_back(StoreUpdate::Missed);
                newest
            }
        },
    };
    let follower = LogFollower {
        file,
        origin,
        latest,
        after,
        pending,
    };
    stream::try_unfold(follower, |mut follower| async move {
        let next = follower.next().await?;
        Ok(next.map(|next| (next, follower)))
    })
    .boxed()
}

/// The position of event `number`.
pub(super) fn position(origin: &str, number: u64) -> String {
    format!("{origin}-{number}")
}

fn parse(position: &str, origin: &str) -> Option<u64> {
    let (from, number) = position.rsplit_once('-')?;
    if from == origin { number.parse().ok() } else { None }
}

impl LogFollower {
    async fn next(&mut self) -> Result<Option<StoreUpdate>, StoreError> {
        loop {
            if let Some(published) = self.pending.pop_front() {
                return Ok(Some(published));
            }
            // Marked as seen before the read: later events end the wait below.
            self.latest.borrow_and_update();
            let events = self.read()?;
            if events.is_empty() && self.latest.changed().await.is_err() {
                return Ok(None);
            }
            self.take(events);
        }
    }

    fn read(&self) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        self.file.read(|reading| {
            let events = reading.open_table(EVENTS)?;
            let range = events.range(self.after.saturating_add(1)..)?;
            let read = range.take(READ_AT_ONCE).map(|entry| {
                let (number, payload) = entry?;
                Ok((number.value(), payload.value().to_vec()))
            });
            read.collect()
        })
    }

    fn take(&mut self, events: Vec<(u64, Vec<u8>)>) {
        for (number, payload) in events {
            if number > self.after + 1 {
                self.pending.push_back(StoreUpdate::Missed);
            }
            self.after = number;
            let position = position(&self.origin, number);
            self.pending.push_back(StoreUpdate::Event { position, payload });
        }
    }
}
