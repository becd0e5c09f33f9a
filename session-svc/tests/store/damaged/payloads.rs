//! Sealed bytes that differ from the written ones.

use std::sync::Arc;

use chassis::clock::ManualClock;
use proptest::prelude::*;
use session_svc::session::change::ChangeKind;
use session_svc::session::{Cause, Claims};
use session_svc::session_store::{Removal, SealError};
use session_svc::sessions::SessionsError;
use session_svc::store::embedded::EmbeddedStore;
use session_svc::store::{Inserted, KeyValueStore, Record};
use tokio::runtime::Runtime;

use super::support::*;

/// Replaces the record of the same name with `record`, bypassing version checks.
async fn plant(store: &dyn KeyValueStore, record: Record) {
    store.remove(record.name, Vec::new()).await.unwrap();
    assert_eq!(store.insert(record, Vec::new()).await.unwrap(), Inserted::Done);
}

#[test]
fn a_damaged_payload_is_told_passed_over_and_can_be_ended() {
    let runtime = Runtime::new().unwrap();
    let outcome = cases(256).run(&any_damage(), |damage| {
        runtime.block_on(async {
            let store = Arc::new(
                EmbeddedStore::in_memory(Arc::new(ManualClock::new(1_800_000_000_000)), 100).unwrap(),
            );
            let session_store = session_store(store.clone(), "ab");
            let [one, other] = two_sessions(&session_store).await;
            let name = one.handle;
            let record = store.load(name).await.unwrap().unwrap();
            let payload = damage.apply(&record.payload);
            prop_assume!(payload != record.payload);
            plant(&*store, Record { payload, ..record }).await;

            let read = session_store.load(one.handle).await;
            prop_assert!(read.as_ref().is_err_and(is_told), "{read:?}");
            let listed = session_store
                .list(
                    IndexKey::Person(ISSUER, &one.subject),
                    None,
                    10,
                    &mut ROOM.clone(),
                )
                .await;
            // Listed, so that an operator can see and end it.
            let [unreadable] = &listed.unwrap().0[..] else {
                return Err(TestCaseError::fail("one session is listed"));
            };
            prop_assert_eq!(unreadable.handle(), one.handle);
            let observed = matches!(unreadable, ListedSession::Unreadable { .. });
            prop_assert!(observed);
            prop_assert!(matches!(
                session_store.remove(one.handle, Cause::Logout).await.unwrap(),
                Removal::Unreadable
            ));
            prop_assert!(matches!(
                session_store.load(one.handle).await,
                Err(SessionsError::Missing)
            ));
            prop_assert_eq!(session_store.load(other.handle).await.unwrap(), other);
            Ok(())
        })
    });
    outcome.unwrap();
}

#[tokio::test]
async fn a_payload_under_another_name_version_or_key_does_not_open() {
    let store: Arc<dyn KeyValueStore> =
        Arc::new(EmbeddedStore::in_memory(Arc::new(ManualClock::new(1_800_000_000_000)), 100).unwrap());
    let store_one = session_store(Arc::clone(&store), "ab");
    let now_ms = store_one.now_ms();
    let [before, other] = [session(1, now_ms), session(2, now_ms)];
    for session in [&before, &other] {
        assert_eq!(
            store_one.insert(session, 65_536, false).await.unwrap(),
            Inserted::Done
        );
    }
    let first = store.load(before.handle).await.unwrap().unwrap();
    let edited = store_one.edit(before, ChangeKind::Changed, None, |session| {
        session.attributes = claims(r#"{"theme":"dark"}"#);
        true
    });
    let (one, _) = edited.await.unwrap();
    let (name, other_name) = (one.handle, other.handle);
    let current = store.load(name).await.unwrap().unwrap();
    let foreign = store.load(other_name).await.unwrap().unwrap();

    let swapped = Record {
        payload: foreign.payload.clone(),
        ..current.clone()
    };
    let rolled_back = Record {
        payload: first.payload.clone(),
        ..current.clone()
    };
    let renumbered = Record {
        version: 7,
        ..current.clone()
    };
    let whole_other = Record {
        name,
        ..foreign.clone()
    };
    for planted in [swapped, rolled_back, renumbered, whole_other] {
        plant(&*store, planted.clone()).await;
        let read = store_one.load(one.handle).await;
        assert!(
            matches!(read, Err(SessionsError::Seal(SealError::NotReadable))),
            "{read:?} of {planted:?}"
        );
    }
    plant(&*store, current.clone()).await;
    assert_eq!(store_one.load(one.handle).await.unwrap(), one);
    let elsewhere = session_store(Arc::clone(&store), "cd").load(one.handle).await;
    assert!(matches!(
        elsewhere,
        Err(SessionsError::Seal(SealError::UnknownKey(_)))
    ));

    // A restored old record looks like an unchanged one: an attacker with write access to the store can undo
    // a change, but do nothing else.
    plant(&*store, first).await;
    let put_back = store_one.load(one.handle).await.unwrap();
    assert_eq!((put_back.version, &put_back.subject), (1, &one.subject));
    assert_eq!(put_back.attributes, Claims::default());
}
