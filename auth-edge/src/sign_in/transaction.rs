//! A transaction: one pending sign-in. Only the browser stores it, sealed in its own cookie.
//!
//! Invariants
//! - State, nonce and verifier are fresh, unpredictable and at least 128 bits. One random seed yields all
//!   three, so that ten pending sign-ins fit into a browser's cookies.
//! - `state` carries the return address, sealed for this state only. The cookie records if there is one.
//! - The cookie's name has an ID derived from the state, so pending sign-ins do not replace each other.
//! - The seal covers the cookie's name, so no cookie can take the place of another.
//! - A transaction expires both in the browser and at the edge.
//!
//! Deliberately absent: a server-side table.

use aws_lc_rs::{digest, hmac};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chassis::random::{self, NoRandomness};
use prost::Message as _;
use url::{Position, Url};

use crate::sessions::cookies::SessionId;
use crate::sessions::keys::DerivedKeys;
use crate::values::return_to::ReturnTo;

/// Random bytes of the seed: as many as RFC 7636, section 7.1, recommends for the verifier.
const SEED_BYTES: usize = 32;
/// Bytes of state and of nonce: 128 bits.
const STATE_BYTES: usize = 16;
/// Bytes of the verifier: 43 characters once encoded, the least that RFC 7636 allows.
const VERIFIER_BYTES: usize = 32;
/// Bytes of the ID in the cookie's name: enough that no two pending sign-ins have the same.
const ID_BYTES: usize = 9;
/// Bytes of an issuer's hash: 128 bits, so that no second issuer with the same hash can be found.
const ISSUER_HASH_BYTES: usize = 16;
/// How far the sealing replica's clock may be ahead of ours, in milliseconds.
const CLOCK_LEAD_MS: u64 = 60_000;
/// Separates this AAD from any other use of the seal.
const AAD_LABEL: &[u8] = b"vestibule transaction v4";
/// Separates the AAD of return addresses.
const HINT_LABEL: &[u8] = b"vestibule return address v1";
/// The same for return addresses of sign-ins in a frame.
const FRAME_HINT_LABEL: &[u8] = b"vestibule frame return address v1";
/// Stands between the random part of a state and its return address; no base64url text contains it.
const HINT_SEPARATOR: char = '.';

/// Where a sign-in began. The seal of its return address says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignInPlace {
    /// In a whole window, which goes to the provider itself.
    Window,
    /// In a frame, which waits for the answer that a pop-up window receives.
    Frame,
}

impl SignInPlace {
    fn hint_label(self) -> &'static [u8] {
        match self {
            Self::Window => HINT_LABEL,
            Self::Frame => FRAME_HINT_LABEL,
        }
    }
}

/// The content of the cookie of a pending sign-in.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct TransactionRecord {
    /// Derives state, nonce and verifier.
    #[prost(bytes = "vec", tag = "1")]
    seed: Vec<u8>,
    /// The issuer: the first bytes of its identifier's SHA-256.
    #[prost(bytes = "vec", tag = "2")]
    issuer: Vec<u8>,
    /// When it began, in milliseconds since the Unix epoch.
    #[prost(uint64, tag = "3")]
    pub(crate) started_at_ms: u64,
    /// The `max_age` requested, in seconds: the ID token then has to hold `auth_time`.
    #[prost(uint64, optional, tag = "4")]
    pub(crate) max_age: Option<u64>,
    /// The requested authentication context classes, separated by spaces: the ID token has to name one.
    #[prost(string, optional, tag = "5")]
    pub(crate) acr_values: Option<String>,
    /// Whether no interaction was allowed (`prompt=none`).
    #[prost(bool, tag = "6")]
    pub(crate) silent: bool,
    /// The organization requested by this login alone.
    #[prost(string, optional, tag = "7")]
    pub(crate) organization: Option<String>,
    /// The browser's session when this sign-in began, which the sign-in ends. Stored only if the provider's
    /// answer comes without the session cookie.
    #[prost(string, optional, tag = "8")]
    pub(crate) session: Option<String>,
    /// Whether the state carries a return address.
    #[prost(bool, tag = "9")]
    has_return_to: bool,
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
    /// The visitor's destination; `None` is the base URL.
    pub(crate) return_to: Option<ReturnTo>,
    /// The content of the cookie.
    pub(crate) record: TransactionRecord,
}

