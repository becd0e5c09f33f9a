//! A transaction: one pending sign-in, kept by the browser alone, sealed in a cookie of its own.
//!
//! Invariants
//! - State, nonce and verifier are fresh, unpredictable and at least 128 bits. One random seed yields all three, so that ten
//!   pending sign-ins fit into a browser's cookies.
//! - The return address travels in `state`, sealed for this state alone ([`ReturnHint`]). The cookie records whether there is one.
//! - The cookie's name carries an ID derived from the state, so that pending sign-ins never touch each other.
//! - The value is sealed under the cookie's own name, so that none can be passed off as another.
//! - It expires on both sides: in the browser and here.
//!
//! Deliberately absent: a server-side table.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chassis::random::{self, NoRandomness};
use ring::{digest, hmac};
use url::{Position, Url};

use crate::sessions::cookies::SessionId;
use crate::sessions::keys::DerivedKeys;
use crate::values::allowed_parameters::{MAX_ACR_VALUES_BYTES, MAX_ORGANIZATION_BYTES};
use crate::values::return_to::ReturnTo;

/// Random bytes of the seed: what RFC 7636, section 7.1, recommends for the verifier.
const SEED_BYTES: usize = 32;
/// Bytes of state and of nonce: 128 bits.
const STATE_BYTES: usize = 16;
/// Bytes of the verifier: 43 characters once encoded, the least that RFC 7636 allows.
const VERIFIER_BYTES: usize = 32;
/// Bytes of the ID in the cookie's name: enough that no two pending sign-ins meet.
const ID_BYTES: usize = 9;
/// How far ahead of ours the clock of the replica that sealed a transaction may be, in milliseconds.
const CLOCK_LEAD_MS: u64 = 60_000;
/// Separates this AAD from any other use of the seal.
const AAD_LABEL: &[u8] = b"vestibule transaction v3";
/// Separates the AAD of return addresses.
const HINT_LABEL: &[u8] = b"vestibule return address v1";
/// Stands between the random part of a state and its return address; no base64url text contains it.
const HINT_SEPARATOR: char = '.';
/// Bits of the flags.
const SILENT: u8 = 1;
const HAS_MAX_AGE: u8 = 2;
const HAS_SESSION: u8 = 4;
const HAS_RETURN_TO: u8 = 8;

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
    /// Binds the provider's answer to this transaction, and carries the return address.
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
    seed: [u8; SEED_BYTES],
    has_return_to: bool,
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
    pub(crate) fn begin(
        keys: &DerivedKeys,
        issuer: IssuerHash,
        return_to: Option<ReturnTo>,
        now_ms: u64,
    ) -> Result<Self, NoRandomness> {
        let mut begun = Self::of_seed(random::bytes()?, issuer, now_ms);
        if let Some(return_to) = &return_to {
            let hint = ReturnHint::of(&begun.state).seal(keys, return_to)?;
            begun.state.push(HINT_SEPARATOR);
            begun.state.push_str(&hint);
        }
        begun.has_return_to = return_to.is_some();
        begun.return_to = return_to;
        Ok(begun)
    }

    /// The transaction of this seed, without a return address.
    fn of_seed(seed: [u8; SEED_BYTES], issuer: IssuerHash, started_at_ms: u64) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &seed);
        let derive = |label: &[u8], bytes: usize| {
            let mac = hmac::sign(&key, label);
            URL_SAFE_NO_PAD.encode(&mac.as_ref()[..bytes])
        };
        Self {
            state: derive(b"state", STATE_BYTES),
            nonce: derive(b"nonce", STATE_BYTES),
            verifier: derive(b"verifier", VERIFIER_BYTES),
            issuer,
            started_at_ms,
            max_age: None,
            acr_values: None,
            silent: false,
            organization: None,
            session: None,
            return_to: None,
            seed,
            has_return_to: false,
        }
    }

    /// Takes over the whole state that the provider sent back; `false` if it is not this transaction's.
    pub(super) fn accept_state(&mut self, keys: &DerivedKeys, base: &Url, state: &str) -> bool {
        let return_to = ReturnHint::of(state).open(keys, base);
        // The name holds 72 bits of the state's hash; this compares all of its random part.
        let is_ours = same_secret(random_part(&self.state), random_part(state));
        let has_hint = state.contains(HINT_SEPARATOR);
        if !is_ours || has_hint != self.has_return_to || has_hint != return_to.is_some() {
            return false;
        }
        state.clone_into(&mut self.state);
        self.return_to = return_to;
        true
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
        keys.seal_text(&[AAD_LABEL, cookie_name.as_bytes()], &self.to_bytes())
    }

    /// Opens what [`Transaction::seal`] made for the cookie of this name.
    /// Its return address comes with the state ([`Transaction::accept_state`]).
    #[must_use]
    pub(crate) fn open(keys: &DerivedKeys, cookie_name: &str, value: &str) -> Option<Self> {
        let plain = keys.open_text(&[AAD_LABEL, cookie_name.as_bytes()], value)?;
        Self::from_bytes(&plain)
    }

    /// Random values raw, numbers big-endian, texts length-prefixed: as short as it gets, since cookies are.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend(self.seed);
        bytes.extend(self.issuer.0);
        bytes.extend(self.started_at_ms.to_be_bytes());
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        bytes.push(
            flag(self.max_age.is_some(), HAS_MAX_AGE)
                | flag(self.silent, SILENT)
                | flag(self.session.is_some(), HAS_SESSION)
                | flag(self.has_return_to, HAS_RETURN_TO),
        );
        if let Some(max_age) = self.max_age {
            // Longer than a century is no limit any more.
            bytes.extend(u32::try_from(max_age).unwrap_or(u32::MAX).to_be_bytes());
        }
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
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (seed, rest) = bytes.split_first_chunk::<SEED_BYTES>()?;
        let (issuer, rest) = rest.split_first_chunk::<ISSUER_HASH_BYTES>()?;
        let (started, rest) = rest.split_first_chunk::<8>()?;
        let (flags, rest) = rest.split_first()?;
        let (max_age, rest) = optional(flags & HAS_MAX_AGE != 0, rest)?;
        let (session, rest) = optional(flags & HAS_SESSION != 0, rest)?;
        let (organization, rest) = short_text(rest)?;
        let (acr_values, _) = short_text(rest)?;
        Some(Self {
            max_age: max_age.map(|bytes| u64::from(u32::from_be_bytes(bytes))),
            acr_values,
            silent: flags & SILENT != 0,
            organization,
            session: session.map(SessionId::from_bytes),
            has_return_to: flags & HAS_RETURN_TO != 0,
            ..Self::of_seed(*seed, IssuerHash(*issuer), u64::from_be_bytes(*started))
        })
    }
}

