//! Why something could not be sealed or opened, and the fingerprint of the key it needs.

use std::error::Error;
use std::fmt;

use base16ct::HexDisplay;
use chassis::random::NoRandomness;

/// Bytes of a key's fingerprint: enough to tell the few keys of a ring apart. If two are alike, both are tried.
pub(crate) const KEY_ID_BYTES: usize = 4;

/// A key's fingerprint, which every sealed text names. It tells keys apart and says nothing about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId(pub(crate) [u8; KEY_ID_BYTES]);

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:x}", HexDisplay(&self.0))
    }
}

/// Why something could not be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The operating system gave no random bytes.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The text could not be sealed.
    #[error("the text could not be sealed")]
    NotWritten,
    /// The text is no text of ours, or was changed, swapped or rolled back.
    #[error("the sealed text was changed, swapped or never ours")]
    NotReadable,
    /// The text was sealed by a newer release in a format this one does not have.
    #[error("the sealed text has a format this release does not know")]
    UnknownFormat,
    /// The key it was sealed with is not in the ring. Another replica may have the key.
    #[error("the sealed text needs key {0}, which is not in SESSION_ENCRYPTION_KEY")]
    UnknownKey(KeyId),
    /// What is inside is not what is written there.
    #[error("the sealed text holds something else than expected")]
    Malformed(#[source] Box<dyn Error + Send + Sync>),
}
