//! Continuous watching: streams resume where they ended, and report possible gaps.
//!
//! Invariants
//! - Between two `Connected` without a `Missed`, every event of the watched sessions was delivered.
//! - A stream is lost if it is silent for `ClientSettings::watch_silence`, even if its connection looks open.
//!   It is also lost if its state is older than that, even if bytes arrive.
//! - There is no buffer for a slow consumer: the service sends only as fast as the consumer reads.

mod each;
mod freshness;
mod replica_watch;

pub(super) use self::each::each;
pub(super) use self::replica_watch::watch;

use super::failure::SessionError;
use crate::v1::SessionEvent;

/// An item of a watch.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchItem {
    /// The name resolves to this replica; nothing was received yet. Only if replicas are watched one by one.
    Found,
    /// The replica is connected, and everything up to here was delivered. Repeated after every `Lost`.
    Connected,
    /// An event. `KIND_HEARTBEAT` means that everything up to here was delivered. Never `KIND_MISSED`.
    Event(SessionEvent),
    /// Everything before this moment was delivered. Arrives several times within
    /// `ClientSettings::watch_silence`.
    Current(std::time::Instant),
    /// Events were lost: discard cached sessions and read them again.
    Missed,
    /// The replica is silent or late. The client retries, with pauses that grow to five seconds.
    Lost(SessionError),
    /// The name no longer resolves to this replica. Only if replicas are watched one by one.
    Gone,
}
