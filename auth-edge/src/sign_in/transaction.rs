//! A transaction: one pending sign-in, kept by the browser alone, sealed in a cookie of its own.
//!
//! Invariants
//! - State, nonce and verifier are fresh, random and at least 128 bits.
//! - The cookie's name carries an ID derived from the state, so that pending sign-ins never touch each other.
//! - The value is sealed under the cookie's own name, so that none can be passed off as another.
//! - It expires on both sides: in the browser and here.
//!
//! Deliberately absent: a server-side table.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chassis::random::{self, NoRandomness};
use ring::digest;
use url::Url;

use crate::sessions::cookies::SessionId;
use crate::sessions::keys::DerivedKeys;
use crate::values::allowed_parameters::{MAX_ACR_VALUES_BYTES, MAX_ORGANIZATION_BYTES};
use crate::values::return_to::ReturnTo;

/// Random bytes of state and of nonce: 128 bits.
const STATE_BYTES: usize = 16;
/// Random bytes of the verifier: 43 characters once encoded, the least that RFC 7636 allows.
const VERIFIER_BYTES: usize = 32;
/// Bytes of the ID in the cookie's name: enough that no two pending sign-ins meet.
const ID_BYTES: usize = 9;
/// How far ahead of ours the clock of the replica that sealed a transaction may be, in milliseconds.
const CLOCK_LEAD_MS: u64 = 60_000;
/// Separates this AAD from any other use of the seal.
const AAD_LABEL: &[u8] = b"vestibule transaction v2";
/// Bits of the flags.
const SILENT: u8 = 1;
const HAS_MAX_AGE: u8 = 2;
const HAS_SESSION: u8 = 4;

/// Bytes of an issuer's hash: 128 bits, so that no issuer is found that has another's.
const ISSUER_HASH_BYTES: usize = 16;

/// Which issuer a sign-in was begun at: the beginning of its identifier's SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IssuerHash([u8; ISSUER_HASH_BYTES]);

impl IssuerHash {
    /// The hash of an issuer identifier, byte for byte as configured.
    #[must_use]
    pub(crate) fn of(issuer: &str) -> Self {
        let hash = digest::digest(&digest::SHA256, issuer.as_bytes());
        let mut short = [0; ISSUER_HASH_BYTES];
        short
            .iter_mut()
            .zip(hash.as_ref())
            .for_each(|(to, from)| *to = *from);
        Self(short)
    }
}

/// One pending sign-in.
#[derive(Clone)]
pub(crate) struct Transaction {
    /// Binds the provider's answer to this transaction.
    pub(crate) state: String,
    /// Binds the ID token to this transaction.
    pub(crate) nonce: String,
    /// The PKCE verifier (RFC 7636).
    pub(crate) verifier: String,
    /// The issuer it was begun at: nobody else may answer (RFC 9700, section 4.4.2).
    pub(crate) issuer: IssuerHash,
    /// When it began, in milliseconds since the Unix epoch.
    pub(crate) started_at_ms: u64,
    /// The `max_age` requested, in seconds: the ID token then has to hold `auth_time`.
    pub(crate) max_age: Option<u64>,
    /// The authentication context classes requested, separated by spaces: the ID token then has to name one of them.
    pub(crate) acr_values: Option<String>,
    /// Whether no interaction was allowed (`prompt=none`).
    pub(crate) silent: bool,
    /// The organization requested by this login alone.
    pub(crate) organization: Option<String>,
    /// The session the browser had when this began, to be ended by it; kept only where the provider's answer comes without
    /// the session cookie.
    pub(crate) session: Option<SessionId>,
    /// Where the visitor wanted to go; `None` is the base URL.
    pub(crate) return_to: Option<ReturnTo>,
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction")
            .field("started_at_ms", &self.started_at_ms)
            .finish_non_exhaustive()
    }
}

impl Transaction {
    /// Begins a transaction at this issuer with fresh random values.
    pub(crate) fn begin(issuer: IssuerHash, now_ms: u64) -> Result<Self, NoRandomness> {
        Ok(Self {
            state: URL_SAFE_NO_PAD.encode(random::bytes::<STATE_BYTES>()?),
            nonce: URL_SAFE_NO_PAD.encode(random::bytes::<STATE_BYTES>()?),
            verifier: URL_SAFE_NO_PAD.encode(random::bytes::<VERIFIER_BYTES>()?),
            issuer,
            started_at_ms: now_ms,
            max_age: None,
            acr_values: None,
            silent: false,
            organization: None,
            session: None,
            return_to: None,
        })
    }

