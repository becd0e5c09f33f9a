//! The secret session ID and the public handle made from it.
//!
//! Invariants: an ID is 16 random bytes, written as 32 lower-case hexadecimal digits. A handle reveals
//! nothing about its ID. Neither `Debug` nor an error ever shows an ID.

use std::fmt;

use aws_lc_rs::digest;
use aws_lc_rs::rand::SecureRandom;
use base16ct::lower::encode_string;
use chassis::random::NoRandomness;

use super::Name;

/// Size of an ID and of a handle in bytes. An attacker cannot guess 128 bits.
pub(crate) const ID_BYTES: usize = 16;

/// Domain separation: no other hash of the same bytes equals a handle.
const HANDLE_CONTEXT: &[u8] = b"vestibule session handle v1";

/// The secret that identifies a session for its browser.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionId([u8; ID_BYTES]);

/// The public name of a session and of its stored record. Logs and lists may contain it.
pub type Handle = Name;

/// The text is not 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not 32 lower-case hexadecimal digits")]
pub struct MalformedId;

impl SessionId {
    /// Creates a random ID; fails if the system provides no random bytes.
    pub(crate) fn random(random: &dyn SecureRandom) -> Result<Self, NoRandomness> {
        let mut bytes = [0; ID_BYTES];
        random.fill(&mut bytes).map_err(|_| NoRandomness)?;
        Ok(Self(bytes))
    }

    /// Restores an ID from its bytes.
    pub fn from_bytes(bytes: [u8; ID_BYTES]) -> Self {
        Self(bytes)
    }

    /// Reads 32 lower-case hexadecimal digits, nothing else.
    pub fn parse(text: &str) -> Result<Self, MalformedId> {
        decode_hex(text).map(Self)
    }

    /// Returns the secret bytes. The caller has to seal them before storage.
    pub(crate) fn as_bytes(&self) -> &[u8; ID_BYTES] {
        &self.0
    }

    /// Returns the secret as 32 digits, only for the caller that creates the session.
    pub(crate) fn reveal(&self) -> String {
        encode_string(&self.0)
    }

    /// The public name of the session.
    pub fn handle(&self) -> Handle {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(HANDLE_CONTEXT);
        context.update(&self.0);
        Name::from_bytes(first_bytes(context.finish().as_ref()))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SessionId(…)")
    }
}

/// The first 16 bytes of a longer hash.
pub(crate) fn first_bytes(hash: &[u8]) -> [u8; ID_BYTES] {
    hash.first_chunk().copied().unwrap_or_default()
}

/// Reads 32 lower-case hexadecimal digits, nothing else.
pub(super) fn decode_hex(text: impl AsRef<[u8]>) -> Result<[u8; ID_BYTES], MalformedId> {
    let mut bytes = [0; ID_BYTES];
    let decoded = base16ct::lower::decode(text, &mut bytes).map(<[u8]>::len);
    if decoded == Ok(ID_BYTES) {
        Ok(bytes)
    } else {
        Err(MalformedId)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_id_reads_back_what_it_wrote(bytes: [u8; 16]) {
            let id = SessionId::from_bytes(bytes);
            prop_assert_eq!(SessionId::parse(&id.reveal()), Ok(id));
        }

        #[test]
        fn nothing_but_32_lower_case_digits_is_an_id(text in ".{0,40}") {
            let strict = text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
            prop_assert_eq!(SessionId::parse(&text).is_ok(), strict);
        }
    }

    #[test]
    fn upper_case_and_other_lengths_are_refused() {
        for text in [
            "",
            "0",
            "0123456789ABCDEF0123456789ABCDEF",
            "0123456789abcdef0123456789abcde",
            "0123456789abcdef0123456789abcdef0",
        ] {
            assert!(SessionId::parse(text).is_err(), "{text}");
            assert!(Handle::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_handle_is_the_hash_of_its_id_and_never_changes_between_releases() {
        let id = SessionId::from_bytes([7; 16]);
        assert_eq!(id.handle(), id.clone().handle());
        assert_ne!(id.handle().to_string(), id.reveal());
        assert_ne!(id.handle(), SessionId::from_bytes([8; 16]).handle());
        assert_eq!(SessionId::from_bytes([0; 16]).handle().to_string().len(), 32);
    }

    #[test]
    fn debug_never_shows_an_id() {
        let id = SessionId::from_bytes([0xab; 16]);
        assert_eq!(format!("{id:?}"), "SessionId(…)");
    }

    #[test]
    fn two_random_ids_differ() {
        let random = aws_lc_rs::rand::SystemRandom::new();
        assert_ne!(
            SessionId::random(&random).unwrap(),
            SessionId::random(&random).unwrap()
        );
    }
}
