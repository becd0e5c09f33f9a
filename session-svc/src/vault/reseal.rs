//! Sealing again what an older key of the ring sealed, without looking inside.
//!
//! Invariant: what is sealed stays byte for byte what it was, so that a session a newer release wrote survives being
//! resealed by an older one.

use super::{HEADER_BYTES, SESSION, Vault};
use crate::keeper::{KEY_ID_BYTES, KeyId, SealError};

/// What a sealed text is for, and so what it is bound to besides its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealBinding<'a> {
    /// The session of a record of this version.
    Session {
        /// The record's version.
        version: u64,
    },
    /// A note for this purpose.
    Note(&'a str),
}

impl<'a> SealBinding<'a> {
    /// Purpose and version the text is bound to.
    fn bound(self) -> (&'a str, u64) {
        match self {
            Self::Session { version } => (SESSION, version),
            Self::Note(purpose) => (purpose, 0),
        }
    }
}

impl Vault {
    /// Ids of the keys of the ring, the sealing one first.
    pub(crate) fn key_ids(&self) -> Vec<KeyId> {
        self.keys.load().ids().collect()
    }

    /// Id of the key a text says it was sealed with; `None` if it is too short to say anything.
    pub(crate) fn key_id_of(sealed: &[u8]) -> Option<KeyId> {
        let id = sealed.get(1..=KEY_ID_BYTES)?.try_into().ok()?;
        (sealed.len() >= HEADER_BYTES).then_some(KeyId(id))
    }

    /// Seals with the first key what any key of the ring has sealed.
    ///
    /// # Errors
    /// As for opening: of another use, of an unknown key or format, or changed.
    pub(crate) fn reseal(
        &self,
        name: &str,
        used: SealBinding<'_>,
        sealed: &[u8],
    ) -> Result<Vec<u8>, SealError> {
        let plain = self.open_bound(name, used, sealed)?;
        let (purpose, version) = used.bound();
        self.seal(purpose, name, version, &plain)
    }

    /// Opens what was sealed for this use, under whatever name a walk met it.
    pub(crate) fn open_bound(
        &self,
        name: &str,
        used: SealBinding<'_>,
        sealed: &[u8],
    ) -> Result<Vec<u8>, SealError> {
        let (purpose, version) = used.bound();
        self.open(purpose, name, version, sealed)
    }
}
