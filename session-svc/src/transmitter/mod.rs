//! Reports endings to other systems, as a transmitter of Shared Signals (OpenID SSF 1.0, CAEP 1.0) that pushes (RFC 8935): for systems
//! that cannot hold a stream of the session API.
//!
//! `outbox` stores a note for each receiver (`note`) before the session ends. One replica has the lease of a receiver and pushes its events
//! in their order (`delivery`).
//!
//! Invariants
//! - A note is removed once its receiver has acknowledged it, and not before: each event is sent at least once, under one `jti`.
//! - No receiver delays an ending or another receiver; the notes of one are bounded.
//!
//! Deliberately absent: an API for receivers; the operator publishes metadata and keys. Events of sessions that expired, that began or that
//! are used.

mod delivery;
mod event;
mod measures;
mod note;
mod outbox;
mod receiver;

pub(crate) use delivery::{PUSH_TIMEOUT, QUEUED_MAX, deliver};
pub(crate) use outbox::Outbox;
pub use receiver::{Receiver, Receivers, SubjectFormat};
