//! The Redis store keeps the contract on a real server, and survives that server's failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chassis::clock::{Clock as _, ManualClock, SystemClock};
use futures_util::StreamExt as _;
use session_svc::store::url::StoreSettings;
use session_svc::store::{
    Inserted, KeyValueStore, Record, Replaced, StoreError, StoreUpdate, open as open_store,
};

use crate::contract::{
    Bench, Pass, SHORT_MS, WAIT_MAX, eventually, fresh_name, next, numbered, received, record, said,
};
use crate::lists::listed;
use crate::redis_server::{RedisServer, index_key, record_key};

async fn connect(url: &str) -> Arc<dyn KeyValueStore> {
    let settings: StoreSettings = url.parse().unwrap();
    open_store(&settings, Arc::new(SystemClock)).await.unwrap()
}

/// Real time: waits until the server's clock has passed it.
fn pass_on(store: &Arc<dyn KeyValueStore>) -> Pass {
    let store = Arc::clone(store);
    Box::new(move |ms| {
        let store = Arc::clone(&store);
        Box::pin(async move {
            // The store's estimate of the server's time may be off by half a round trip.
            let until = store.now_ms() + ms + 20;
            eventually("time to pass", || async { store.now_ms() >= until }).await;
        })
    })
}

async fn bench(url: &str, keeps: impl Send + 'static) -> Bench {
    let store = connect(url).await;
    let other = connect(url).await;
    Bench {
        pass: pass_on(&store),
        store,
        other,
        _keeps: Box::new(keeps),
    }
}

async fn open() -> Bench {
    let server = RedisServer::start(&[]);
    bench(&format!("redis://127.0.0.1:{}", server.port), server).await
}

crate::suite!(open());

async fn single() -> (RedisServer, Arc<dyn KeyValueStore>) {
    let server = RedisServer::start(&[]);
    let store = connect(&format!("redis://127.0.0.1:{}", server.port)).await;
    (server, store)
}

fn unavailable<T: std::fmt::Debug>(outcome: Result<T, StoreError>) {
    assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
}

#[tokio::test]
async fn the_servers_clock_decides_whatever_ours_says() {
    let server = RedisServer::start(&[]);
    let settings: StoreSettings = format!("redis://127.0.0.1:{}", server.port).parse().unwrap();
    for wrong_ms in [SystemClock.now_ms() - 7_200_000, SystemClock.now_ms() + 7_200_000] {
        let store = open_store(&settings, Arc::new(ManualClock::new(wrong_ms)))
            .await
            .unwrap();
        let off = store.now_ms().abs_diff(SystemClock.now_ms());
        assert!(off < 1_000, "{off} ms off");
        let one = record(&*store, SHORT_MS, &[]);
        assert_eq!(
            store.insert(one.clone(), Vec::new()).await.unwrap(),
            Inserted::Done
        );
        assert!(store.load(one.name).await.unwrap().is_some());
        eventually("expiry", || async {
            store.load(one.name).await.unwrap().is_none()
        })
        .await;
        assert!(store.now_ms() + 50 >= one.expires_at_ms);
    }
}

