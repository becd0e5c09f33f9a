//! Names of stored values: 16 bytes, written as 32 lower-case hexadecimal digits.
//!
//! Invariant: the written form never changes: it is the key in stores, and sealed texts are bound to it.

use std::fmt;
use std::ops::Deref;

use super::id::{ID_BYTES, MalformedId, decode_hex};

/// Name of a record, a list or a remembered value: a one-way hash, so that a store knows no person.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name([u8; ID_BYTES]);

impl Name {
    /// Sorts before every other.
    pub(crate) const FIRST: Self = Self([0; ID_BYTES]);

    /// Takes the bytes of a hash.
    pub const fn from_bytes(bytes: [u8; ID_BYTES]) -> Self {
        Self(bytes)
    }

    /// Reads 32 lower-case hexadecimal digits, nothing else.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, MalformedId> {
        decode_hex(text).map(Self)
    }

    /// The bytes.
    pub(crate) fn as_bytes(&self) -> &[u8; ID_BYTES] {
        &self.0
    }

    /// The 32 digits, without an allocation.
    pub(crate) fn digits(self) -> Digits {
        let mut digits = [b'0'; DIGITS];
        // The buffer is large enough.
        let _ = base16ct::lower::encode(&self.0, &mut digits);
        Digits(digits)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.digits())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Two digits for each byte.
const DIGITS: usize = 2 * ID_BYTES;

/// The text of a name.
pub(crate) struct Digits([u8; DIGITS]);

impl Deref for Digits {
    type Target = str;

    fn deref(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_name_reads_back_what_it_wrote(bytes: [u8; ID_BYTES]) {
            let name = Name::from_bytes(bytes);
            prop_assert_eq!(Name::parse(name.to_string()), Ok(name));
            prop_assert_eq!(&*name.digits(), base16ct::lower::encode_string(&bytes));
        }

        #[test]
        fn names_sort_as_their_texts_do(one: [u8; ID_BYTES], other: [u8; ID_BYTES]) {
            let (one, other) = (Name::from_bytes(one), Name::from_bytes(other));
            prop_assert_eq!(one.cmp(&other), one.to_string().cmp(&other.to_string()));
            prop_assert!(Name::FIRST <= one);
        }
    }

    #[test]
    fn a_name_shows_as_its_digits() {
        let name = Name::from_bytes([0xab; ID_BYTES]);
        assert_eq!(format!("{name}"), "ab".repeat(ID_BYTES));
        assert_eq!(format!("{name:?}"), "ab".repeat(ID_BYTES));
    }
}
