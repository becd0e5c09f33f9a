//! Reports endings to other systems as a transmitter of Shared Signals (OpenID SSF 1.0, CAEP 1.0) that pushes
//! (RFC 8935): for systems that cannot hold a stream of the session API.
//!
//! `outbox` stores a note for each receiver (`note`) before the session ends. One replica has the lease of a
//! receiver and pushes its events in order (`delivery`).
//!
//! Invariants
//! - A note stays until its receiver acknowledges it: each event is sent at least once, with one `jti`.
//! - No receiver delays an ending or another receiver; the notes of one are bounded.
//!
//! Deliberately absent: an API for receivers, as the operator publishes metadata and keys; events of the
//! expiry, creation or use of sessions.

mod delivery;
mod event;
mod measures;
mod note;
mod outbox;
mod receiver;

pub(crate) use delivery::{PUSH_TIMEOUT, QUEUED_MAX, deliver};
pub(crate) use outbox::Outbox;
pub use receiver::{Receiver, Receivers, SubjectFormat};
