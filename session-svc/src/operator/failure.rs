//! How a command ends.

/// How a command ended, as its exit code.
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

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct CommandFailure {
    /// For programs: a reason of the session API, or one of the command's own.
    pub(super) reason: String,
    /// For people: what is wrong and what to do.
    pub(super) text: String,
    /// With which code to end.
    pub(super) exit: Exit,
}

impl CommandFailure {
    /// Used wrongly.
    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self {
            reason: "usage".to_owned(),
            text: text.into(),
            exit: Exit::Usage,
        }
    }
}
