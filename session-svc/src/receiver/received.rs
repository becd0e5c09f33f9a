//! What is said of an event that was delivered.

use oidc::{SecurityEventError, SecurityEventErrorCode};

/// What became of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// It was taken, now or before.
    Taken,
    /// It was not, and never will be.
    Refused {
        /// What the transmitter is told.
        code: SecurityEventErrorCode,
        /// The same for people, in English.
        description: String,
    },
    /// It cannot be judged now: it has to come again.
    Undecided,
}

impl Received {
    /// What is said of a token that does not hold. A key that is not known may not be published yet, and an event is lost if it is refused
    /// for that.
    pub(super) fn of(error: &SecurityEventError) -> Self {
        match error.code().filter(|_| !error.is_undecided()) {
            Some(code) => Self::Refused {
                code,
                description: error.to_string(),
            },
            None => Self::Undecided,
        }
    }
}