impl Transaction {
    /// Begins a transaction at this issuer with fresh random values.
    pub(crate) fn begin(
        keys: &DerivedKeys,
        issuer: &str,
        return_to: Option<ReturnTo>,
        place: SignInPlace,
        now_ms: u64,
    ) -> Result<Self, NoRandomness> {
        let mut begun = Self::of_record(TransactionRecord {
            seed: random::bytes::<SEED_BYTES>()?.to_vec(),
            issuer: hash_of_issuer(issuer),
            started_at_ms: now_ms,
            has_return_to: return_to.is_some(),
            ..TransactionRecord::default()
        });
        if let Some(return_to) = &return_to {
            // Path, query and fragment are enough: the callback arrives at the same origin.
            let path = &return_to.url()[Position::BeforePath..];
            let hint = keys.seal(&[place.hint_label(), begun.state.as_bytes()], path.as_bytes())?;
            begun.state.push(HINT_SEPARATOR);
            begun.state.push_str(&hint);
        }
        begun.return_to = return_to;
        Ok(begun)
    }

    /// The transaction of this record, without its return address.
    fn of_record(record: TransactionRecord) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &record.seed);
        let derive = |label: &[u8], bytes: usize| {
            let mac = hmac::sign(&key, label);
            URL_SAFE_NO_PAD.encode(&mac.as_ref()[..bytes])
        };
        Self {
            state: derive(b"state", STATE_BYTES),
            nonce: derive(b"nonce", STATE_BYTES),
            verifier: derive(b"verifier", VERIFIER_BYTES),
            return_to: None,
            record,
        }
    }

    /// Accepts the whole state that the provider sent back; `false` if it belongs to another transaction.
    pub(super) fn accept_state(&mut self, keys: &DerivedKeys, base: &Url, state: &str) -> bool {
        let return_to = open_return_to(keys, base, state);
        // The name holds 72 bits of the state's hash. This compares all of it; the time depends on no secret.
        let is_ours = hash_of_state(&self.state).as_ref() == hash_of_state(state).as_ref();
        let has_hint = state.contains(HINT_SEPARATOR);
        if !is_ours || has_hint != self.record.has_return_to || has_hint != return_to.is_some() {
            return false;
        }
        state.clone_into(&mut self.state);
        self.return_to = return_to;
        true
    }

    /// Whether the sign-in began at this issuer: no other may answer (RFC 9700, section 4.4.2).
    #[must_use]
    pub(super) fn is_at(&self, issuer: &str) -> bool {
        self.record.issuer == hash_of_issuer(issuer)
    }

    /// The browser's session when this sign-in began, if it is stored.
    #[must_use]
    pub(super) fn session(&self) -> Option<SessionId> {
        SessionId::parse(self.record.session.as_deref()?)
    }

    /// Whether the transaction has expired, or its start is in the future.
    #[must_use]
    pub(crate) fn expired(&self, now_ms: u64, duration_secs: u64) -> bool {
        let started_at_ms = self.record.started_at_ms;
        let ends = started_at_ms.saturating_add(duration_secs.saturating_mul(1000));
        now_ms >= ends || started_at_ms > now_ms.saturating_add(CLOCK_LEAD_MS)
    }

    /// Seals the transaction for the cookie of this name, as text.
    pub(crate) fn seal(&self, keys: &DerivedKeys, cookie_name: &str) -> Result<String, NoRandomness> {
        let plain = self.record.encode_to_vec();
        keys.seal(&[AAD_LABEL, cookie_name.as_bytes()], &plain)
    }

    /// Opens the output of [`Transaction::seal`] for the cookie of this name.
    /// The return address comes with the state ([`Transaction::accept_state`]).
    #[must_use]
    pub(crate) fn open(keys: &DerivedKeys, cookie_name: &str, value: &str) -> Option<Self> {
        let plain = keys.open(&[AAD_LABEL, cookie_name.as_bytes()], value)?;
        let record = TransactionRecord::decode(plain.as_slice()).ok()?;
        Some(Self::of_record(record))
    }
}

