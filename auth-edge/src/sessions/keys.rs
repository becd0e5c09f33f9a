//! Keys derived from `EDGE_SECRET`: one per purpose, by HKDF-SHA256, for each secret of the ring.
//!
//! Invariants
//! - The first secret signs and seals; every secret verifies and opens. A secret that a file adds to a
//!   running edge waits before it signs ([`Ring`]).
//! - A signature for one purpose never verifies for another.
//! - Every MAC and AAD input is a sequence of length-prefixed parts, so that no two sequences share their
//!   bytes.
//!
//! Deliberately absent: any use of a secret itself.

use std::sync::Arc;

use arc_swap::ArcSwap;
use aws_lc_rs::{aead, hkdf, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chassis::clock::{Clock, SystemClock};
use chassis::random::{self, NoRandomness};
use chassis::secret::Secret;
use chassis::secret::key_ring::Ring;

/// The purpose of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The signature in the session cookie.
    SessionCookie,
    /// The cookie of a bound session.
    DeviceCookie,
    /// The challenge with which a browser proves its session's key.
    DeviceChallenge,
    /// The `csrf_token` field of our own forms.
    Csrf,
    /// A keyed hash that stands for a user where the user's name must not appear.
    Pseudonym,
}

/// Labels that separate the keys of purposes, in the order of [`Purpose`].
const LABELS: [&[u8]; 5] = [
    b"session cookie",
    b"device cookie",
    b"device challenge",
    b"csrf token",
    b"pseudonym",
];

/// HKDF salt: separates this product's keys from other uses of the secret.
const SALT: &[u8] = b"vestibule edge keys v1";
/// First byte of everything sealed, so that the format can change.
const SEAL_VERSION: u8 = 1;
/// Bytes that sealing adds: version, 96-bit nonce, 128-bit tag.
pub(crate) const SEAL_OVERHEAD: usize = 1 + aead::NONCE_LEN + 16;

struct Derived {
    /// Identifies the secret.
    fingerprint: hmac::Tag,
    /// One key for each purpose, in the order of [`LABELS`].
    macs: Vec<hmac::Key>,
    seal: aead::LessSafeKey,
}

impl Derived {
    fn from_secret(secret: &str) -> Option<Self> {
        let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, SALT).extract(secret.as_bytes());
        let mac = |label: &[u8]| -> Option<hmac::Key> {
            extracted
                .expand(&[label], hmac::HMAC_SHA256)
                .ok()
                .map(hmac::Key::from)
        };
        let seal = extracted
            .expand(&[b"transaction seal"], &aead::AES_256_GCM)
            .ok()?;
        Some(Self {
            fingerprint: hmac::sign(&mac(b"fingerprint")?, b""),
            macs: LABELS.into_iter().map(mac).collect::<Option<_>>()?,
            seal: aead::LessSafeKey::new(aead::UnboundKey::from(seal)),
        })
    }

    fn mac(&self, purpose: Purpose) -> &hmac::Key {
        &self.macs[purpose as usize]
    }
}

/// The key ring. Cheap to clone; all clones see a replaced ring at once.
#[derive(Clone)]
pub struct DerivedKeys {
    ring: Arc<ArcSwap<Ring<Derived>>>,
    clock: Arc<dyn Clock>,
}

impl DerivedKeys {
    /// Derives the ring: the first secret signs and seals, all verify and open.
    #[must_use]
    pub fn new(secrets: &[Secret<String>]) -> Self {
        Self {
            ring: Arc::new(ArcSwap::from_pointee(derive_all(secrets))),
            clock: Arc::new(SystemClock),
        }
    }

    /// The same ring with this clock, which measures how long a secret has waited.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Replaces the ring. The edge ignores an empty list, which would sign out every user.
    pub(crate) fn replace(&self, secrets: &[Secret<String>]) {
        let new = derive_all(secrets);
        if new.keys().next().is_none() {
            return;
        }
        let is_same = |one: &Derived, other: &Derived| one.fingerprint.as_ref() == other.fingerprint.as_ref();
        let now_ms = self.clock.monotonic_ms();
        self.ring
            .store(Arc::new(self.ring.load().replaced_by(new, is_same, now_ms)));
    }

    /// Signs a sequence of parts with the current signing key: HMAC-SHA256.
    #[must_use]
    pub(crate) fn sign(&self, purpose: Purpose, parts: &[&[u8]]) -> Vec<u8> {
        let ring = self.ring.load();
        ring.signing(self.clock.monotonic_ms())
            .map_or_else(Vec::new, |(_, derived)| {
                hmac::sign(derived.mac(purpose), &length_prefixed(parts))
                    .as_ref()
                    .to_vec()
            })
    }

