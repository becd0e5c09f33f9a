//! Seals sessions before a store sees them.
//!
//! A sealed text is `format (1) | key id (4) | nonce (12) | ciphertext and tag`, by AES-256-GCM. Our
//! processors have AES in hardware; elsewhere aws-lc uses constant-time code. Each record name has its own key
//! (HKDF-SHA256 of the ring's key and the name). Random 96-bit nonces thus stay far below their limit.
//!
//! Invariants
//! - Purpose, name and version of a text are authenticated, each with its length. A record that was swapped,
//!   rolled back or moved does not open.
//! - The first key of the ring seals once its waiting time has passed. Every key opens.
//! - The format byte gives the method of sealing; [`wire`] defines the content. A text of another format is
//!   rejected with its own error, and left unchanged (docs/decisions/stored-format.md).
//!
//! Deliberately absent: compression, because an observer of the store could learn how similar two claims are.
//! Lengths reveal only whether an ID token repeats the session's claims (`id_claims`).

mod error;
mod id_claims;
pub(crate) mod keys;
mod subject;
mod unknown;
mod unknown_keys;
mod wire;

use std::sync::Arc;

use aws_lc_rs::aead::{Aad, NONCE_LEN, Nonce};
use chassis::clock::{Clock, SystemClock};
use chassis::random;
use chassis::secret::Reloading;

pub(crate) use error::KEY_ID_BYTES;
pub use error::{KeyId, SealError};
pub use keys::KeyRing;
pub(crate) use keys::{KEY_BYTES, ListedKey, MalformedKey, parse_list};
pub(crate) use unknown_keys::UnknownKeys;

use crate::session::change::SessionChange;
use crate::session::{Name, Session};

/// The current format of sealed texts.
const FORMAT: u8 = 1;

/// Bytes before the ciphertext: format, key id, nonce.
const HEADER_BYTES: usize = 1 + KEY_ID_BYTES + NONCE_LEN;

/// Seals and opens with a key ring that may change while the process runs.
pub struct Vault {
    /// The ring. Other parts of the process hold a clone and replace the keys.
    pub(crate) keys: Reloading<KeyRing>,
    /// The clock for a key's waiting time.
    pub(crate) clock: Arc<dyn Clock>,
    /// Reports texts that need a key that the vault does not have.
    pub(crate) unknown_keys: Option<UnknownKeys>,
}

impl Vault {
    /// A vault with this ring. A holder of a clone can replace the keys.
    pub fn new(keys: Reloading<KeyRing>) -> Self {
        Self {
            keys,
            clock: Arc::new(SystemClock),
            unknown_keys: None,
        }
    }

    fn seal(&self, purpose: &str, name: &str, version: u64, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let ring = self.keys.load();
        let (key_id, key) = ring
            .sealing_key(name, self.clock.monotonic_ms())
            .ok_or(SealError::NotWritten)?;
        let nonce = random::bytes::<NONCE_LEN>()?;
        let mut sealed = Vec::with_capacity(HEADER_BYTES + plain.len() + key.algorithm().tag_len());
        sealed.push(FORMAT);
        sealed.extend_from_slice(&key_id.0);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plain);
        let context = Aad::from(bound_to(purpose, name, version));
        let tag = key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                context,
                &mut sealed[HEADER_BYTES..],
            )
            .map_err(|_| SealError::NotWritten)?;
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    fn open(&self, purpose: &str, name: &str, version: u64, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let Some((&FORMAT, rest)) = sealed.split_first() else {
            return Err(match sealed.len() < HEADER_BYTES {
                true => SealError::NotReadable,
                false => SealError::UnknownFormat,
            });
        };
        let (key_id, rest) = rest.split_first_chunk().ok_or(SealError::NotReadable)?;
        let (nonce, text) = rest.split_first_chunk().ok_or(SealError::NotReadable)?;
        let key_id = KeyId(*key_id);
        let ring = self.keys.load();
        let mut known = false;
        for key in ring.opening_keys(key_id, name) {
            known = true;
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let context = Aad::from(bound_to(purpose, name, version));
            let mut text = text.to_vec();
            if let Ok(plain) = key.open_in_place(nonce, context, &mut text) {
                let length = plain.len();
                text.truncate(length);
                return Ok(text);
            }
        }
        if known {
            return Err(SealError::NotReadable);
        }
        if let Some(unknown_keys) = &self.unknown_keys {
            unknown_keys.report(key_id, self.clock.monotonic_ms());
        }
        Err(SealError::UnknownKey(key_id))
    }
}

/// The data that a text is bound to. Each part has its length, so no two combinations give the same bytes.
fn bound_to(purpose: &str, name: &str, version: u64) -> Vec<u8> {
    let mut bound = Vec::with_capacity(1 + 8 * 3 + purpose.len() + name.len());
    bound.push(FORMAT);
    for part in [purpose, name] {
        bound.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bound.extend_from_slice(part.as_bytes());
    }
    bound.extend_from_slice(&version.to_be_bytes());
    bound
}

const SESSION: &str = "session";
const CHANGE: &str = "change";

impl Vault {
    /// Seals a session for the record of its handle and version.
    pub fn seal_session(&self, session: &Session) -> Result<Vec<u8>, SealError> {
        let plain = wire::session_to_bytes(session);
        self.seal(SESSION, &session.handle.digits(), session.version, &plain)
    }

    /// Opens the session of this record name and version.
    pub fn open_session(&self, name: Name, version: u64, sealed: &[u8]) -> Result<Session, SealError> {
        let plain = self.open(SESSION, &name.digits(), version, sealed)?;
        wire::session_from_bytes(name, version, plain.into())
    }

    /// Seals a change for publication.
    pub(crate) fn seal_change(&self, change: &SessionChange) -> Result<Vec<u8>, SealError> {
        self.seal(CHANGE, "", 0, &wire::change_to_bytes(change))
    }

    /// Opens a published change.
    pub(crate) fn open_change(&self, sealed: &[u8]) -> Result<SessionChange, SealError> {
        wire::change_from_bytes(&self.open(CHANGE, "", 0, sealed)?)
    }

    /// Seals a few bytes for one purpose under one name.
    pub(crate) fn seal_note(&self, purpose: &str, name: Name, note: &[u8]) -> Result<Vec<u8>, SealError> {
        self.seal(purpose, &name.digits(), 0, note)
    }

    /// Opens what [`Self::seal_note`] sealed for the same purpose and name.
    pub(crate) fn open_note(&self, purpose: &str, name: Name, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        self.open(purpose, &name.digits(), 0, sealed)
    }
}

#[cfg(test)]
#[path = "vault_tests.rs"]
mod tests;

#[cfg(test)]
mod format_tests;
