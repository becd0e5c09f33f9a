//! What an operator may do with a store, on every adapter: walk it, exchange what is sealed, ask how it stands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chassis::clock::SystemClock;
use session_svc::store::inspect::{Assessment, Fact, FoundItem, InspectedStore, KeySpace, Sealed};
use session_svc::store::memory::{DEFAULT_CAPACITY, MemoryStore};
use session_svc::store::url::StoreSettings;
use session_svc::store::{Inserted, Name, Record, RememberedName, Replaced, SessionStore, open_inspected};

use crate::cluster::Cluster;
use crate::contract::{eventually, numbered};
use crate::lists::listed;
use crate::redis_server::{Engine, RedisServer, record_key};
use crate::sentinels::Sentinels;

const SUBJECT: Name = Name::from_bytes([0xaa; 16]);
const KEPT_MS: u64 = 600_000;

/// Pages smaller than what is kept, so that a walk takes several.
const PAGE: usize = 7;

async fn opened(url: &str) -> Arc<dyn InspectedStore> {
    let settings: StoreSettings = url.parse().unwrap();
    open_inspected(&settings, Arc::new(SystemClock)).await.unwrap()
}

fn record(store: &dyn SessionStore, number: u64) -> Record {
    let now = store.now_ms();
    Record {
        name: numbered(number),
        version: 1,
        expires_at_ms: now + KEPT_MS,
        created_at_ms: now,
        indexes: vec![SUBJECT, numbered(0xb00 + number)],
        payload: format!("sealed {number}").into_bytes(),
    }
}

async fn walked(store: &dyn InspectedStore, key_space: KeySpace) -> BTreeMap<String, FoundItem> {
    let (mut all, mut after) = (BTreeMap::new(), None);
    loop {
        let page = store.walk(key_space, after.as_deref(), PAGE).await.unwrap();
        for found in page.found {
            let name = match &found {
                FoundItem::Sealed(sealed) => sealed.name(),
                FoundItem::Unreadable { name } | FoundItem::Index { name, .. } => name.clone(),
                FoundItem::Foreign => panic!("nobody else writes here"),
            };
            all.insert(name, found);
        }
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

async fn a_walk_finds_everything_of_its_shelf(store: &dyn InspectedStore) {
    let records: Vec<Record> = (0..40).map(|number| record(store, number)).collect();
    for one in &records {
        assert_eq!(
            store.insert(one.clone(), Vec::new()).await.unwrap(),
            Inserted::Done
        );
    }
    for number in 0..20 {
        let (name, kept) = (
            RememberedName::Named(numbered(number)),
            Duration::from_millis(KEPT_MS),
        );
        assert_eq!(store.remember(name, b"note", kept).await.unwrap(), None);
    }
    let found = walked(store, KeySpace::Records).await;
    assert_eq!(found.len(), records.len());
    for one in records {
        assert_eq!(
            found[&one.name.to_string()],
            FoundItem::Sealed(Sealed::Record(one))
        );
    }
    let found = walked(store, KeySpace::Remembered).await;
    assert_eq!(found.len(), 20);
    assert!(found.values().all(
        |found| matches!(found, FoundItem::Sealed(Sealed::Remembered { value, .. }) if value == b"note")
    ));
    let found = walked(store, KeySpace::Indexes).await;
    assert_eq!(found.len(), 41);
    let person = FoundItem::Index {
        name: SUBJECT.to_string(),
        entries: 40,
        without_record: 0,
    };
    assert_eq!(found[&SUBJECT.to_string()], person);
}

async fn an_exchange_changes_the_sealed_bytes_and_nothing_else(store: &dyn InspectedStore) {
    let one = record(store, 900);
    assert_eq!(
        store.insert(one.clone(), Vec::new()).await.unwrap(),
        Inserted::Done
    );
    let was = Sealed::Record(one.clone());
    let exchanged = store.exchange(&was, b"resealed".to_vec()).await.unwrap();
    assert_eq!(exchanged, Replaced::Done);
    let expected = Record {
        payload: b"resealed".to_vec(),
        ..one.clone()
    };
    assert_eq!(store.load(one.name).await.unwrap().unwrap(), expected);
    assert_eq!(
        listed(store, one.indexes[1], 9).await.unwrap(),
        std::slice::from_ref(&expected)
    );
    // A caller that read the session before writes as if nothing had happened.
    let next = Record {
        version: 2,
        payload: b"written".to_vec(),
        ..one.clone()
    };
    assert_eq!(
        store.replace(next.clone(), 1, None).await.unwrap(),
        Replaced::Done
    );
    // Whoever wrote since wins, and a session that ended stays ended.
    for late in [&was, &Sealed::Record(expected)] {
        let exchanged = store.exchange(late, b"late".to_vec()).await.unwrap();
        assert_eq!(exchanged, Replaced::Stale);
    }
    assert_eq!(store.load(one.name).await.unwrap().unwrap(), next);
    store.remove(one.name, Vec::new()).await.unwrap().unwrap();
    let late = store
        .exchange(&Sealed::Record(next), b"late".to_vec())
        .await
        .unwrap();
    assert_eq!(late, Replaced::Missing);
    assert_eq!(store.load(one.name).await.unwrap(), None);
}

async fn a_remembered_value_is_exchanged_once(store: &dyn InspectedStore) {
    let name = RememberedName::Named(Name::from_bytes([0xcc; 16]));
    let kept = Duration::from_millis(KEPT_MS);
    store.remember(name, b"old", kept).await.unwrap();
    let was = Sealed::Remembered {
        name: name.to_string(),
        value: b"old".to_vec(),
    };
    assert_eq!(
        store.exchange(&was, b"new".to_vec()).await.unwrap(),
        Replaced::Done
    );
    assert_eq!(
        store.remember(name, b"x", kept).await.unwrap().unwrap(),
        b"new".to_vec()
    );
    assert_eq!(
        store.exchange(&was, b"again".to_vec()).await.unwrap(),
        Replaced::Stale
    );
    let unknown = Sealed::Remembered {
        name: "dddddddddddddddddddddddddddddddd".to_owned(),
        value: Vec::new(),
    };
    assert_eq!(
        store.exchange(&unknown, b"x".to_vec()).await.unwrap(),
        Replaced::Missing
    );
}

async fn nothing_is_published_by_an_exchange(store: &dyn InspectedStore) {
    use futures_util::StreamExt as _;
    let one = record(store, 901);
    store.insert(one.clone(), b"created".to_vec()).await.unwrap();
    let mut published = store.published(None).await.unwrap();
    store
        .exchange(&Sealed::Record(one.clone()), b"resealed".to_vec())
        .await
        .unwrap();
    store.remove(one.name, b"ended".to_vec()).await.unwrap().unwrap();
    let first = tokio::time::timeout(Duration::from_secs(15), published.next()).await;
    let session_svc::store::StoreUpdate::Event { payload, .. } = first.unwrap().unwrap().unwrap() else {
        panic!("nothing was missed");
    };
    assert_eq!(payload, b"ended");
}

async fn all_cases(store: &dyn InspectedStore) {
    a_walk_finds_everything_of_its_shelf(store).await;
    an_exchange_changes_the_sealed_bytes_and_nothing_else(store).await;
    a_remembered_value_is_exchanged_once(store).await;
    nothing_is_published_by_an_exchange(store).await;
}

fn fact<'a>(facts: &'a [Fact], name: &str) -> &'a Fact {
    facts.iter().find(|fact| fact.name == name).unwrap()
}

