//! Audit records: who did what to which session, from where and with what outcome, in one schema.
//!
//! A record is a tracing event of the target [`TARGET`], made in one place ([`AuditRecord::write`]).
//! [`crate::logs`] writes it to the stream of `AUDIT_LOG` ([`crate::audit_log`]).
//!
//! Invariant: a record holds no token, session ID, code or cookie. It names a user by issuer and subject, and
//! holds no other claim but the one that an operator searched for.
//!
//! The schema with its version: [`schema`], and `docs/audit-log.md` for people.

mod origin;
mod record;
mod repeated;
pub(crate) mod schema;

pub use self::origin::{Operator, Origin, RequestId, carried};
pub use self::record::{AuditRecord, Outcome, reloaded};
pub use self::repeated::RepeatedRecords;
pub use self::schema::Event;

/// The tracing target of audit records. No other target starts with it, so a filter can select exactly these.
pub const TARGET: &str = "audit::record";
