//! Changes of a session, as watchers receive them.

use super::{Cause, Handle, Session};

/// The kind of a change. The numbers are those of `session.v1.SessionEvent.Kind`.
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
    /// The kind with this number. An unknown kind of a newer release counts as `Changed`: caches must reread.
    pub(crate) fn of_number(number: u32) -> Self {
        let number = i32::try_from(number).unwrap_or_default();
        Self::try_from(number).unwrap_or(Self::Changed)
    }
}

/// A change of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionChange {
    /// The kind of change.
    pub kind: ChangeKind,
    /// The changed session.
    pub handle: Handle,
    /// Issuer of the session's person; empty if the session could not be read.
    pub issuer: String,
    /// The session's person; empty if the session could not be read.
    pub subject: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Why it ended; `None` for other changes.
    pub cause: Option<Cause>,
}

/// A session that is about to end.
#[derive(Clone, Copy, Debug)]
pub struct SessionEnding<'a> {
    /// Its last known state.
    pub session: &'a Session,
    /// Why.
    pub cause: Cause,
    /// The session that replaces it.
    pub replaced_by: Option<&'a Session>,
}
