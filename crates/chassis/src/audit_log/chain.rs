//! The chain: each record carries a number and the hash of the record before, and closes with a hash of its own.
//!
//! A hash covers the bytes of the line as they are, from its brace to its own hash: nobody has to agree on how JSON is written. With a
//! key it is an HMAC (RFC 2104), which somebody who can write the file but does not have the key cannot make; without one it is a
//! plain SHA-256, which shows accidents and clumsy hands.

use ring::{digest, hmac};

use super::line::{self, HASH_BYTES, Hash};
use crate::secret::Secret;

/// Least bytes of a key: what the hash gives (RFC 2104, section 3).
pub(crate) const KEY_BYTES_MIN: usize = HASH_BYTES;

/// What makes the hashes.
#[derive(Clone, Debug, Default)]
pub struct ChainKey(Option<Secret<hmac::Key>>);

impl ChainKey {
    /// With the key of these bytes.
    #[must_use]
    pub fn of(key: &[u8]) -> Self {
        Self(Some(Secret::new(hmac::Key::new(hmac::HMAC_SHA256, key))))
    }

    /// As the first record of a chain names it.
    #[must_use]
    pub(crate) fn algorithm(&self) -> &'static str {
        match self.0 {
            None => "sha256",
            Some(_) => "hmac-sha256",
        }
    }

    /// The hash of a line's bytes.
    #[must_use]
    pub(crate) fn hash(&self, bytes: &[u8]) -> Hash {
        match &self.0 {
            None => line::to_hash(digest::digest(&digest::SHA256, bytes).as_ref()),
            Some(key) => line::to_hash(hmac::sign(key.expose(), bytes).as_ref()),
        }
    }
}

/// Where a chain is: what its next record is made with.
pub(crate) struct Chain {
    key: ChainKey,
    /// What every line begins with, up to its number.
    head: String,
    instance: String,
    sequence: u64,
    last: Hash,
}

impl Chain {
    /// A chain that has no record yet.
    pub(crate) fn begin(key: ChainKey, service: &str, instance: &str) -> Self {
        Self {
            key,
            head: line::head(service, instance),
            instance: instance.to_owned(),
            sequence: 0,
            last: [0; HASH_BYTES],
        }
    }

    /// Appends the line of the next record to `lines`; `fields` are its own, as members of a JSON object.
    pub(crate) fn append(&mut self, lines: &mut Vec<u8>, fields: &[u8]) {
        self.sequence += 1;
        let begun_at = lines.len();
        line::begin(lines, &self.head, self.sequence, fields, &self.last);
        self.last = self.key.hash(&lines[begun_at..]);
        line::close(lines, &self.last);
    }

    /// The name of the chain.
    pub(crate) fn instance(&self) -> &str {
        &self.instance
    }

    /// The number of the last record.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The hash of the last record, in hexadecimal digits.
    pub(crate) fn last_hash(&self) -> String {
        base16ct::lower::encode_string(&self.last)
    }
}