/// Sessions of the test below: enough that indexes share sorted sets.
const MANY: u64 = 50_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_thousand_created_and_expired_leave_no_key_but_the_events() {
    let (server, store) = single().await;
    let numbers = Arc::new(AtomicU64::new(0));
    let writers = (0..64).map(|_| {
        let (store, numbers) = (Arc::clone(&store), Arc::clone(&numbers));
        tokio::spawn(async move {
            loop {
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                if number >= MANY {
                    return;
                }
                let (person, sid) = (numbered(number % 5_000), fresh_name());
                let one = record(&*store, 300 + number % 300, &[person, sid]);
                store.insert(one.clone(), Vec::new()).await.unwrap();
                // Some are rolled, some ended, some refresh, some were created with a request name.
                match number % 5 {
                    0 => {
                        let prolonged = Record {
                            expires_at_ms: one.expires_at_ms + 200,
                            ..next(&one, b"rolled")
                        };
                        store.replace(prolonged, 1, None).await.unwrap();
                    }
                    1 => drop(store.remove(one.name, Vec::new()).await.unwrap()),
                    2 => {
                        let ttl = Duration::from_millis(300);
                        store.acquire_lease(one.name, "one", ttl).await.unwrap();
                    }
                    3 => {
                        let ttl = Duration::from_millis(300);
                        store.remember(one.name, b"x", ttl).await.unwrap();
                    }
                    _ => {}
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    eventually("all keys to expire", || async {
        server.ask("DBSIZE") == ":1\r\n"
    })
    .await;
    assert!(server.ask("KEYS *").contains("vestibule:e"));
}

#[tokio::test]
async fn an_index_that_is_written_again_and_again_keeps_only_live_entries() {
    let (server, store) = single().await;
    let subject = fresh_name();
    for _ in 0..30 {
        let one = record(&*store, 30, &[subject]);
        store.insert(one.clone(), Vec::new()).await.unwrap();
        // Expired by the server's own clock.
        eventually("expiry", || async {
            store.load(one.name).await.unwrap().is_none()
        })
        .await;
    }
    store
        .insert(record(&*store, 60_000, &[subject]), Vec::new())
        .await
        .unwrap();
    let key = index_key(subject);
    assert_eq!(server.ask(&format!("ZCARD {key}")), ":1\r\n");
    let left = server.ask(&format!("PTTL {key}"));
    let left: u64 = left.trim_start_matches(':').trim_end().parse().unwrap();
    assert!(
        (50_000..=61_000).contains(&left),
        "the index lives as long as its last entry, not {left} ms"
    );
}

/// Requests are counted on the wire: a script's inner commands are no round trips.
#[tokio::test]
async fn each_operation_is_one_round_trip() {
    let (server, store) = single().await;
    let subject = fresh_name();
    let (one, two) = (
        record(&*store, 60_000, &[subject, fresh_name()]),
        record(&*store, 60_000, &[subject]),
    );
    store.insert(two.clone(), Vec::new()).await.unwrap();
    let monitor = server.monitor().await;

    store.insert(one.clone(), b"created".to_vec()).await.unwrap();
    assert_eq!(monitor.received().await, ["EVALSHA"], "insert");
    store.load(one.name).await.unwrap().unwrap();
    assert_eq!(monitor.received().await, ["GET"], "load");
    let prolonged = Record {
        expires_at_ms: one.expires_at_ms + 5_000,
        ..next(&one, b"rolled")
    };
    store
        .replace(prolonged, 1, Some(b"rolled".to_vec()))
        .await
        .unwrap();
    assert_eq!(
        monitor.received().await,
        ["EVALSHA", "EVAL"],
        "a first replace: the server learns the script"
    );
    let again = store
        .replace(next(&next(&one, b"x"), b"y"), 2, None)
        .await
        .unwrap();
    assert_eq!(again, Replaced::Done);
    assert_eq!(monitor.received().await, ["EVALSHA"], "replace");
    assert_eq!(store.list(subject, None, 20).await.unwrap().entries.len(), 2);
    assert_eq!(monitor.received().await, ["EVALSHA", "EVAL"], "a first list");
    assert_eq!(store.list(subject, None, 20).await.unwrap().entries.len(), 2);
    assert_eq!(monitor.received().await, ["EVALSHA"], "list");
    let loaded = store.load_many(&[one.name, two.name]).await.unwrap();
    assert_eq!(loaded.len(), 2);
    assert_eq!(monitor.received().await, ["MGET"], "several loads");
    store.remove(one.name, b"ended".to_vec()).await.unwrap().unwrap();
    assert_eq!(monitor.received().await, ["EVALSHA", "EVAL"], "a first removal");
    store.remove(two.name, b"ended".to_vec()).await.unwrap().unwrap();
    assert_eq!(monitor.received().await, ["EVALSHA"], "removal");
    let lease = store
        .acquire_lease(fresh_name(), "one", Duration::from_secs(9))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(monitor.received().await, ["EVALSHA", "EVAL"], "a first lease");
    assert!(store.renew_lease(&lease, Duration::from_secs(9)).await.unwrap());
    store.release_lease(&lease).await.unwrap();
    assert_eq!(
        monitor.received().await,
        ["EVALSHA", "EVAL", "EVALSHA", "EVAL"],
        "renewed, given back"
    );
}

#[tokio::test]
async fn a_flushed_script_cache_is_not_noticed() {
    let (server, store) = single().await;
    let subject = fresh_name();
    let one = record(&*store, 60_000, &[subject]);
    let flush = || server.ask("SCRIPT FLUSH");
    store.insert(one.clone(), Vec::new()).await.unwrap();
    flush();
    assert_eq!(
        store.replace(next(&one, b"x"), 1, None).await.unwrap(),
        Replaced::Done
    );
    flush();
    assert_eq!(listed(&*store, subject, 1).await.unwrap(), [next(&one, b"x")]);
    flush();
    assert!(store.remove(one.name, Vec::new()).await.unwrap().is_some());
    flush();
    assert_eq!(
        store.insert(one.clone(), Vec::new()).await.unwrap(),
        Inserted::Done
    );
}

#[tokio::test]
async fn a_server_that_is_away_is_unavailable_and_comes_back_without_a_restart() {
    let (mut server, store) = single().await;
    let mut stream = store.published(None).await.unwrap();
    let one = record(&*store, 60_000, &[]);
    store.insert(one.clone(), b"created".to_vec()).await.unwrap();
    let (_, position) = received(&mut stream).await;
    server.kill();
    let started = Instant::now();
    unavailable(store.load(one.name).await);
    unavailable(store.insert(record(&*store, 60_000, &[]), Vec::new()).await);
    unavailable(store.check().await);
    assert!(started.elapsed() < Duration::from_secs(8));
    // The listener gets an error, within the time an ending may take.
    let cut = tokio::time::timeout(Duration::from_secs(2), stream.next())
        .await
        .expect("told in time");
    unavailable(cut.unwrap());
    assert!(stream.next().await.is_none());
    unavailable(store.published(None).await.map(|_| ()));

    server.start_again();
    eventually("the store to work again", || async {
        store.check().await.is_ok()
    })
    .await;
    eventually("loads to work again", || async {
        store.load(one.name).await.is_ok()
    })
    .await;
    let two = record(&*store, 60_000, &[]);
    assert_eq!(
        store.insert(two, b"created".to_vec()).await.unwrap(),
        Inserted::Done
    );
    // This server kept nothing, so earlier events are lost, and the store reports that.
    let started = Instant::now();
    let mut resumed = loop {
        match store.published(Some(position.clone())).await {
            Ok(resumed) => break resumed,
            Err(_) => assert!(started.elapsed() < WAIT_MAX, "events are never heard again"),
        }
    };
    assert_eq!(said(&mut resumed).await, StoreUpdate::Missed);
}

#[tokio::test]
async fn a_frozen_server_is_unavailable_in_bounded_time() {
    let (server, store) = single().await;
    let mut stream = store.published(None).await.unwrap();
    server.signal("STOP");
    let started = Instant::now();
    let cut = tokio::time::timeout(Duration::from_secs(2), stream.next())
        .await
        .expect("told in time");
    unavailable(cut.unwrap());
    unavailable(store.load(numbered(0)).await);
    assert!(
        started.elapsed() < Duration::from_secs(8),
        "{:?}",
        started.elapsed()
    );
    server.signal("CONT");
    eventually("the store to work again", || async {
        store.check().await.is_ok()
    })
    .await;
    eventually("events to be heard again", || async {
        store.published(None).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn each_worker_has_one_connection_of_its_own_to_the_same_records() {
    let (server, store) = single().await;
    let one = record(&*store, 60_000, &[]);
    store.insert(one.clone(), Vec::new()).await.unwrap();
    let clients = || {
        server
            .ask("CLIENT LIST")
            .lines()
            .filter(|line| line.contains("addr="))
            .count()
    };
    // The store's own connection, and that of `ask`.
    eventually("nobody else to be connected", || async { clients() == 2 }).await;
    let workers = [store.for_worker().unwrap(), store.for_worker().unwrap()];
    for worker in workers.iter().cycle().take(6) {
        assert_eq!(worker.load(one.name).await.unwrap(), Some(one.clone()));
    }
    eventually("one connection for each worker", || async { clients() == 4 }).await;
    drop(workers);
    eventually("their connections to close", || async { clients() == 2 }).await;
}

/// Writes are not retried: after a server restart each idle worker would fail once.
#[tokio::test]
async fn a_restarted_server_fails_no_write_of_a_worker_that_was_idle() {
    let (server, store) = single().await;
    let _listening = store.published(None).await.unwrap();
    let workers = [0; 4].map(|_| store.for_worker().unwrap());
    for _ in 0..8 {
        for worker in &workers {
            let written = worker.insert(record(&**worker, 60_000, &[]), Vec::new()).await;
            assert_eq!(written.unwrap(), Inserted::Done);
        }
        // Cuts the connections as a restart does, before the store's own check finds them.
        server.ask("CLIENT KILL TYPE normal SKIPME yes");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn it_opens_while_the_server_is_away() {
    let mut server = RedisServer::start(&[]);
    server.kill();
    let store = connect(&format!("redis://127.0.0.1:{}", server.port)).await;
    unavailable(store.check().await);
    server.start_again();
    eventually("the store to work", || async { store.check().await.is_ok() }).await;
}

#[tokio::test]
async fn a_full_server_says_so() {
    let (server, store) = single().await;
    server.ask("CONFIG SET maxmemory 1");
    let full = store.insert(record(&*store, 60_000, &[]), Vec::new()).await;
    assert!(matches!(full, Err(StoreError::Full)), "{full:?}");
    let checked = store.check().await;
    assert!(matches!(checked, Err(StoreError::Full)), "{checked:?}");
    server.ask("CONFIG SET maxmemory 0");
    store.check().await.unwrap();
    assert!(!server.ask("KEYS *").contains("nobody"), "nothing is written");
}

#[tokio::test]
async fn a_record_somebody_else_wrote_is_corrupt_and_not_a_panic() {
    let (server, store) = single().await;
    for value in ["x", "nonsense-nonsense-nonsense-nonsense"] {
        let name = fresh_name();
        let key = record_key(name);
        assert_eq!(server.ask(&format!("SET {key} {value}")), "+OK\r\n");
        let read = store.load(name).await;
        assert!(matches!(read, Err(StoreError::Corrupt)), "{read:?}");
    }
}
