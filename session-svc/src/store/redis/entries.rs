//! Entries of the event stream, as the Redis server sends them.

use std::sync::Arc;

use redis::{FromRedisValue, ParsingError, Value};

/// An entry's ID: a time in milliseconds and a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id(pub(super) u64, pub(super) u64);

impl Id {
    /// Parses an ID that can be a read position; rejects the greatest ID.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (ms, number) = text.split_once('-')?;
        let id = Self(ms.parse().ok()?, number.parse().ok()?);
        // No entry can follow the greatest ID. The server rejects it as a position.
        Some(id).filter(|id| *id != Self(u64::MAX, u64::MAX))
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

/// An entry of the stream.
#[derive(Clone)]
pub(super) struct StreamEntry {
    pub(super) id: Id,
    pub(super) content: EntryContent,
}

/// The content of an entry.
#[derive(Clone)]
pub(super) enum EntryContent {
    /// A published event.
    Event(Arc<[u8]>),
    /// No event: the entry gives a listener a start position in an empty stream.
    Mark,
    /// Listeners may have missed events, for example because the answer to a write was lost.
    Gap,
}

pub(super) fn unexpected() -> ParsingError {
    "the event stream holds an unexpected entry".to_owned().into()
}

impl FromRedisValue for StreamEntry {
    /// Parses an entry in a reply of XRANGE or XREAD: an array of the ID and the field-value pairs.
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let (id, fields): (String, Vec<Vec<u8>>) = FromRedisValue::from_redis_value(value)?;
        let id = Id::parse(&id).ok_or_else(unexpected)?;
        let content = match fields.as_slice() {
            [field, payload] if field == b"e" => EntryContent::Event(Arc::from(payload.as_slice())),
            [field, _] if field == b"mark" => EntryContent::Mark,
            [field, _] if field == b"gap" => EntryContent::Gap,
            _ => return Err(unexpected()),
        };
        Ok(Self { id, content })
    }
}
