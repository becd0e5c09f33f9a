//! Mixed releases: this one reads earlier texts, and keeps or rejects texts of a later one.

use std::sync::Arc;

use chassis::clock::ManualClock;
use prost::Message;

use super::tests::{NEW, session, vault};
use super::*;
use crate::error::SessionsError;
use crate::session::{Cause, Claims, Device, Lifetime, SessionTokens, SessionValues};
use crate::session_store::{Removal, SessionStore};
use crate::store::embedded::EmbeddedStore;
use crate::store::{KeyValueStore as _, Record};

/// Texts of format 1 under the key `ff…ff`, written once; all later code must read them.
const VECTORS: &str = include_str!("vectors-v1.txt");

fn vector(name: &str) -> Vec<u8> {
    let line = VECTORS
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    base16ct::lower::decode_vec(line.unwrap().trim()).unwrap()
}

/// A session without any optional field.
fn bare_session() -> Session {
    let values = SessionValues {
        user: Claims::parse(r#"{"sub":"ada"}"#.to_owned()).unwrap(),
        attributes: Claims::default(),
        subject: "ada".to_owned(),
        tokens: SessionTokens::default(),
        provider_sid: None,
        authenticated_at_ms: Some(1_700_000_000_000),
        rolled_at_ms: 1_700_000_000_000,
        not_after_ms: None,
        created_on: Device {
            at_ms: 1_700_000_000_000,
            ..Device::default()
        },
        last_seen_on: Device {
            user_agent: "curl/8".to_owned(),
            address: "2001:db8::7".to_owned(),
            at_ms: 1_700_000_000_500,
        },
        needs_sign_in: false,
        ..session().values
    };
    Session::new(session().handle, values)
}

#[test]
fn what_format_1_wrote_is_read() {
    let vault = vault(&[NEW]);
    for (name, expected) in [("session-full", session()), ("session-bare", bare_session())] {
        let opened = vault.open_session(expected.handle, expected.version, &vector(name));
        assert_eq!(opened.unwrap(), expected, "{name}");
    }
    let change = vault.open_change(&vector("change")).unwrap();
    assert_eq!(
        (change.kind, change.cause, change.at_ms),
        (crate::session::change::ChangeKind::Ended, Some(Cause::Logout), 5)
    );
    assert_eq!(
        vault.open("mark", "n", 0, &vector("note")).unwrap(),
        b"note".to_vec()
    );
}

/// A session as a later release writes it.
#[derive(Clone, PartialEq, Message)]
struct Later {
    #[prost(string, tag = "1")]
    issuer: String,
    #[prost(string, tag = "2")]
    subject: String,
    #[prost(uint64, tag = "10")]
    created_at_ms: u64,
    #[prost(uint64, tag = "11")]
    rolled_at_ms: u64,
    #[prost(string, tag = "900")]
    acr: String,
    #[prost(fixed64, tag = "901")]
    checked_at_ms: u64,
    #[prost(string, repeated, tag = "1000")]
    groups: Vec<String>,
}

fn later() -> Later {
    Later {
        issuer: "https://issuer.example.com".to_owned(),
        subject: "ada".to_owned(),
        created_at_ms: 1_000,
        rolled_at_ms: 1_000,
        acr: "urn:mace:incommon:iap:silver".to_owned(),
        checked_at_ms: 7,
        groups: vec!["admins".to_owned(), "staff".to_owned()],
    }
}

const LIFETIME: Lifetime = Lifetime {
    rolling_ms: 60_000,
    absolute_ms: 600_000,
    roll_interval_ms: 0,
};

/// A replica of this release on a store that holds `sealed`.
async fn replica(sealed: Vec<u8>) -> (SessionStore, Arc<Vault>) {
    let vault = Arc::new(vault(&[NEW]));
    let store = EmbeddedStore::in_memory(Arc::new(ManualClock::new(2_000)), 10).unwrap();
    let record = Record {
        name: session().handle,
        version: 1,
        expires_at_ms: 60_000,
        created_at_ms: 1_000,
        indexes: Vec::new(),
        payload: sealed,
    };
    store.insert(record, Vec::new()).await.unwrap();
    (
        SessionStore::new(Arc::new(store), Arc::clone(&vault), LIFETIME),
        vault,
    )
}

#[tokio::test]
async fn what_a_later_release_added_survives_a_write_of_this_one() {
    let name = session().handle.to_string();
    let sealed = vault(&[NEW]).seal(SESSION, &name, 1, &later().encode_to_vec());
    let (session_store, vault) = replica(sealed.unwrap()).await;
    let read = session_store.load(session().handle).await.unwrap();
    assert!(!format!("{read:?}").contains("silver"), "it may be a secret");
    let edit = |session: &mut Session| {
        session.rolled_at_ms = 2_000;
        true
    };
    let rolled = session_store
        .edit(read, crate::session::change::ChangeKind::Rolled, None, edit)
        .await;
    assert!(rolled.unwrap().1);
    let kept = session_store
        .store()
        .load(session().handle)
        .await
        .unwrap()
        .unwrap();
    let plain = vault.open(SESSION, &name, 2, &kept.payload).unwrap();
    let expected = Later {
        rolled_at_ms: 2_000,
        ..later()
    };
    assert_eq!(Later::decode(plain.as_slice()).unwrap(), expected);
}

#[tokio::test]
async fn a_session_of_a_later_format_is_refused_and_left_alone_until_somebody_ends_it() {
    let name = session().handle.to_string();
    let mut sealed = vault(&[NEW]).seal(SESSION, &name, 1, b"whatever").unwrap();
    sealed[0] = FORMAT + 1;
    let (session_store, _) = replica(sealed.clone()).await;
    let refused = session_store.load(session().handle).await;
    assert!(matches!(
        refused,
        Err(SessionsError::Seal(SealError::UnknownFormat))
    ));
    let kept = session_store
        .store()
        .load(session().handle)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(kept.payload, sealed);
    let removed = session_store
        .remove(session().handle, Cause::Operator)
        .await
        .unwrap();
    assert!(matches!(removed, Removal::Unreadable), "{removed:?}");
    assert_eq!(session_store.store().load(session().handle).await.unwrap(), None);
}

#[test]
fn an_unknown_auth_time_stays_unknown() {
    let mut unknown = session();
    unknown.authenticated_at_ms = None;
    let bytes = wire::session_to_bytes(&unknown);
    let read = wire::session_from_bytes(unknown.handle, unknown.version, bytes.into());
    assert_eq!(read.unwrap(), unknown);
}

#[test]
fn every_field_this_release_writes_is_one_it_knows() {
    let bytes = wire::session_to_bytes(&session());
    let read = wire::session_from_bytes(session().handle, 7, bytes.into()).unwrap();
    assert_eq!(read.carried, Default::default());
}