    /// Whether its time is over, or it claims to begin in the future.
    #[must_use]
    pub(crate) fn expired(&self, now_ms: u64, duration_secs: u64) -> bool {
        let ends = self
            .started_at_ms
            .saturating_add(duration_secs.saturating_mul(1000));
        now_ms >= ends || self.started_at_ms > now_ms.saturating_add(CLOCK_LEAD_MS)
    }

    /// Seals the transaction for the cookie of this name, as text.
    pub(crate) fn seal(&self, keys: &DerivedKeys, cookie_name: &str) -> Result<String, NoRandomness> {
        let sealed = keys.seal(&[AAD_LABEL, cookie_name.as_bytes()], &self.to_bytes())?;
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens what [`Transaction::seal`] made for the cookie of this name.
    #[must_use]
    pub(crate) fn open(keys: &DerivedKeys, base: &Url, cookie_name: &str, value: &str) -> Option<Self> {
        let sealed = URL_SAFE_NO_PAD.decode(value).ok()?;
        let plain = keys.open(&[AAD_LABEL, cookie_name.as_bytes()], &sealed)?;
        Self::from_bytes(base, &plain)
    }

    /// Random values raw, numbers big-endian, texts length-prefixed: as short as it gets, since cookies are.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(128);
        for text in [&self.state, &self.nonce, &self.verifier] {
            bytes.extend(URL_SAFE_NO_PAD.decode(text).unwrap_or_default());
        }
        bytes.extend(self.issuer.0);
        bytes.extend(self.started_at_ms.to_be_bytes());
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        bytes.push(
            flag(self.max_age.is_some(), HAS_MAX_AGE)
                | flag(self.silent, SILENT)
                | flag(self.session.is_some(), HAS_SESSION),
        );
        // Longer than a century is no limit any more.
        bytes.extend(
            u32::try_from(self.max_age.unwrap_or(0))
                .unwrap_or(u32::MAX)
                .to_be_bytes(),
        );
        if let Some(session) = &self.session {
            bytes.extend(session.to_bytes());
        }
        for (text, most) in [
            (&self.organization, MAX_ORGANIZATION_BYTES),
            (&self.acr_values, MAX_ACR_VALUES_BYTES),
        ] {
            let text = text
                .as_deref()
                .filter(|text| text.len() <= most)
                .unwrap_or_default();
            bytes.push(u8::try_from(text.len()).unwrap_or(0));
            bytes.extend(text.as_bytes());
        }
        bytes.extend(self.return_to.as_ref().map_or("", ReturnTo::as_str).as_bytes());
        bytes
    }

    fn from_bytes(base: &Url, bytes: &[u8]) -> Option<Self> {
        let (state, rest) = bytes.split_at_checked(STATE_BYTES)?;
        let (nonce, rest) = rest.split_at_checked(STATE_BYTES)?;
        let (verifier, rest) = rest.split_at_checked(VERIFIER_BYTES)?;
        let (issuer, rest) = rest.split_first_chunk::<ISSUER_HASH_BYTES>()?;
        let (started, rest) = rest.split_first_chunk::<8>()?;
        let (flags, rest) = rest.split_first()?;
        let (max_age, rest) = rest.split_first_chunk::<4>()?;
        let (session, rest) = if flags & HAS_SESSION == 0 {
            (None, rest)
        } else {
            let (bytes, rest) = rest.split_first_chunk()?;
            (Some(SessionId::from_bytes(*bytes)), rest)
        };
        let (organization, rest) = short_text(rest)?;
        let (acr_values, rest) = short_text(rest)?;
        let return_to = std::str::from_utf8(rest).ok()?;
        Some(Self {
            state: URL_SAFE_NO_PAD.encode(state),
            nonce: URL_SAFE_NO_PAD.encode(nonce),
            verifier: URL_SAFE_NO_PAD.encode(verifier),
            issuer: IssuerHash(*issuer),
            started_at_ms: u64::from_be_bytes(*started),
            max_age: (flags & HAS_MAX_AGE != 0).then(|| u64::from(u32::from_be_bytes(*max_age))),
            acr_values,
            silent: flags & SILENT != 0,
            organization,
            session,
            return_to: if return_to.is_empty() {
                None
            } else {
                ReturnTo::parse(base, return_to)
            },
        })
    }
}

