//! The published events of one store, from one stream or from all streams of a cluster.
//!
//! Invariants
//! - A listener receives all streams or none: if one of them fails, the listener receives an error and no more.
//! - The events of one record arrive in the order of its writes. Across records, a cluster keeps no order.
//! - A loss in one stream is reported as `Missed`, without a record: it may concern any record of the stream.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{ready, try_join_all};
use futures_util::stream::{BoxStream, StreamExt as _, select_all};
use tokio::sync::Semaphore;

use crate::store::{Name, StoreError, StoreUpdate};

use super::answers::unavailable;
use super::entries::EntryContent;
use super::keys::KeyNames;
use super::partitions::{neighbours, partition_of};
use super::pool::WorkerConnection;
use super::positions::Positions;
use super::stream::StreamFeed;

/// Events that a server's only stream keeps for resuming: minutes of a busy installation, 2 to 3 MB.
const KEPT_EVENTS: u64 = 8_192;

/// Events that each of a cluster's streams keeps: together twice as many.
const KEPT_EVENTS_EACH: u64 = 512;

/// Pause after a read of one of a cluster's streams, so that the next read returns several events. A busy
/// stream costs a replica at most a hundred reads a second, and a single event does not wait.
const READ_TOGETHER: Duration = Duration::from_millis(10);

/// The events of one store.
pub(super) struct EventFeed {
    keys: KeyNames,
    /// One stream; in a cluster one for each partition.
    streams: Vec<Arc<StreamFeed>>,
    /// How many events a stream keeps.
    pub(super) kept: u64,
}

impl EventFeed {
    /// The stream of one server or master, or all streams of a cluster if keys are `scattered`.
    pub(super) fn new(connection: &WorkerConnection, keys: &KeyNames, scattered: bool) -> Self {
        let (names, kept, pause) = if scattered {
            (keys.event_partitions(), KEPT_EVENTS_EACH, READ_TOGETHER)
        } else {
            (vec![keys.events()], KEPT_EVENTS, Duration::ZERO)
        };
        let turn = Arc::new(Semaphore::new(1));
        let feed = |key| StreamFeed::new(connection.clone(), key, kept, pause, Arc::clone(&turn));
        Self {
            keys: keys.clone(),
            streams: names.into_iter().map(feed).collect(),
            kept,
        }
    }

    /// Streams the events after `after`, or from now on.
    pub(super) async fn follow(
        &self,
        after: Option<String>,
    ) -> Result<BoxStream<'static, Result<StoreUpdate, StoreError>>, StoreError> {
        let resumed = match &after {
            None => Some(self.newest().await?),
            Some(position) => self.resumed(position),
        };
        let (positions, begins) = match resumed {
            Some(positions) => (positions, None),
            None => (self.newest().await?, Some(Ok(StoreUpdate::Missed))),
        };
        let streams = self.streams.iter().zip(positions.ids());
        let heard = try_join_all(streams.map(|(stream, id)| stream.follow(*id))).await?;
        let heard = heard.into_iter().enumerate();
        let heard = select_all(heard.map(|(at, heard)| heard.map(move |heard| (at, heard)).boxed()));
        let updates = heard.scan(Some(positions), |positions, (at, heard)| {
            let update = positions
                .as_mut()
                .map(|positions| Ok(positions.advance(at, heard?)));
            // An error in one stream ends all.
            positions.take_if(|_| matches!(update, Some(Err(_))));
            ready(update)
        });
        Ok(futures_util::stream::iter(begins).chain(updates).boxed())
    }

    /// The newest position.
    pub(super) async fn position(&self) -> Result<String, StoreError> {
        Ok(self.newest().await?.to_string())
    }

    /// The candidate streams in a cluster for a write to this record: the script uses the first on its node.
    pub(super) fn near(&self, name: Name) -> Vec<Vec<u8>> {
        if self.streams.len() == 1 {
            return Vec::new();
        }
        let near = neighbours(partition_of(&self.keys.record(name)));
        near.map(|near| self.streams[near].key.clone()).into()
    }

    /// Publishes an event separately, if the script of its write could not.
    pub(super) async fn publish(&self, name: Name, event: Vec<u8>) {
        self.stream_of(name)
            .publish(EntryContent::Event(event.into()))
            .await;
    }

    /// Reports to listeners, in the background, that they may have missed an event of this record.
    pub(super) fn publish_gap(&self, name: Name) {
        self.stream_of(name).publish_later(EntryContent::Gap);
    }

    async fn newest(&self) -> Result<Positions, StoreError> {
        let newest = try_join_all(self.streams.iter().map(|stream| stream.newest()));
        Ok(Positions::new(newest.await.map_err(unavailable)?))
    }

    /// The position to resume from; `None` if it is unknown what the listener missed.
    fn resumed(&self, position: &str) -> Option<Positions> {
        Positions::parse(position).filter(|positions| positions.ids().len() == self.streams.len())
    }

    /// The stream with the events of a record.
    fn stream_of(&self, name: Name) -> &Arc<StreamFeed> {
        match &self.streams[..] {
            [only] => only,
            streams => &streams[partition_of(&self.keys.record(name))],
        }
    }
}
