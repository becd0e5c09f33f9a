//! What one receiver is to be told, as it is kept until it has acknowledged it: a sealed record, found by the list of its receiver.
//!
//! Invariants
//! - A note of the same event for the same receiver has the same name and the same `jti`, whoever writes it and however often.
//! - The name follows from receiver and `jti`, one-way: an acknowledgement finds its note, and nobody else's.

use prost::Message as _;
use serde_json::Value;

use super::receiver::{EventType, Receiver};
use crate::keeper::sealed_notes::SIGNAL;
use crate::keeper::{Keeper, KeeperError, SealError};
use crate::session::{Handle, Name, index};
use crate::store::Record;

/// How long a receiver may be away before it misses something.
pub(super) const KEPT_MS: u64 = 7 * 86_400_000;

/// How much longer the store keeps a note: whoever drops it for its age counts it.
const UNCOUNTED_MS: u64 = 86_400_000;

/// What a note says, before it is sealed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct SignalNote {
    /// The event as metrics name it.
    #[prost(string, tag = "1")]
    pub(super) event: String,
    /// The event as tokens name it.
    #[prost(string, tag = "2")]
    pub(super) event_uri: String,
    #[prost(string, tag = "3")]
    pub(super) jti: String,
    /// The same in all notes of an event.
    #[prost(string, tag = "4")]
    pub(super) txn: String,
    /// Whom it is about: JSON.
    #[prost(string, tag = "5")]
    pub(super) sub_id: String,
    /// What happened: JSON.
    #[prost(string, tag = "6")]
    pub(super) claims: String,
    /// The session that has to be gone before anybody is told; empty for none.
    #[prost(string, tag = "7")]
    pub(super) ending: String,
    /// When it was noted again, in milliseconds since the Unix epoch; 0 if it was not.
    #[prost(uint64, tag = "8")]
    pub(super) renewed_at_ms: u64,
}

impl SignalNote {
    /// Of an event of a session; `ending` is the session that has to be gone before.
    pub(super) fn of_session(
        receiver: &Receiver,
        event: EventType,
        what: &SessionEvent<'_>,
        sub_id: &Value,
        claims: &Value,
    ) -> Self {
        let event_parts: [&[u8]; 3] = [
            event.name().as_bytes(),
            what.handle.as_bytes(),
            &what.number.to_be_bytes(),
        ];
        let named = |context: &[u8], id: &str| {
            let parts: Vec<&[u8]> = [context, id.as_bytes()].into_iter().chain(event_parts).collect();
            index::hashed(&parts).to_string()
        };
        Self {
            event: event.name().to_owned(),
            event_uri: event.uri(),
            jti: named(b"signal jti", &receiver.id),
            txn: named(b"signal txn", ""),
            sub_id: sub_id.to_string(),
            claims: claims.to_string(),
            ending: what.ending.map(|handle| handle.to_string()).unwrap_or_default(),
            renewed_at_ms: 0,
        }
    }

    /// Name of its record.
    pub(super) fn name(&self, receiver: &Receiver) -> Name {
        name_of(receiver, &self.jti)
    }

    /// The session that has to be gone before anybody is told.
    pub(super) fn ending(&self) -> Option<Handle> {
        Handle::parse(&self.ending).ok()
    }

    /// Sealed for the store, as of `now_ms`.
    pub(super) fn record(
        &self,
        receiver: &Receiver,
        keeper: &Keeper,
        now_ms: u64,
    ) -> Result<Record, KeeperError> {
        let name = self.name(receiver);
        Ok(Record {
            name,
            version: 1,
            expires_at_ms: now_ms.saturating_add(KEPT_MS + UNCOUNTED_MS),
            created_at_ms: now_ms,
            indexes: vec![list_of(receiver)],
            payload: keeper.seal().seal_note(SIGNAL, name, &self.encode_to_vec())?,
        })
    }

    /// The next version of its record, noted again at `now_ms`; its place in the list stays.
    pub(super) fn renewed(
        &self,
        there: &Record,
        keeper: &Keeper,
        now_ms: u64,
    ) -> Result<Record, KeeperError> {
        let note = Self {
            renewed_at_ms: now_ms,
            ..self.clone()
        };
        let seal = keeper.seal();
        Ok(Record {
            version: there.version + 1,
            expires_at_ms: now_ms.saturating_add(KEPT_MS + UNCOUNTED_MS),
            payload: seal.seal_note(SIGNAL, there.name, &note.encode_to_vec())?,
            ..there.clone()
        })
    }

    /// Opens the note of a record.
    pub(super) fn open(record: &Record, keeper: &Keeper) -> Result<Self, SealError> {
        let text = keeper.seal().open_note(SIGNAL, record.name, &record.payload)?;
        Self::decode(&text[..]).map_err(|error| SealError::Malformed(error.into()))
    }
}

/// What makes an event of a session one of its own.
pub(super) struct SessionEvent<'a> {
    /// The session.
    pub(super) handle: &'a Handle,
    /// Tells events of one type and session apart; 0 for what happens once.
    pub(super) number: u64,
    /// The session that has to be gone before anybody is told.
    pub(super) ending: Option<Handle>,
}

/// Name of the note for a receiver with this `jti`.
pub(super) fn name_of(receiver: &Receiver, jti: &str) -> Name {
    index::hashed(&[b"signal note", receiver.id.as_bytes(), jti.as_bytes()])
}

/// The list of all notes for a receiver; its lease has the same name.
pub(super) fn list_of(receiver: &Receiver) -> Name {
    index::hashed(&[b"signals", receiver.id.as_bytes()])
}
