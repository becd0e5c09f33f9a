//! Names of what is not always kept under a hash: leases and remembered values.
//!
//! Invariant: what a name is written as never changes: replicas of two releases share it.

use std::fmt;

use crate::session::{Handle, Name};

/// Introduces the lease of a session's refresh.
const REFRESH: &str = "refresh:";

/// Introduces the sign that a session was refreshed ahead.
const AHEAD: &str = "ahead:";

/// What a lease is held on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseName {
    /// The refresh of a session's tokens.
    Refresh(Handle),
    /// Something else that has a name, such as a list.
    Named(Name),
}

impl fmt::Display for LeaseName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refresh(handle) => write!(formatter, "{REFRESH}{handle}"),
            Self::Named(name) => name.fmt(formatter),
        }
    }
}

/// What a value is remembered under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RememberedName {
    /// A session: its tokens were to be refreshed ahead a moment ago.
    Ahead(Handle),
    /// Something else that has a name, such as a request.
    Named(Name),
}

impl fmt::Display for RememberedName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ahead(handle) => write!(formatter, "{AHEAD}{handle}"),
            Self::Named(name) => name.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: &str = "000102030405060708090a0b0c0d0e0f";

    #[test]
    fn names_are_written_as_every_release_writes_them() {
        let (handle, name) = (Handle::parse(DIGITS).unwrap(), Name::parse(DIGITS).unwrap());
        assert_eq!(
            LeaseName::Refresh(handle).to_string(),
            format!("refresh:{DIGITS}")
        );
        assert_eq!(LeaseName::Named(name).to_string(), DIGITS);
        assert_eq!(
            RememberedName::Ahead(handle).to_string(),
            format!("ahead:{DIGITS}")
        );
        assert_eq!(RememberedName::Named(name).to_string(), DIGITS);
    }
}
