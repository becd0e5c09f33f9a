//! The note of an ending for one receiver: a sealed record in its receiver's list until the event is received.
//!
//! Invariants
//! - All replicas and retries give the same ending for the same receiver the same name and `jti`.
//! - Name and `jti` are derived one-way from receiver and session.

use prost::Message as _;

use super::event;
use super::receiver::Receiver;
use crate::error::SessionsError;
use crate::session::change::SessionEnding;
use crate::session::{Handle, Name, index};
use crate::session_store::sealed_notes::SIGNAL;
use crate::session_store::{SealError, SessionStore};
use crate::store::Record;

/// How long a receiver may be unreachable before it misses an event.
pub(super) const KEPT_MS: u64 = 7 * 86_400_000;

/// How much longer the store keeps a note, so that its removal is counted.
const UNCOUNTED_MS: u64 = 86_400_000;

/// The content of a note, before it is sealed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct SignalNote {
    #[prost(string, tag = "1")]
    pub(super) jti: String,
    /// The same in all notes of an ending.
    #[prost(string, tag = "2")]
    pub(super) txn: String,
    /// The subject: JSON.
    #[prost(string, tag = "3")]
    pub(super) sub_id: String,
    /// The event: JSON.
    #[prost(string, tag = "4")]
    pub(super) claims: String,
    /// The session: the event is sent once it is gone.
    #[prost(string, tag = "5")]
    session: String,
}

impl SignalNote {
    /// The note of an ending at `now_ms`.
    pub(super) fn of(receiver: &Receiver, ending: &SessionEnding<'_>, now_ms: u64) -> Self {
        let session = ending.session;
        let named = |context: &[u8], id: &str| {
            let parts = [context, id.as_bytes(), session.handle.as_bytes()];
            index::hashed(&parts).to_string()
        };
        // The provider's session continues if the new session belongs to it: its name would also end the new one.
        let goes_on = ending.replaced_by.is_some_and(|new| {
            new.issuer == session.issuer
                && new.provider_sid.is_some()
                && new.provider_sid == session.provider_sid
        });
        Self {
            jti: named(b"signal jti", &receiver.id),
            txn: named(b"signal txn", ""),
            sub_id: event::subject(receiver.subject, session, goes_on).to_string(),
            claims: event::revoked(ending.cause, now_ms).to_string(),
            session: session.handle.to_string(),
        }
    }

    /// The record of the session that ends.
    pub(super) fn session(&self) -> Option<Name> {
        Handle::parse(&self.session).ok()
    }

    /// Sealed for the store.
    pub(super) fn record(
        &self,
        receiver: &Receiver,
        session_store: &SessionStore,
    ) -> Result<Record, SessionsError> {
        let name = index::hashed(&[b"signal note", receiver.id.as_bytes(), self.jti.as_bytes()]);
        Ok(Record {
            indexes: vec![list_of(receiver)],
            ..session_store.note(SIGNAL, name, &self.encode_to_vec(), KEPT_MS + UNCOUNTED_MS)?
        })
    }

    /// Opens the note of a record.
    pub(super) fn open(record: &Record, session_store: &SessionStore) -> Result<Self, SealError> {
        let text = session_store
            .vault()
            .open_note(SIGNAL, record.name, &record.payload)?;
        Self::decode(&text[..]).map_err(|error| SealError::Malformed(error.into()))
    }
}

/// The list of all notes for a receiver; its lease has the same name.
pub(super) fn list_of(receiver: &Receiver) -> Name {
    index::hashed(&[b"signals", receiver.id.as_bytes()])
}
