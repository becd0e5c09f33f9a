//! Watching that goes on: streams that are opened again where they ended, and say so when something may be missing.
//!
//! Invariants
//! - Between two `Connected` without a `Missed` in between, every event of the sessions watched was delivered.
//! - A stream that is silent for `ClientSettings::watch_silence` is lost, however open its connection looks, and so is one whose news
//!   is older than that, however steadily bytes arrive.
//! - Nothing is buffered for a consumer that does not read: the service sends no faster than is read here.

mod each;
mod freshness;
mod replica_watch;

pub(super) use self::each::each;
pub(super) use self::replica_watch::watch;

use super::failure::SessionError;
use crate::v1::SessionEvent;

/// What a watch delivers.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchItem {
    /// This replica is known now and nothing was received from it yet. Only where replicas are watched one by one.
    Found,
    /// The replica is connected, and everything up to here was delivered. Comes again after every `Lost`.
    Connected,
    /// Something happened, or (`KIND_HEARTBEAT`) nothing did and everything up to here was delivered. Never `KIND_MISSED`.
    Event(SessionEvent),
    /// Everything that happened before this moment was delivered. It comes several times within `ClientSettings::watch_silence`.
    Current(std::time::Instant),
    /// Events were lost: whatever was remembered of sessions has to be read again.
    Missed,
    /// Nothing is received from the replica, or only too late. It is tried again, with pauses that grow to five seconds.
    Lost(SessionError),
    /// The name does not lead to this replica any more. Only where replicas are watched one by one.
    Gone,
}