    /// Whether any key of the ring made this signature, in constant time per key.
    #[must_use]
    pub(crate) fn verify(&self, purpose: Purpose, parts: &[&[u8]], signature: &[u8]) -> bool {
        let input = length_prefixed(parts);
        self.ring
            .load()
            .keys()
            .any(|derived| hmac::verify(derived.mac(purpose), &input, signature).is_ok())
    }

    /// Seals bytes with the current key, as text for a cookie or a URL: AES-256-GCM with a random nonce.
    /// Operators rotate the ring long before 2^32 messages, the limit of random 96-bit nonces.
    pub(crate) fn seal(&self, aad: &[&[u8]], plain: &[u8]) -> Result<String, NoRandomness> {
        let nonce = random::bytes::<{ aead::NONCE_LEN }>()?;
        let ring = self.ring.load();
        let (_, derived) = ring.signing(self.clock.monotonic_ms()).ok_or(NoRandomness)?;
        let mut body = plain.to_vec();
        derived
            .seal
            .seal_in_place_append_tag(
                aead::Nonce::assume_unique_for_key(nonce),
                aead::Aad::from(length_prefixed(aad)),
                &mut body,
            )
            .map_err(|_unspecified| NoRandomness)?;
        Ok(URL_SAFE_NO_PAD.encode([&[SEAL_VERSION], &nonce[..], &body].concat()))
    }

    /// Opens a text that any key of the ring sealed with the same AAD; `None` for anything else.
    #[must_use]
    pub(crate) fn open(&self, aad: &[&[u8]], sealed: &str) -> Option<Vec<u8>> {
        self.open_telling_age(aad, sealed).map(|(plain, _)| plain)
    }

    /// [`Self::open`], and whether the current key sealed the text: such a text opens for longest.
    #[must_use]
    pub(crate) fn open_telling_age(&self, aad: &[&[u8]], sealed: &str) -> Option<(Vec<u8>, bool)> {
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (version, rest) = sealed.split_first()?;
        if *version != SEAL_VERSION {
            return None;
        }
        let (nonce, body) = rest.split_at_checked(aead::NONCE_LEN)?;
        let nonce: [u8; aead::NONCE_LEN] = nonce.try_into().ok()?;
        let aad = length_prefixed(aad);
        let ring = self.ring.load();
        let sealing = ring.signing(self.clock.monotonic_ms())?.0;
        ring.keys().enumerate().find_map(|(key, derived)| {
            let mut buffer = body.to_vec();
            let nonce = aead::Nonce::assume_unique_for_key(nonce);
            let plain = derived
                .seal
                .open_in_place(nonce, aead::Aad::from(&aad), &mut buffer)
                .ok()?;
            Some((plain.to_vec(), key <= sealing))
        })
    }
}

fn derive_all(secrets: &[Secret<String>]) -> Ring<Derived> {
    let derived = secrets
        .iter()
        .filter_map(|secret| Derived::from_secret(secret.expose()));
    Ring::at_start(derived)
}

/// Joins parts so that different sequences never give the same bytes.
fn length_prefixed(parts: &[&[u8]]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
    for part in parts {
        joined.extend_from_slice(&(part.len() as u64).to_be_bytes());
        joined.extend_from_slice(part);
    }
    joined
}

#[cfg(test)]
mod tests {
    use chassis::clock::ManualClock;
    use chassis::secret::key_ring::NEW_KEY_WAIT_MS;
    use proptest::prelude::*;

    use super::*;

