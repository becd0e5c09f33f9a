//! The key ring: one key seals, all keys open. A key added at run time waits before it seals ([`Ring`]).
//!
//! Invariants: a key is 32 bytes. No key shows in `Debug` or in an error. A key's id is a hash: it identifies
//! the key and reveals nothing about it.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use aws_lc_rs::digest;
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use chassis::random::{self, NoRandomness};
use chassis::secret::Secret;
use chassis::secret::key_ring::Ring;

use super::{KEY_ID_BYTES, KeyId};

/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 32;

/// Separates key ids from every other hash.
const KEY_ID_CONTEXT: &[u8] = b"vestibule session key id v1";

/// Separates the keys derived from a key of the ring from its other uses.
const RECORD_KEY_CONTEXT: &[u8] = b"vestibule session record key v1";

/// Most keys of a ring: one that seals, and old ones.
pub(crate) const MAX_KEYS: usize = 16;

/// The text is not a usable list of keys. The error names the member, never its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedKey {
    /// There is no key at all.
    #[error("no key is given")]
    None,
    /// There are more than [`MAX_KEYS`].
    #[error("more than {MAX_KEYS} keys are given")]
    TooMany,
    /// This member, counted from 1, is not 32 bytes in hex or base64, and not wrapped either.
    #[error(
        "key {0} is neither 32 bytes in hex (64 digits) or base64 (44 characters), nor wrapped (vault:v1:…)"
    )]
    Member(usize),
}

/// A member of the list of keys.
pub(crate) enum ListedKey {
    /// The key itself.
    Clear(Secret<[u8; KEY_BYTES]>),
    /// A ciphertext of Vault's transit engine, which contains the key.
    Wrapped(Secret<String>),
}

/// Reads the members of a list of keys: hex, base64, or wrapped (`vault:v1:…`).
///
/// # Errors
/// The list has no usable length, or a member has another form.
pub(crate) fn parse_list(texts: &[Secret<String>]) -> Result<Vec<ListedKey>, MalformedKey> {
    if texts.is_empty() {
        return Err(MalformedKey::None);
    }
    if texts.len() > MAX_KEYS {
        return Err(MalformedKey::TooMany);
    }
    let keys = texts.iter().enumerate().map(|(at, text)| {
        if is_wrapped(text.expose()) {
            return Ok(ListedKey::Wrapped(text.clone()));
        }
        let key = decode(text.expose()).ok_or(MalformedKey::Member(at + 1))?;
        Ok(ListedKey::Clear(Secret::new(key)))
    });
    keys.collect()
}

/// Whether the text has the form of Vault's ciphertexts: `vault:v`, the version of the transit key, `:`, base64.
fn is_wrapped(text: &str) -> bool {
    let version = text.strip_prefix("vault:v").and_then(|rest| rest.split_once(':'));
    version.is_some_and(|(version, sealed)| {
        let is_number = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
        is_number && STANDARD.decode(sealed).is_ok_and(|sealed| !sealed.is_empty())
    })
}

struct RingKey {
    id: KeyId,
    derive: Prk,
}

/// The keys of `SESSION_ENCRYPTION_KEY`, in the order of the list.
pub struct KeyRing(Ring<RingKey>);

impl KeyRing {
    /// Reads keys in hex or base64, none of them wrapped.
    pub fn parse(texts: &[Secret<String>]) -> Result<Self, MalformedKey> {
        let keys = parse_list(texts)?.into_iter().enumerate();
        let keys = keys.map(|(at, key)| match key {
            ListedKey::Clear(key) => Ok(key),
            ListedKey::Wrapped(_) => Err(MalformedKey::Member(at + 1)),
        });
        Ok(Self::of(keys.collect::<Result<Vec<_>, _>>()?))
    }

    /// A ring of these keys, in their order.
    pub(crate) fn of(keys: impl IntoIterator<Item = Secret<[u8; KEY_BYTES]>>) -> Self {
        Self(Ring::at_start(
            keys.into_iter().map(|key| RingKey::new(key.expose())),
        ))
    }

    /// A ring of one random key, for a store in memory.
    pub fn random() -> Result<Self, NoRandomness> {
        Ok(Self(Ring::at_start([RingKey::new(&random::bytes()?)])))
    }

    /// The ring after its file changed, at `now_ms` of the monotonic clock.
    pub(crate) fn replaced_by(&self, new: Self, now_ms: u64) -> Self {
        Self(self.0.replaced_by(new.0, |one, other| one.id == other.id, now_ms))
    }

    /// The id of the key that seals at `now_ms` of the monotonic clock, and the derived key for this record.
    pub(super) fn sealing_key(&self, name: &str, now_ms: u64) -> Option<(KeyId, LessSafeKey)> {
        let (_, key) = self.0.signing(now_ms)?;
        Some((key.id, key.for_record(name)?))
    }

