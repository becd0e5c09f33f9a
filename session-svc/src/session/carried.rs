//! What a newer release wrote with a session and this one does not know.
//!
//! During a rollout two releases serve the same sessions. The older one writes back what it could not read, byte for
//! byte, so that the newer one loses nothing when the older one rolls or refreshes a session.
//!
//! Invariant: the content never shows in `Debug`; it may be a token of some later kind.

use std::fmt;

/// Opaque to this release.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Carried(Vec<u8>);

impl Carried {
    /// What was found.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes, for writing them back.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Carried {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Carried({} bytes)", self.0.len())
    }
}
