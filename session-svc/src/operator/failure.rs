//! The exit codes and failures of a command.

/// The result of a command, as its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// The command did its work.
    Done = 0,
    /// Something failed.
    Failed = 1,
    /// The command was not understood.
    Usage = 2,
    /// There is no such session.
    NotFound = 3,
}

/// Why a command failed.
#[derive(Debug)]
pub(super) struct CommandFailure {
    /// For programs: a reason of the session API, or one of the command's own.
    pub(super) reason: String,
    /// For people: what is wrong, and what to do.
    pub(super) text: String,
    /// The exit code.
    pub(super) exit: Exit,
}

impl CommandFailure {
    /// The failure for wrong usage.
    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self {
            reason: "usage".to_owned(),
            text: text.into(),
            exit: Exit::Usage,
        }
    }
}