    /// The derived keys for this record that may have sealed a text with this key id.
    pub(super) fn opening_keys<'a>(
        &'a self,
        id: KeyId,
        name: &'a str,
    ) -> impl Iterator<Item = LessSafeKey> + 'a {
        self.0
            .keys()
            .filter(move |key| key.id == id)
            .filter_map(move |key| key.for_record(name))
    }
}

impl RingKey {
    fn new(bytes: &[u8; KEY_BYTES]) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(KEY_ID_CONTEXT);
        context.update(bytes);
        let mut id = [0; KEY_ID_BYTES];
        for (target, source) in id.iter_mut().zip(context.finish().as_ref()) {
            *target = *source;
        }
        // HKDF-Extract (RFC 5869, section 2.2). The library's own would repeat it for each record.
        let salt = hmac::Key::new(HMAC_SHA256, RECORD_KEY_CONTEXT);
        let extracted = hmac::sign(&salt, bytes);
        Self {
            id: KeyId(id),
            derive: Prk::new_less_safe(HKDF_SHA256, extracted.as_ref()),
        }
    }

    /// Never `None`: HKDF-SHA256 can produce 32 bytes, and AES-256 accepts them.
    fn for_record(&self, name: &str) -> Option<LessSafeKey> {
        let info = [name.as_bytes()];
        let material = self.derive.expand(&info, &AES_256_GCM).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(material)))
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeyRing({} keys)", self.0.keys().count())
    }
}

fn decode(text: &str) -> Option<[u8; KEY_BYTES]> {
    let text = text.trim();
    let mut key = [0; KEY_BYTES];
    if base16ct::mixed::decode(text, &mut key).map(<[u8]>::len) == Ok(KEY_BYTES) {
        return Some(key);
    }
    let alphabets = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];
    alphabets
        .iter()
        .find_map(|alphabet| alphabet.decode(text).ok()?.try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(texts: &[&str]) -> Result<KeyRing, MalformedKey> {
        KeyRing::parse(
            &texts
                .iter()
                .map(|text| Secret::new((*text).to_owned()))
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn hex_and_every_base64_spell_the_same_key() {
        let hex = "fb".repeat(32);
        let spelled = [
            hex.clone(),
            hex.to_uppercase(),
            STANDARD.encode([0xfb; 32]),
            URL_SAFE_NO_PAD.encode([0xfb; 32]),
        ];
        let sealing = |text: &String| ring(&[text]).unwrap().sealing_key("name", 0);
        let ids: Vec<_> = spelled
            .iter()
            .map(|text| sealing(text).map(|(id, _)| id))
            .collect();
        assert!(ids[0].is_some() && ids.iter().all(|id| id == &ids[0]));
    }

    #[test]
    fn a_wrong_key_is_named_by_its_place_and_never_shown() {
        let good = "00".repeat(32);
        let error = ring(&[&good, "hunter2-hunter2"]).unwrap_err();
        assert_eq!(error, MalformedKey::Member(2));
        assert!(!error.to_string().contains("hunter2"));
        assert_eq!(ring(&[]).unwrap_err(), MalformedKey::None);
        assert_eq!(ring(&vec![good.as_str(); 17]).unwrap_err(), MalformedKey::TooMany);
        assert!(ring(&vec![good.as_str(); 16]).is_ok());
    }

    #[test]
    fn a_wrapped_key_has_the_form_of_vaults_ciphertexts() {
        let sealed = STANDARD.encode([7; 60]);
        for (text, wrapped) in [
            (format!("vault:v1:{sealed}"), true),
            (format!("vault:v12:{sealed}"), true),
            (format!("vault:{sealed}"), false),
            (format!("vault:v:{sealed}"), false),
            (format!("vault:vx:{sealed}"), false),
            ("vault:v1:".to_owned(), false),
            ("vault:v1:not base64".to_owned(), false),
            (sealed, false),
        ] {
            assert_eq!(is_wrapped(&text), wrapped, "{text}");
        }
    }

    #[test]
    fn a_ring_shows_how_many_keys_it_has_and_nothing_of_them() {
        let ring = ring(&["ab".repeat(32).as_str(), &"cd".repeat(32)]).unwrap();
        assert_eq!(format!("{ring:?}"), "KeyRing(2 keys)");
    }

    #[test]
    fn each_record_has_a_key_of_its_own() {
        use aws_lc_rs::aead::{Aad, NONCE_LEN, Nonce};
        let ring = ring(&["ab".repeat(32).as_str()]).unwrap();
        let sealed_under = |name: &str| {
            let mut text = *b"a text";
            let (_, key) = ring.sealing_key(name, 0).unwrap();
            let nonce = Nonce::assume_unique_for_key([0; NONCE_LEN]);
            let _tag = key
                .seal_in_place_separate_tag(nonce, Aad::empty(), &mut text)
                .unwrap();
            text
        };
        assert_eq!(sealed_under("one"), sealed_under("one"));
        assert_ne!(sealed_under("one"), sealed_under("another"));
    }
}
