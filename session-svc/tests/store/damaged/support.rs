//! Two sessions, and possible changes to their bytes.

use std::sync::Arc;

use chassis::secret::{Reloading, Secret};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use session_svc::session::change::ChangeKind;
pub(crate) use session_svc::session::index::IndexKey;
use session_svc::session::{
    AccessToken, Claims, Device, Handle, Lifetime, Scope, Session, SessionTokens, SessionValues, StoredToken,
};
pub(crate) use session_svc::session_store::ListedSession;
use session_svc::session_store::SessionStore;
use session_svc::sessions::SessionsError;
use session_svc::store::{Inserted, KeyValueStore, StoreError};
use session_svc::vault::{KeyRing, Vault};

/// Bytes a list may read here.
pub(crate) const ROOM: usize = 1 << 20;

pub(crate) const ISSUER: &str = "https://issuer.example";
pub(crate) const PREFIX: &[u8] = b"vestibule:";

pub(crate) const LIFETIME: Lifetime = Lifetime {
    rolling_ms: 3_600_000,
    absolute_ms: 36_000_000,
    roll_interval_ms: 0,
};

pub(crate) fn session_store(store: Arc<dyn KeyValueStore>, key: &str) -> SessionStore {
    let ring = KeyRing::parse(&[Secret::new(key.repeat(32))]).unwrap();
    SessionStore::new(store, Arc::new(Vault::new(Reloading::new(ring))), LIFETIME)
}

pub(crate) fn claims(text: &str) -> Claims {
    Claims::parse(text.to_owned()).unwrap()
}

pub(crate) fn session(number: u8, now_ms: u64) -> Session {
    let subject = format!("person {number}");
    let user = claims(&format!(r#"{{"sub":"{subject}"}}"#));
    let device = Device {
        user_agent: "a browser".to_owned(),
        address: String::new(),
        at_ms: now_ms,
    };
    let values = SessionValues {
        issuer: ISSUER.to_owned(),
        subject,
        user,
        tokens: SessionTokens {
            access: Some(AccessToken {
                value: StoredToken::new(format!("access token of {number}")),
                token_type: "Bearer".to_owned(),
                expires_at_ms: now_ms + 300_000,
                lifetime_ms: AccessToken::LONG,
            }),
            scope: Scope::parse("openid"),
            refresh: Some(StoredToken::new(format!("refresh token of {number}"))),
            generation: 0,
            ..Default::default()
        },
        provider_sid: Some(format!("sid {number}")),
        authenticated_at_ms: Some(now_ms),
        created_at_ms: now_ms,
        rolled_at_ms: now_ms,
        created_on: device.clone(),
        last_seen_on: device,
        ..Default::default()
    };
    Session::new(Handle::from_bytes([number; 16]), values)
}

/// A session of version 2, and one of another person.
pub(crate) async fn two_sessions(session_store: &SessionStore) -> [Session; 2] {
    let now_ms = session_store.now_ms();
    let (one, other) = (session(1, now_ms), session(2, now_ms));
    for session in [&one, &other] {
        assert_eq!(
            session_store.insert(session, 65_536, false).await.unwrap(),
            Inserted::Done
        );
    }
    let edited = session_store.edit(one, ChangeKind::Changed, None, |session| {
        session.attributes = claims(r#"{"theme":"dark"}"#);
        true
    });
    [edited.await.unwrap().0, other]
}

/// A change to stored bytes.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    Flipped(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Longer(Vec<u8>),
    Replaced(Vec<u8>),
    NewerFormat(u8),
}

pub(crate) fn any_damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<prop::sample::Index>(), 0_u8..8).prop_map(|(at, bit)| Damage::Flipped(at, bit)),
        any::<prop::sample::Index>().prop_map(Damage::Cut),
        prop::collection::vec(any::<u8>(), 1..40).prop_map(Damage::Longer),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Damage::Replaced),
        (2_u8..).prop_map(Damage::NewerFormat),
    ]
}

impl Damage {
    pub(crate) fn apply(&self, bytes: &[u8]) -> Vec<u8> {
        let mut damaged = bytes.to_vec();
        match self {
            Self::Flipped(at, bit) => damaged[at.index(bytes.len())] ^= 1 << bit,
            Self::Cut(at) => damaged.truncate(at.index(bytes.len())),
            Self::Longer(more) => damaged.extend(more),
            Self::Replaced(bytes) => damaged.clone_from(bytes),
            Self::NewerFormat(format) => damaged[0] = *format,
        }
        damaged
    }
}

pub(crate) fn cases(count: u32) -> TestRunner {
    TestRunner::new(Config {
        cases: count,
        failure_persistence: None,
        ..Config::default()
    })
}

pub(crate) fn is_told(error: &SessionsError) -> bool {
    matches!(
        error,
        SessionsError::Seal(_) | SessionsError::Store(StoreError::Corrupt)
    )
}