/// The return address in a state: a hint where the transaction is gone, since the seal binds it to the state and to nothing else.
pub(super) struct ReturnHint<'a> {
    random_part: &'a str,
    sealed: Option<&'a str>,
}

impl<'a> ReturnHint<'a> {
    /// That of this state, whether or not there is one.
    pub(super) fn of(state: &'a str) -> Self {
        match state.split_once(HINT_SEPARATOR) {
            Some((random_part, sealed)) => Self {
                random_part,
                sealed: Some(sealed),
            },
            None => Self {
                random_part: state,
                sealed: None,
            },
        }
    }

    fn aad(&self) -> [&[u8]; 2] {
        [HINT_LABEL, self.random_part.as_bytes()]
    }

    /// Path, query and fragment are enough: the origin is the one that the callback comes to.
    fn seal(&self, keys: &DerivedKeys, return_to: &ReturnTo) -> Result<String, NoRandomness> {
        let path = &return_to.url()[Position::BeforePath..];
        keys.seal_text(&self.aad(), path.as_bytes())
    }

    /// The address, judged again as any return address is; none if it was not sealed here for this state.
    pub(super) fn open(&self, keys: &DerivedKeys, base: &Url) -> Option<ReturnTo> {
        let path = keys.open_text(&self.aad(), self.sealed?)?;
        let origin = base.origin().ascii_serialization();
        ReturnTo::parse(base, &format!("{origin}{}", std::str::from_utf8(&path).ok()?))
    }
}

