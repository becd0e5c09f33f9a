//! Servers that answer but are no longer the master, or may not be.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use session_svc::store::{KeyValueStore, Name, Record, StoreError};

use super::{WAIT_MAX, connect, eventually};
use crate::contract::numbered;
use crate::proxy::Proxy;
use crate::redis_server::RedisServer;
use crate::sentinels::{MASTER, Sentinels};

/// Within this time every replica sees an ending.
const SEEN_WITHIN: Duration = Duration::from_secs(1);

/// How long the test checks that nothing changes.
const WATCHED_FOR: Duration = Duration::from_secs(2);

pub(super) fn session(store: &dyn KeyValueStore, number: u64) -> Record {
    let now_ms = store.now_ms();
    Record {
        name: Name::from_bytes((u128::from(now_ms) << 64 | u128::from(number)).to_be_bytes()),
        version: 1,
        expires_at_ms: now_ms + 600_000,
        created_at_ms: now_ms,
        indexes: Vec::new(),
        payload: vec![7; 100],
    }
}

/// How long a store still finds a session that ended at `ended`, watched long enough to see it end.
async fn honoured_for(store: &Arc<dyn KeyValueStore>, name: Name, ended: Instant) -> Duration {
    let mut last = Duration::ZERO;
    while ended.elapsed() < SEEN_WITHIN + WATCHED_FOR {
        if matches!(store.load(name).await, Ok(Some(_))) {
            last = ended.elapsed();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    last
}

/// Isolates the master, ends a session at its successor, and returns how long an earlier store still accepts
/// it. `cut` runs with the isolation.
async fn isolated(servers: &Sentinels, store: Arc<dyn KeyValueStore>, cut: impl Fn()) -> Duration {
    let one = session(&*store, 1);
    store.insert(one.clone(), b"created".to_vec()).await.unwrap();
    servers.servers[0].wait_until_copied();
    let mut events = store.published(None).await.unwrap();

    servers.isolate(0);
    cut();
    tokio::task::block_in_place(|| servers.wait_for_another(0));
    let other = connect(&servers.url()).await;
    assert!(other.remove(one.name, b"ended".to_vec()).await.unwrap().is_some());
    let ended = Instant::now();
    let honoured = honoured_for(&store, one.name, ended).await;
    // A caching reader learned that its stream was cut, or received the ending.
    let observed = tokio::time::timeout(WAIT_MAX, events.next()).await.unwrap();
    assert!(
        observed.as_ref().unwrap().is_err(),
        "a stream that hears an isolated master: {observed:?}"
    );
    honoured
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_cut_off_from_its_sentinels_is_left_for_the_one_they_name() {
    let servers = Sentinels::start_apart(1, &[]);
    let store = connect(&servers.url()).await;
    let honoured = isolated(&servers, Arc::clone(&store), || {}).await;
    assert!(
        honoured < SEEN_WITHIN,
        "an ended session was honoured for {honoured:?}"
    );
    let one = session(&*store, 2);
    store.insert(one, Vec::new()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_cut_off_from_its_sentinels_together_with_us_is_not_read() {
    let servers = Sentinels::start_apart(1, &[]);
    let mut ways = Vec::new();
    for sentinel in &servers.sentinels {
        ways.push(Proxy::start(sentinel.port).await);
    }
    let hosts: Vec<String> = ways.iter().map(|way| format!("127.0.0.1:{}", way.port)).collect();
    let store = connect(&format!("redis-sentinel://{}/{MASTER}", hosts.join(","))).await;
    let honoured = isolated(&servers, Arc::clone(&store), || ways.iter().for_each(Proxy::cut)).await;
    assert!(
        honoured < SEEN_WITHIN,
        "an ended session was honoured for {honoured:?}"
    );
    assert!(matches!(store.check().await, Err(StoreError::Unavailable(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_of_the_sentinels_nothing_is_served_until_it_answers_again() {
    let servers = Sentinels::start_apart(1, &[]);
    let store = connect(&servers.url()).await;
    let one = session(&*store, 1);
    store.insert(one.clone(), Vec::new()).await.unwrap();
    // A majority is left.
    servers.sentinels[0].signal("STOP");
    let began = Instant::now();
    while began.elapsed() < 2 * SEEN_WITHIN {
        assert_eq!(store.load(one.name).await.unwrap().as_ref(), Some(&one));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    servers.sentinels[1].signal("STOP");
    let silent = Instant::now();
    while store.load(one.name).await.is_ok() {
        assert!(
            silent.elapsed() < SEEN_WITHIN,
            "a master that no majority names is read"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let refused = Instant::now();
    assert!(matches!(store.check().await, Err(StoreError::Unavailable(_))));
    assert!(refused.elapsed() < SEEN_WITHIN, "a call waited for a majority");
    servers.sentinels[..2]
        .iter()
        .for_each(|sentinel| sentinel.signal("CONT"));
    eventually("a majority to name the master", async || {
        store
            .load(one.name)
            .await
            .is_ok_and(|found| found.as_ref() == Some(&one))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_becomes_a_replica_is_not_read_any_more() {
    let (server, other) = (RedisServer::start(&[]), RedisServer::start(&[]));
    let store = connect(&format!("redis://127.0.0.1:{}", server.port)).await;
    let one = session(&*store, 1);
    store.insert(one.clone(), Vec::new()).await.unwrap();
    let of_worker = store.for_worker().unwrap();
    of_worker.load(one.name).await.unwrap();
    let mut events = store.published(None).await.unwrap();
    assert_eq!(
        other.ask(&format!("REPLICAOF 127.0.0.1 {}", server.port)),
        "+OK\r\n"
    );
    server.wait_until_copied();
    assert_eq!(other.ask("REPLICAOF NO ONE"), "+OK\r\n");
    assert_eq!(
        server.ask(&format!("REPLICAOF 127.0.0.1 {}", other.port)),
        "+OK\r\n"
    );
    let deposed = Instant::now();
    let (by_one, by_worker) = tokio::join!(
        honoured_for(&store, one.name, deposed),
        honoured_for(&of_worker, one.name, deposed)
    );
    let honoured = by_one.max(by_worker);
    assert!(honoured < SEEN_WITHIN, "a replica was read for {honoured:?}");
    assert!(
        tokio::time::timeout(WAIT_MAX, events.next())
            .await
            .unwrap()
            .unwrap()
            .is_err()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn news_that_comes_late_is_not_heard() {
    let server = RedisServer::start(&[]);
    let way = Proxy::start(server.port).await;
    let store = connect(&format!("redis://127.0.0.1:{}", way.port)).await;
    let mut events = store.published(None).await.unwrap();
    // Slower and slower, without a gap large enough to be noticed.
    let mut delay = Duration::ZERO;
    let observed = loop {
        way.delay(delay);
        match tokio::time::timeout(Duration::from_millis(100), events.next()).await {
            Ok(observed) => break observed,
            Err(_) => delay += Duration::from_millis(50),
        }
        assert!(delay < SEEN_WITHIN, "news {delay:?} old is heard");
    };
    assert!(observed.unwrap().is_err());
    // Steadily late: reads succeed, but events arrive too late to count.
    way.delay(Duration::from_millis(300));
    eventually("reads to be answered", async || {
        store.load(numbered(0)).await.is_ok()
    })
    .await;
    assert!(matches!(
        store.published(None).await,
        Err(StoreError::Unavailable(_))
    ));
}
