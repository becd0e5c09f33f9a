//! The audit log: audit records in an order that cannot be changed unseen, written to a stream of their own.
//!
//! Records leave the log ([`crate::logs`]) for a queue; a thread gives each its number, chains it to the one before by a hash, and
//! writes it to a file or among the log records ([`stream`]). Each process has a chain of its own, under a random name, from its
//! `process.start` to its `process.stop`.
//!
//! Invariants
//! - No request waits for a record. What finds no room is counted, and the count is a record of the chain.
//! - `RUST_LOG` has no say in what is written.
//!
//! Deliberately absent: sending records over the network, which is a collector's work.

mod chain;
mod file;
mod line;
mod measures;
mod settings;
mod stream;
pub mod verify;
mod writer;

pub use self::chain::ChainKey;
pub(crate) use self::settings::{AuditSettings, Destination};
pub use self::settings::{chain_keys, subject_form};
pub(crate) use self::stream::{AuditLog, OpenError, Process};