    fn keys(secrets: &[&str]) -> DerivedKeys {
        DerivedKeys::new(
            &secrets
                .iter()
                .map(|secret| Secret::new((*secret).to_owned()))
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn the_first_secret_signs_and_every_secret_verifies() {
        let old = keys(&["old secret"]);
        let rotated = keys(&["new secret", "old secret"]);
        let tag = old.sign(Purpose::SessionCookie, &[b"session", b"id"]);
        assert!(rotated.verify(Purpose::SessionCookie, &[b"session", b"id"], &tag));
        let tag = rotated.sign(Purpose::SessionCookie, &[b"session", b"id"]);
        assert!(!old.verify(Purpose::SessionCookie, &[b"session", b"id"], &tag));
        assert!(keys(&["new secret"]).verify(Purpose::SessionCookie, &[b"session", b"id"], &tag));
    }

    #[test]
    fn a_signature_for_one_purpose_never_verifies_for_another() {
        let keys = keys(&["a secret"]);
        let tag = keys.sign(Purpose::SessionCookie, &[b"id"]);
        assert!(!keys.verify(Purpose::Csrf, &[b"id"], &tag));
        assert!(!keys.verify(Purpose::Pseudonym, &[b"id"], &tag));
    }

    #[test]
    fn sealed_bytes_open_only_under_the_same_aad_and_a_key_of_the_ring() {
        let sealing = keys(&["a secret"]);
        let sealed = sealing.seal(&[b"name"], b"hello").unwrap();
        assert_eq!(URL_SAFE_NO_PAD.decode(&sealed).unwrap().len(), 5 + SEAL_OVERHEAD);
        assert_eq!(sealing.open(&[b"name"], &sealed).unwrap(), b"hello");
        assert_eq!(
            keys(&["new", "a secret"]).open(&[b"name"], &sealed).unwrap(),
            b"hello"
        );
        assert!(sealing.open(&[b"other"], &sealed).is_none());
        assert!(keys(&["another"]).open(&[b"name"], &sealed).is_none());
    }

    #[test]
    fn every_flipped_or_missing_byte_of_a_sealed_value_is_noticed() {
        let keys = keys(&["a secret"]);
        let sealed = keys.seal(&[b"name"], b"hello").unwrap();
        let sealed = URL_SAFE_NO_PAD.decode(sealed).unwrap();
        let opens = |bytes: &[u8]| keys.open(&[b"name"], &URL_SAFE_NO_PAD.encode(bytes)).is_some();
        assert!(opens(&sealed));
        for at in 0..sealed.len() {
            let mut flipped = sealed.clone();
            flipped[at] ^= 1;
            assert!(!opens(&flipped), "byte {at}");
            assert!(!opens(&sealed[..at]), "cut at {at}");
        }
    }

    #[test]
    fn a_new_first_secret_verifies_at_once_and_signs_after_its_wait() {
        let secrets = |names: &[&str]| {
            names
                .iter()
                .map(|name| Secret::new((*name).to_owned()))
                .collect::<Vec<_>>()
        };
        let clock = ManualClock::new(1);
        let (old, new) = (keys(&["old"]), keys(&["new"]));
        let changed = keys(&["old"]).with_clock(Arc::new(clock.clone()));
        changed.replace(&secrets(&["new", "old"]));
        let signed = |by: &DerivedKeys| by.sign(Purpose::SessionCookie, &[b"id"]);
        assert!(changed.verify(Purpose::SessionCookie, &[b"id"], &signed(&new)));
        assert!(old.verify(Purpose::SessionCookie, &[b"id"], &signed(&changed)));
        assert!(old.open(&[b"a"], &changed.seal(&[b"a"], b"b").unwrap()).is_some());
        // Both rings open these values for long, so no cookie is issued again.
        for sealing in [&old, &new] {
            let sealed = sealing.seal(&[b"a"], b"b").unwrap();
            assert_eq!(
                changed.open_telling_age(&[b"a"], &sealed),
                Some((b"b".to_vec(), true))
            );
        }
        clock.advance_ms(NEW_KEY_WAIT_MS);
        assert!(new.verify(Purpose::SessionCookie, &[b"id"], &signed(&changed)));
        assert!(new.open(&[b"a"], &changed.seal(&[b"a"], b"b").unwrap()).is_some());
        let sealed = old.seal(&[b"a"], b"b").unwrap();
        assert_eq!(
            changed.open_telling_age(&[b"a"], &sealed),
            Some((b"b".to_vec(), false))
        );
    }

    #[test]
    fn replacing_with_nothing_keeps_the_ring() {
        let keys = keys(&["a secret"]);
        let tag = keys.sign(Purpose::Csrf, &[b"id"]);
        keys.replace(&[]);
        assert!(keys.verify(Purpose::Csrf, &[b"id"], &tag));
        keys.replace(&[Secret::new("another".to_owned())]);
        assert!(!keys.verify(Purpose::Csrf, &[b"id"], &tag));
    }

    proptest! {
        #[test]
        fn two_different_sequences_never_share_a_mac_input(
            a in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..6), 0..4),
            b in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..6), 0..4),
        ) {
            let parts = |v: &[Vec<u8>]| length_prefixed(&v.iter().map(Vec::as_slice).collect::<Vec<_>>());
            prop_assert_eq!(a == b, parts(&a) == parts(&b));
        }
    }
}
