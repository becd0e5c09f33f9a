//! The audit log: where audit records go.
//!
//! With `AUDIT_LOG=stdout` records are lines among the log records. With a path a [`crate::logs::LogQueue`] of their own writes them
//! to a file ([`AuditFile`]).
//!
//! Invariants
//! - No request waits for a record. A record that finds no room is counted, and the count is a record (`audit.loss`).
//! - `RUST_LOG` does not filter audit records.
//!
//! Deliberately absent: protection of the written records and sending them over the network, which are the collector's work.

mod file;
mod settings;

pub(crate) use self::file::AuditFile;
pub(crate) use self::settings::Destination;