#[tokio::test]
async fn a_memory_store_is_walked_and_resealed() {
    all_cases(&MemoryStore::new(Arc::new(SystemClock), DEFAULT_CAPACITY)).await;
}

#[tokio::test]
async fn a_file_is_walked_and_resealed() {
    let directory = tempfile::tempdir().unwrap();
    let store = opened(&format!("file:{}", directory.path().join("sessions").display())).await;
    all_cases(&*store).await;
    let stored = fact(&store.facts(None).await.unwrap(), "stored_bytes")
        .value
        .clone();
    assert!(stored.parse::<u64>().unwrap() > 1_000, "{stored}");
}

#[tokio::test]
async fn a_redis_server_is_walked_and_resealed() {
    let server = RedisServer::start(&[]);
    let store = opened(&format!("redis://127.0.0.1:{}", server.port)).await;
    all_cases(&*store).await;
    let ttl = server.ask(&format!("PTTL {}", record_key(numbered(3))));
    let ttl: u64 = ttl.trim().trim_start_matches(':').parse().unwrap();
    assert!((KEPT_MS / 2..=KEPT_MS).contains(&ttl), "{ttl}");
}

#[tokio::test]
async fn a_redis_server_says_how_it_stands() {
    let server = RedisServer::start(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    let store = opened(&format!("redis://127.0.0.1:{}", server.port)).await;
    let facts = store.facts(None).await.unwrap();
    assert!(
        fact(&facts, "server_version").value.starts_with("redis ")
            || fact(&facts, "server_version").value.starts_with("valkey ")
    );
    assert!(matches!(
        fact(&facts, "maxmemory_policy").standing,
        Assessment::Problem(_)
    ));
    assert_eq!(fact(&facts, "persistence").value, "none");
    server.ask("CONFIG SET maxmemory-policy noeviction");
    server.ask("CONFIG SET appendonly yes");
    let facts = store.facts(None).await.unwrap();
    assert_eq!(fact(&facts, "maxmemory_policy").standing, Assessment::Fine);
    assert_eq!(fact(&facts, "persistence").value, "appendonly");
}

#[tokio::test]
async fn records_that_went_astray_and_foreign_bytes_are_told() {
    let server = RedisServer::start(&[]);
    let store = opened(&format!("redis://127.0.0.1:{}", server.port)).await;
    let (kept, lost) = (record(&*store, 1), record(&*store, 2));
    for one in [&kept, &lost] {
        store.insert(one.clone(), Vec::new()).await.unwrap();
    }
    server.ask(&format!("DEL {}", record_key(lost.name)));
    let foreign = record_key("ffffffffffffffffffffffffffffffff");
    server.ask(&format!("SET {foreign} nonsense"));
    let found = walked(&*store, KeySpace::Indexes).await;
    let person = FoundItem::Index {
        name: SUBJECT.to_string(),
        entries: 2,
        without_record: 1,
    };
    assert_eq!(found[&SUBJECT.to_string()], person);
    let found = walked(&*store, KeySpace::Records).await;
    assert_eq!(found.len(), 2);
    assert!(matches!(
        found["ffffffffffffffffffffffffffffffff"],
        FoundItem::Unreadable { .. }
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_walked_master_by_master_and_every_node_is_judged() {
    let cluster = Cluster::start_with(Engine::Redis, 1, &[]);
    let store = opened(&cluster.url()).await;
    all_cases(&*store).await;
    // A replica is named once the nodes have told each other that it has something.
    let knows_all = |node: &RedisServer| {
        let slots = node.ask("CLUSTER SLOTS");
        let mut ports = cluster.nodes.iter().map(|other| format!(":{}\r\n", other.port));
        ports.all(|port| slots.contains(&port))
    };
    eventually("all nodes to be known", || async {
        cluster.nodes.iter().all(knows_all)
    })
    .await;
    let facts = store.facts(None).await.unwrap();
    assert_eq!(fact(&facts, "cluster_slots").value, "16384 of 16384");
    let spread = (0..40).map(|number| owner_among_masters(&cluster, &record_key(numbered(number))));
    let spread: BTreeSet<usize> = spread.collect();
    assert!(spread.len() > 1, "the walk had one node to visit");
    let of = |name: &str| -> Vec<&Fact> { facts.iter().filter(|fact| fact.name == name).collect() };
    for name in ["server_version", "persistence", "maxmemory_policy"] {
        let judged: BTreeSet<&str> = of(name).iter().map(|fact| server(fact)).collect();
        assert_eq!(judged.len(), cluster.nodes.len(), "{name}: {judged:?}");
    }
    assert_eq!(of("replica_lag").len(), 3);
    assert_eq!(of("link_to_master").len(), 3);
    assert!(of("role").iter().all(|fact| fact.standing == Assessment::Fine));
}

/// Replicas answer with the address of their master, whichever slot it is.
fn owner_among_masters(cluster: &Cluster, key: &str) -> usize {
    let master = |at: &usize| cluster.nodes[*at].ask("ROLE").contains("master");
    let owns = |at: &usize| {
        !cluster.nodes[*at]
            .ask(&format!("EXISTS {key}"))
            .starts_with("-MOVED")
    };
    (0..cluster.nodes.len())
        .find(|at| master(at) && owns(at))
        .unwrap()
}

/// The server a fact names.
fn server(fact: &Fact) -> &str {
    fact.value.rsplit_once(" on ").map_or("", |(_, server)| server)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_sentinels_every_server_and_every_sentinel_is_judged() {
    let mut servers = Sentinels::start(Engine::Redis);
    let replica = format!("127.0.0.1:{}", servers.servers[1].port);
    servers.servers[1].ask("CONFIG SET appendonly yes");
    let store = opened(&servers.url()).await;
    let facts = store.facts(None).await.unwrap();
    let persistence: BTreeMap<&str, &str> = facts
        .iter()
        .filter(|fact| fact.name == "persistence")
        .map(|fact| (server(fact), fact.value.split(' ').next().unwrap()))
        .collect();
    assert_eq!(
        persistence,
        BTreeMap::from([("", "none"), (replica.as_str(), "appendonly")])
    );
    assert_eq!(fact(&facts, "link_to_master").value, format!("up on {replica}"));
    assert!(fact(&facts, "replica_lag").value.ends_with(&replica));
    // One replica, which no write waits for.
    assert!(matches!(
        fact(&facts, "connected_replicas").standing,
        Assessment::Warning(_)
    ));
    let standing = |facts: &[Fact]| -> Vec<bool> {
        let sentinels = facts.iter().filter(|fact| fact.name == "sentinel");
        sentinels.map(|fact| fact.standing == Assessment::Fine).collect()
    };
    assert_eq!(standing(&facts), [true, true, true]);
    servers.sentinels[2].kill();
    let facts = store.facts(None).await.unwrap();
    assert_eq!(standing(&facts), [true, true, false]);
}