/// A field of fixed length that is there or not.
fn optional<const N: usize>(is_there: bool, bytes: &[u8]) -> Option<(Option<[u8; N]>, &[u8])> {
    if !is_there {
        return Some((None, bytes));
    }
    let (field, rest) = bytes.split_first_chunk::<N>()?;
    Some((Some(*field), rest))
}

fn random_part(state: &str) -> &str {
    ReturnHint::of(state).random_part
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
    let hash = digest::digest(&digest::SHA256, random_part(state).as_bytes());
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
        begin_to(None, now_ms)
    }

    fn begin_to(return_to: Option<&str>, now_ms: u64) -> Transaction {
        let return_to = return_to.map(|path| ReturnTo::parse(&base(), path).unwrap());
        Transaction::begin(&keys(), IssuerHash::of("https://idp.example"), return_to, now_ms).unwrap()
    }

    fn base() -> Url {
        Url::parse("https://app.example/").unwrap()
    }

    #[test]
    fn a_transaction_comes_back_from_its_cookie_unchanged() {
        let mut sent = begin_to(Some("/a?b=c#d"), 1_700_000_000_000);
        sent.max_age = Some(0);
        sent.organization = Some("org_1".to_owned());
        sent.acr_values = Some("gold silver".to_owned());
        sent.silent = true;
        sent.session = SessionId::parse("00112233445566778899aabbccddeeff");
        let value = sent.seal(&keys(), "tx").unwrap();
        let mut back = Transaction::open(&keys(), "tx", &value).unwrap();
        assert!(back.accept_state(&keys(), &base(), &sent.state));
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

    #[test]
    fn a_state_with_another_return_address_or_none_is_another_state() {
        let (sent, other) = (begin_to(Some("/a"), 0), begin_to(Some("/b"), 0));
        let (random, hint) = sent.state.split_once('.').unwrap();
        let (_, foreign_hint) = other.state.split_once('.').unwrap();
        let value = sent.seal(&keys(), "tx").unwrap();
        let mut back = Transaction::open(&keys(), "tx", &value).unwrap();
        for state in [
            random.to_owned(),
            format!("{random}."),
            format!("{random}.{foreign_hint}"),
            format!("{random}.{hint}A"),
            other.state.clone(),
        ] {
            assert!(!back.accept_state(&keys(), &base(), &state), "{state}");
        }
        assert!(back.accept_state(&keys(), &base(), &sent.state));
        let without = begin(0);
        let value = without.seal(&keys(), "tx").unwrap();
        let mut back = Transaction::open(&keys(), "tx", &value).unwrap();
        assert!(!back.accept_state(&keys(), &base(), &format!("{}.{hint}", without.state)));
        assert!(back.accept_state(&keys(), &base(), &without.state));
    }

    #[test]
    fn a_hint_opens_under_our_keys_alone_and_stays_on_our_origin() {
        let sent = begin_to(Some("/.//evil.example"), 0);
        let others = DerivedKeys::new(&[Secret::new("another secret that is long".to_owned())]);
        assert!(ReturnHint::of(&sent.state).open(&others, &base()).is_none());
        let opened = ReturnHint::of(&sent.state).open(&keys(), &base()).unwrap();
        assert_eq!(opened.as_str(), "https://app.example//evil.example");
    }

    // conformance: B-069
    #[test]
    fn a_transaction_opens_only_under_its_own_cookie_name() {
        let value = begin(0).seal(&keys(), "tx_a").unwrap();
        assert!(Transaction::open(&keys(), "tx_b", &value).is_none());
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
