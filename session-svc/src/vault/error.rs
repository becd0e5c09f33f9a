//! Errors of sealing and opening, and the fingerprint of the needed key.

use std::error::Error;
use std::fmt;

use base16ct::HexDisplay;
use chassis::random::NoRandomness;

/// Bytes of a key's fingerprint: enough for the few keys of a ring. If two keys share one, both are tried.
pub(crate) const KEY_ID_BYTES: usize = 4;

/// A key's fingerprint, which every sealed text contains. It identifies the key and reveals nothing about it.
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
    /// The text is not a sealed text, or was changed, swapped or rolled back.
    #[error("the sealed text was changed or swapped, or another service sealed it")]
    NotReadable,
    /// A newer release sealed the text in a format that this release does not know.
    #[error("the sealed text has a format this release does not know")]
    UnknownFormat,
    /// The key of the text is not in the ring. Another replica may have it.
    #[error("the sealed text needs key {0}, which is not in SESSION_ENCRYPTION_KEY")]
    UnknownKey(KeyId),
    /// The content of the text has another form than expected.
    #[error("the sealed text has unexpected content")]
    Malformed(#[source] Box<dyn Error + Send + Sync>),
}
