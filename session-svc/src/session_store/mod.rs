//! Sessions in the store: sealed on write, opened and checked on read. Next to them are the marks of endings
//! (`endings`).
//!
//! Invariants
//! - A session that is read is valid now by the current durations; any other one is missing.
//! - Every write compares versions and publishes what changed; a removed session is never written again.

mod counts;
pub(crate) mod demands;
pub(crate) mod ending_notes;
pub(crate) mod endings;
pub(crate) mod listed;
pub(crate) mod notices;
mod records;
mod removing;
mod retry;
pub(crate) mod sealed_notes;

pub use crate::vault::{KeyId, SealError};
pub use counts::SessionCounts;
pub(crate) use endings::REQUEST_KEPT_MS;
pub use listed::ListedSession;
pub use records::SessionStore;
pub use removing::Removal;
