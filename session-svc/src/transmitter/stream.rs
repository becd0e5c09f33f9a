//! The state of each receiver's stream, as its receiver has set it: one sealed record, which all replicas share.
//!
//! Invariants
//! - A receiver has the stream of the file until it says otherwise: without a record it is there and enabled.
//! - Every change compares versions.
//! - A record that cannot be opened, as one that a key sealed that was removed, stops nothing: the stream is as it was known last, or as in
//!   the file, and the next change writes it anew.
//! - What was noted before a stream was created again, or enabled after it was disabled, is not told.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use prost::Message as _;

use super::receiver::{EventType, Receiver};
use crate::keeper::sealed_notes::TOLD_STREAM;
use crate::keeper::{Keeper, KeeperError, SealError};
use crate::session::{Name, index};
use crate::store::{Inserted, Record, Replaced, StoreError};

/// How long a state is kept without a change: longer than any installation.
const KEPT_MS: u64 = 20 * 365 * 86_400_000;

/// How often a change that lost against another is made again.
const WRITE_ATTEMPTS: usize = 8;

/// What may be told (SSF 1.0, section 8.1.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum StreamStatus {
    /// Everything.
    Enabled = 0,
    /// Nothing for now; it is kept.
    Paused = 1,
    /// Nothing, and nothing is kept.
    Disabled = 2,
}

impl StreamStatus {
    const ALL: [Self; 3] = [Self::Enabled, Self::Paused, Self::Disabled];

    /// As the API writes it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Paused => "paused",
            Self::Disabled => "disabled",
        }
    }

    /// As the API writes it.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// The state of a stream, and how it is written down before it is sealed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct StreamState {
    /// Whether its receiver has deleted it.
    #[prost(bool, tag = "1")]
    pub(super) deleted: bool,
    #[prost(enumeration = "StreamStatus", tag = "2")]
    pub(super) status: i32,
    /// Why it has this status, in its receiver's words; empty for none.
    #[prost(string, tag = "3")]
    pub(super) reason: String,
    /// What its receiver calls it; empty for none.
    #[prost(string, tag = "4")]
    pub(super) description: String,
    /// Whether its receiver has said what it wants to hear of.
    #[prost(bool, tag = "5")]
    pub(super) is_narrowed: bool,
    /// Events its receiver wants to hear of.
    #[prost(string, repeated, tag = "6")]
    pub(super) events_requested: Vec<String>,
    /// What was noted before is not told, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "7")]
    pub(super) since_ms: u64,
    /// When its receiver last wanted to see that it works, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "8")]
    pub(super) verified_at_ms: u64,
}

impl StreamState {
    /// Whether what happens now is kept for its receiver.
    pub(super) fn takes_notes(&self) -> bool {
        !self.deleted && self.status() != StreamStatus::Disabled
    }

    /// Whether its receiver is told now.
    pub(super) fn is_told(&self) -> bool {
        !self.deleted && self.status() == StreamStatus::Enabled
    }

    /// Whether its receiver wants to hear of this event.
    pub(super) fn wants(&self, event: EventType) -> bool {
        !self.is_narrowed || self.events_requested.contains(&event.uri())
    }
}

/// The states of all streams, as they are in the store and as this replica knows them. Clones share both.
#[derive(Clone)]
pub(super) struct Streams {
    keeper: Keeper,
    known: Arc<Mutex<HashMap<Name, Arc<StreamState>>>>,
    /// Records that were found to be unreadable.
    unreadable: Arc<Mutex<HashSet<Name>>>,
}

impl Streams {
    pub(super) fn new(keeper: Keeper) -> Self {
        Self {
            keeper,
            known: Arc::default(),
            unreadable: Arc::default(),
        }
    }

    /// The state as this replica read it last, a second ago where it runs well.
    pub(super) fn known(&self, receiver: &Receiver) -> Arc<StreamState> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&name_of(receiver)).cloned().unwrap_or_default()
    }

    /// Reads the state.
    pub(super) async fn read(&self, receiver: &Receiver) -> Result<Arc<StreamState>, KeeperError> {
        let state = match self.keeper.store().load(name_of(receiver)).await {
            Ok(Some(record)) => self.open(&record),
            Ok(None) => Ok(StreamState::default()),
            Err(StoreError::Corrupt) => Err(StoreError::Corrupt.into()),
            Err(error) => return Err(error.into()),
        };
        match state {
            Ok(state) => Ok(self.remember(receiver, state)),
            Err(error) => {
                self.warn_once(receiver, &error);
                Ok(self.known(receiver))
            }
        }
    }

    /// Changes the state; what `edit` refuses changes nothing. Gives the state as it is then.
    pub(super) async fn edit<E: From<KeeperError>>(
        &self,
        receiver: &Receiver,
        mut edit: impl FnMut(&mut StreamState) -> Result<(), E>,
    ) -> Result<Arc<StreamState>, E> {
        let name = name_of(receiver);
        for _ in 0..WRITE_ATTEMPTS {
            let store = self.keeper.store();
            let record = store.load(name).await.map_err(KeeperError::from)?;
            let (version, mut state) = match &record {
                Some(record) => {
                    let state = self.open(record).unwrap_or_else(|error| {
                        self.warn_once(receiver, &error);
                        StreamState::clone(&self.known(receiver))
                    });
                    (record.version, state)
                }
                None => (0, StreamState::default()),
            };
            edit(&mut state)?;
            let sealed = self.keeper.seal();
            let payload = sealed
                .seal_note(TOLD_STREAM, name, &state.encode_to_vec())
                .map_err(KeeperError::from)?;
            let now_ms = self.keeper.now_ms();
            let next = Record {
                name,
                version: version + 1,
                expires_at_ms: now_ms.saturating_add(KEPT_MS),
                created_at_ms: record.map_or(now_ms, |record| record.created_at_ms),
                indexes: Vec::new(),
                payload,
            };
            let written = if version == 0 {
                let inserted = store.insert(next, Vec::new()).await;
                inserted.map_err(KeeperError::from)? == Inserted::Done
            } else {
                let replaced = store.replace(next, version, None).await;
                replaced.map_err(KeeperError::from)? == Replaced::Done
            };
            if written {
                return Ok(self.remember(receiver, state));
            }
        }
        Err(KeeperError::StaleVersion.into())
    }

    fn open(&self, record: &Record) -> Result<StreamState, KeeperError> {
        let seal = self.keeper.seal();
        let text = seal.open_note(TOLD_STREAM, record.name, &record.payload)?;
        Ok(StreamState::decode(&text[..]).map_err(|error| SealError::Malformed(error.into()))?)
    }

    fn warn_once(&self, receiver: &Receiver, error: &KeeperError) {
        let mut unreadable = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        if unreadable.insert(name_of(receiver)) {
            let error = error as &dyn std::error::Error;
            tracing::warn!(
                receiver = receiver.id,
                error,
                "what a receiver has set of its stream cannot be read: it counts as known last, or as in the file"
            );
        }
    }

    fn remember(&self, receiver: &Receiver, state: StreamState) -> Arc<StreamState> {
        let state = Arc::new(state);
        let mut unreadable = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        unreadable.remove(&name_of(receiver));
        drop(unreadable);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name_of(receiver), Arc::clone(&state));
        state
    }
}

/// Name of the record of a receiver's stream.
fn name_of(receiver: &Receiver) -> Name {
    index::hashed(&[TOLD_STREAM.as_bytes(), receiver.id.as_bytes()])
}
