//! Audit records: who did what to which session, from where and with what outcome, in one schema.
//!
//! A record is a tracing event of the target [`TARGET`], made in one place ([`AuditRecord::write`]); where the audit log is on, it is
//! taken from the log records and chained ([`crate::audit_log`]).
//!
//! Invariant: a record holds no token, session ID, code, cookie or claim; a person is an issuer and a subject, the subject as
//! `AUDIT_SUBJECT` says.
//!
//! The schema with its version: [`schema`], and `docs/audit-log.md` for people. Why it is so: docs/decisions/audit-log.md.

mod origin;
mod record;
mod repeated;
pub(crate) mod schema;
mod subject;

pub use self::origin::{Origin, RequestId, carried};
pub use self::record::{AuditRecord, Outcome, reloaded};
pub use self::repeated::RepeatedRecords;
pub use self::schema::Event;
pub use self::subject::SubjectForm;
pub(crate) use self::subject::show_as;

/// The target of audit records among tracing events. No other target begins with it, so that a filter names these and no others.
pub const TARGET: &str = "audit::record";
