//! Invalid arguments, to the store and to its scripts.

use std::sync::Arc;
use std::time::Duration;

use chassis::clock::{Clock as _, SystemClock};
use proptest::prelude::*;
use session_svc::session::Cause;
use session_svc::store::{IndexEntry, Inserted, Lease, Name, Record, StoreError};

use super::server::Server;
use super::support::*;
use crate::lists::listed;

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        Just(0),
        Just(u64::MAX),
        Just(1 << 53),
        Just(i64::MAX as u64),
        Just(i64::MAX as u64 + 1),
        1_800_000_000_000_u64..1_900_000_000_000,
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[0-9a-f]{32}",
        Just(String::new()),
        Just("\r\nFLUSHALL\r\n".to_owned()),
        Just("*1\r\n$8\r\nFLUSHALL\r\n".to_owned()),
        Just("{x}} 1 2 'redis.call(\"FLUSHALL\")".to_owned()),
        Just("x".repeat(30_000)),
        Just("nan".to_owned()),
        Just("-1".to_owned()),
    ]
}

fn any_name() -> impl Strategy<Value = Name> {
    any::<[u8; 16]>().prop_map(Name::from_bytes)
}

fn any_record() -> impl Strategy<Value = Record> {
    let numbers = (any_number(), any_number(), any_number());
    let indexes = prop::collection::vec(any_name(), 0..4);
    (any_name(), numbers, indexes, any::<Vec<u8>>()).prop_map(|(name, numbers, indexes, payload)| Record {
        name,
        version: numbers.0,
        expires_at_ms: numbers.1,
        created_at_ms: numbers.2,
        indexes,
        payload,
    })
}

fn defined<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> Result<(), TestCaseError> {
    prop_assert!(!matches!(outcome, Err(StoreError::Corrupt)), "{outcome:?}");
    Ok(())
}

#[test]
fn absurd_arguments_neither_break_the_server_nor_touch_another_session() {
    let server = Server::start();
    let session_store = session_store(Arc::clone(&server.store), "ab");
    let [canary, _] = server.runtime.block_on(two_sessions(&session_store));
    let arguments = (any_record(), any_name(), any_text(), any_number(), any_number());
    let outcome = cases(200).run(&arguments, |(record, name, text, one, two)| {
        server.runtime.block_on(async {
            let store = &server.store;
            // A caller must not use another session's name.
            prop_assume!(record.name != canary.handle);
            let inserted = store.insert(record.clone(), text.clone().into_bytes()).await;
            if matches!(inserted, Ok(Inserted::Done)) && record.expires_at_ms > SystemClock.now_ms() + 60_000
            {
                prop_assert_eq!(store.load(record.name).await.unwrap(), Some(record.clone()));
                for &index in &record.indexes {
                    let listed = listed(&**store, index, usize::MAX).await.unwrap();
                    prop_assert!(listed.contains(&record), "{listed:?}");
                }
            }
            defined(inserted)?;
            let prolonged = Record {
                expires_at_ms: two,
                ..record.clone()
            };
            defined(
                store
                    .replace(prolonged, one, Some(text.clone().into_bytes()))
                    .await,
            )?;
            let cursor = IndexEntry {
                created_at_ms: one,
                name,
            };
            defined(
                store
                    .list(name, Some(&cursor), usize::try_from(two).unwrap())
                    .await,
            )?;
            let ttl = Duration::from_millis(one);
            let lease = store.acquire_lease(name, &text, ttl).await;
            if let Ok(Some(lease)) = &lease {
                defined(store.renew_lease(lease, Duration::MAX).await)?;
            }
            defined(lease)?;
            let never = Lease {
                name,
                serial: one,
                // A lease belongs to its holder: this holder has none.
                holder: format!("not {text}"),
            };
            prop_assert!(!store.renew_lease(&never, ttl).await.unwrap());
            defined(store.release_lease(&never).await)?;
            defined(
                store
                    .remember(name, &record.payload, Duration::from_millis(two))
                    .await,
            )?;
            defined(store.published(Some(text.clone())).await.map(|_| ()))?;
            let removed = store.remove(record.name, Vec::new()).await;
            defined(removed)?;
            for &index in &record.indexes {
                prop_assert!(
                    !listed(&**store, index, 1_000)
                        .await
                        .unwrap()
                        .iter()
                        .any(|one| one.name == record.name)
                );
            }
            prop_assert_eq!(&session_store.load(canary.handle).await.unwrap(), &canary);
            server.is_sane().await
        })
    });
    outcome.unwrap();
}

#[test]
fn scripts_called_with_anything_answer_or_refuse() {
    let server = Server::start();
    let session_store = session_store(Arc::clone(&server.store), "ab");
    let (canary, scripts) = server.runtime.block_on(async {
        let monitor = server.server.monitor().await;
        let [canary, other] = two_sessions(&session_store).await;
        session_store
            .list(
                IndexKey::Person(ISSUER, &canary.subject),
                None,
                10,
                &mut ROOM.clone(),
            )
            .await
            .unwrap();
        session_store.remove(other.handle, Cause::Logout).await.unwrap();
        let ttl = Duration::from_secs(60);
        let lease = server
            .store
            .acquire_lease(other.handle, "holder", ttl)
            .await
            .unwrap()
            .unwrap();
        server.store.renew_lease(&lease, ttl).await.unwrap();
        server.store.release_lease(&lease).await.unwrap();
        server.store.remember(other.handle, b"value", ttl).await.unwrap();
        let mut scripts: Vec<String> = monitor.lines().await;
        scripts = scripts
            .iter()
            .filter_map(|line| Some(line.split_once("\"EVALSHA\" \"")?.1[..40].to_owned()))
            .collect();
        scripts.sort();
        scripts.dedup();
        (canary, scripts)
    });
    assert_eq!(
        scripts.len(),
        8,
        "insert, replace, remove, list, acquire, renew, release, remember"
    );

    let bytes = || {
        prop_oneof![
            any::<Vec<u8>>(),
            any_text().prop_map(String::into_bytes),
            any_number().prop_map(|number| number.to_string().into_bytes()),
            any::<i64>().prop_map(|number| number.to_string().into_bytes()),
            any_number().prop_map(|number| number.to_be_bytes().to_vec()),
            Just(b"1e400".to_vec()),
        ]
    };
    let keys = prop::collection::vec(bytes().prop_map(|end| [PREFIX, b"fuzzed", &end].concat()), 0..5);
    let calls = (
        prop::sample::select(scripts),
        keys,
        prop::collection::vec(bytes(), 0..9),
    );
    let outcome = cases(1_000).run(&calls, |(script, keys, arguments)| {
        server.runtime.block_on(async {
            let mut command = redis::cmd("EVALSHA");
            command.arg(script).arg(keys.len()).arg(keys).arg(arguments);
            // The arguments include event keys, which the server checks like declared keys.
            let answer = tokio::time::timeout(Duration::from_secs(5), server.ask_limited(&command)).await;
            if let Err(error) = answer.unwrap() {
                prop_assert!(!error.is_io_error(), "{error}");
            }
            prop_assert_eq!(&session_store.load(canary.handle).await.unwrap(), &canary);
            Ok(())
        })
    });
    outcome.unwrap();
    server.runtime.block_on(server.is_sane()).unwrap();
}