/// A text behind its length; empty is none.
fn short_text(bytes: &[u8]) -> Option<(Option<String>, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (text, rest) = rest.split_at_checked(usize::from(*length))?;
    let text = std::str::from_utf8(text).ok()?;
    Some(((!text.is_empty()).then(|| text.to_owned()), rest))
}

/// The ID that a transaction's cookie name carries: derived one-way from the state.
#[must_use]
pub(crate) fn id_of_state(state: &str) -> String {
    let hash = digest::digest(&digest::SHA256, state.as_bytes());
    URL_SAFE_NO_PAD.encode(&hash.as_ref()[..ID_BYTES])
}

/// Whether two secrets are equal, in a time that depends on neither.
#[must_use]
pub(crate) fn same_secret(a: &str, b: &str) -> bool {
    let hash = |text: &str| digest::digest(&digest::SHA256, text.as_bytes());
    hash(a).as_ref() == hash(b).as_ref()
}

#[cfg(test)]
mod tests {
    use chassis::secret::Secret;

    use super::*;

    fn keys() -> DerivedKeys {
        DerivedKeys::new(&[Secret::new("a secret that is long enough".to_owned())])
    }

    fn begin(now_ms: u64) -> Transaction {
        Transaction::begin(IssuerHash::of("https://idp.example"), now_ms).unwrap()
    }

    fn base() -> Url {
        Url::parse("https://app.example/").unwrap()
    }

    #[test]
    fn a_transaction_comes_back_from_its_cookie_unchanged() {
        let mut sent = begin(1_700_000_000_000);
        sent.max_age = Some(0);
        sent.organization = Some("org_1".to_owned());
        sent.acr_values = Some("gold silver".to_owned());
        sent.silent = true;
        sent.session = SessionId::parse("00112233445566778899aabbccddeeff");
        sent.return_to = ReturnTo::parse(&base(), "/a?b=c#d");
        let value = sent.seal(&keys(), "tx").unwrap();
        let back = Transaction::open(&keys(), &base(), "tx", &value).unwrap();
        assert_eq!(
            (
                back.state,
                back.nonce,
                (back.verifier, back.issuer),
                back.started_at_ms,
                back.max_age,
                (back.acr_values, back.silent),
                (back.organization, back.session.unwrap().expose()),
                back.return_to
            ),
            (
                sent.state,
                sent.nonce,
                (sent.verifier, sent.issuer),
                sent.started_at_ms,
                sent.max_age,
                (sent.acr_values, sent.silent),
                (sent.organization, sent.session.unwrap().expose()),
                sent.return_to
            )
        );
    }

    // conformance: B-069
    #[test]
    fn a_transaction_opens_only_under_its_own_cookie_name() {
        let value = begin(0).seal(&keys(), "tx_a").unwrap();
        assert!(Transaction::open(&keys(), &base(), "tx_b", &value).is_none());
    }

    // conformance: B-010 B-066
    #[test]
    fn of_ten_thousand_sign_ins_no_two_share_a_value_and_each_is_long_enough() {
        let mut seen = std::collections::HashSet::new();
        for _ in 0..10_000 {
            let begun = begin(0);
            assert!(begun.state.len() >= 22 && begun.nonce.len() >= 22);
            let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            assert!((43..=128).contains(&begun.verifier.len()) && begun.verifier.bytes().all(unreserved));
            for value in [begun.state, begun.nonce, begun.verifier] {
                assert!(seen.insert(value));
            }
        }
    }

    #[test]
    fn a_transaction_expires_at_its_last_second_and_is_not_believed_from_the_future() {
        let transaction = begin(1_000_000);
        assert!(!transaction.expired(1_000_000 + 59_999, 60));
        assert!(transaction.expired(1_000_000 + 60_000, 60));
        assert!(!transaction.expired(1_000_000 - CLOCK_LEAD_MS, 60));
        assert!(transaction.expired(1_000_000 - CLOCK_LEAD_MS - 1, 60));
    }

    // conformance: B-069
    #[test]
    fn nothing_of_a_transaction_is_shown() {
        let transaction = begin(0);
        assert!(!format!("{transaction:?}").contains(&transaction.state));
    }
}
