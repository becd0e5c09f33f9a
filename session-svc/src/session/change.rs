//! What can happen to a session, as watchers see it.

use super::{Cause, Handle, Session};

/// What happened. The numbers are those of `session.v1.SessionEvent.Kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum ChangeKind {
    /// The session began.
    Created = 1,
    /// The session was extended by use.
    Rolled = 2,
    /// The session's tokens were refreshed.
    Refreshed = 3,
    /// The session's user, attributes or state changed.
    Changed = 4,
    /// The session ended.
    Ended = 5,
}

impl ChangeKind {
    /// The kind of this number. A kind of a newer release counts as a change: whoever caches the session has to read it again.
    pub(crate) fn of_number(number: u32) -> Self {
        let number = i32::try_from(number).unwrap_or_default();
        Self::try_from(number).unwrap_or(Self::Changed)
    }
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

/// A session that is about to end.
#[derive(Clone, Copy, Debug)]
pub struct SessionEnding<'a> {
    /// As it was last seen.
    pub session: &'a Session,
    /// Why.
    pub cause: Cause,
    /// The session that takes its place.
    pub replaced_by: Option<&'a Session>,
}
