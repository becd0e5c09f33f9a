//! The audit log: where audit records go.
//!
//! With `AUDIT_LOG=stdout`, audit records are lines among the log records. With a path, a separate
//! [`crate::logs::LogQueue`] writes them to a file ([`AuditFile`]).
//!
//! Invariants
//! - No request waits for a record. If the queue is full, the record is dropped and counted (`audit.loss`).
//! - `RUST_LOG` does not filter audit records.
//!
//! Deliberately absent: protection and transport of written records, which are the collector's work.

mod file;
mod settings;

pub(crate) use self::file::AuditFile;
pub(crate) use self::settings::Destination;
