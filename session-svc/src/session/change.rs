//! What can happen to a session, as watchers see it.

use super::{Cause, Handle};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The session began.
    Created,
    /// The session was extended by use.
    Rolled,
    /// The session's tokens were refreshed.
    Refreshed,
    /// The session's user, attributes or state changed.
    Changed,
    /// The session ended.
    Ended,
}

/// Something that happened to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionChange {
    /// What happened.
    pub kind: ChangeKind,
    /// The session it happened to.
    pub handle: Handle,
    /// Issuer of the session's person; empty if the session could not be read.
    pub issuer: String,
    /// The session's person; empty if the session could not be read.
    pub subject: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Why it ended; none unless it did.
    pub cause: Option<Cause>,
}