/// The random part of a state, and its sealed return address if it has one.
fn split_state(state: &str) -> (&str, Option<&str>) {
    let parts = state.split_once(HINT_SEPARATOR);
    parts.map_or((state, None), |(random, hint)| (random, Some(hint)))
}

/// The return address in a state, validated again; `None` if it was not sealed here for this state. Without
/// its transaction it is only a hint, since the seal binds it to nothing but the state.
pub(super) fn open_return_to(keys: &DerivedKeys, base: &Url, state: &str) -> Option<ReturnTo> {
    let path =
        open_hint(keys, state, SignInPlace::Window).or_else(|| open_hint(keys, state, SignInPlace::Frame))?;
    let origin = base.origin().ascii_serialization();
    ReturnTo::parse(base, &format!("{origin}{}", std::str::from_utf8(&path).ok()?))
}

/// Whether this is the state of a sign-in that began in a frame.
pub(super) fn is_of_frame(keys: &DerivedKeys, state: &str) -> bool {
    open_hint(keys, state, SignInPlace::Frame).is_some()
}

fn open_hint(keys: &DerivedKeys, state: &str, place: SignInPlace) -> Option<Vec<u8>> {
    let (random, hint) = split_state(state);
    keys.open(&[place.hint_label(), random.as_bytes()], hint?)
}

fn hash_of_issuer(issuer: &str) -> Vec<u8> {
    let hash = digest::digest(&digest::SHA256, issuer.as_bytes());
    hash.as_ref()[..ISSUER_HASH_BYTES].to_vec()
}

fn hash_of_state(state: &str) -> digest::Digest {
    digest::digest(&digest::SHA256, split_state(state).0.as_bytes())
}

/// The ID in the name of a transaction's cookie, derived one-way from the state.
#[must_use]
pub(crate) fn id_of_state(state: &str) -> String {
    URL_SAFE_NO_PAD.encode(&hash_of_state(state).as_ref()[..ID_BYTES])
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
        Transaction::begin(
            &keys(),
            "https://idp.example",
            return_to,
            SignInPlace::Window,
            now_ms,
        )
        .unwrap()
    }

    fn base() -> Url {
        Url::parse("https://app.example/").unwrap()
    }

    #[test]
    fn a_transaction_comes_back_from_its_cookie_unchanged() {
        let mut sent = begin_to(Some("/a?b=c#d"), 1_700_000_000_000);
        sent.record.max_age = Some(0);
        sent.record.organization = Some("org_1".to_owned());
        sent.record.acr_values = Some("gold silver".to_owned());
        sent.record.silent = true;
        sent.record.session = Some("00112233445566778899aabbccddeeff".to_owned());
        let value = sent.seal(&keys(), "tx").unwrap();
        let mut back = Transaction::open(&keys(), "tx", &value).unwrap();
        assert!(back.accept_state(&keys(), &base(), &sent.state));
        assert!(back.record == sent.record);
        assert!(back.is_at("https://idp.example") && !back.is_at("https://other.example"));
        assert_eq!(
            (back.state, back.nonce, back.verifier, back.return_to),
            (sent.state, sent.nonce, sent.verifier, sent.return_to)
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
        assert!(open_return_to(&others, &base(), &sent.state).is_none());
        let opened = open_return_to(&keys(), &base(), &sent.state).unwrap();
        assert_eq!(opened.as_str(), "https://app.example//evil.example");
    }

    #[test]
    fn only_the_state_of_a_sign_in_in_a_frame_is_one() {
        let to = || ReturnTo::parse(&base(), "/a");
        let begin = |place| Transaction::begin(&keys(), "https://idp.example", to(), place, 0).unwrap();
        let (window, frame) = (begin(SignInPlace::Window), begin(SignInPlace::Frame));
        assert!(is_of_frame(&keys(), &frame.state) && !is_of_frame(&keys(), &window.state));
        let (random, _) = window.state.split_once('.').unwrap();
        let (_, hint) = frame.state.split_once('.').unwrap();
        assert!(!is_of_frame(&keys(), &format!("{random}.{hint}")));
        assert_eq!(open_return_to(&keys(), &base(), &frame.state), to());
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
}
