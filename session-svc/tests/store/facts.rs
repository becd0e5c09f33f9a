//! What the servers of a store say of their settings and their state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chassis::clock::SystemClock;
use session_svc::store::fact::{Assessment, Fact};
use session_svc::store::url::StoreSettings;
use session_svc::store::{SessionStore, open as open_store};

use crate::cluster::Cluster;
use crate::contract::eventually;
use crate::redis_server::{Engine, RedisServer};
use crate::sentinels::Sentinels;

async fn opened(url: &str) -> Arc<dyn SessionStore> {
    let settings: StoreSettings = url.parse().unwrap();
    open_store(&settings, Arc::new(SystemClock)).await.unwrap()
}

fn fact<'a>(facts: &'a [Fact], name: &str) -> &'a Fact {
    facts.iter().find(|fact| fact.name == name).unwrap()
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_of_a_cluster_is_judged() {
    let cluster = Cluster::start_with(Engine::Redis, 1, &[]);
    let store = opened(&cluster.url()).await;
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
    let of = |name: &str| -> Vec<&Fact> { facts.iter().filter(|fact| fact.name == name).collect() };
    for name in ["server_version", "persistence", "maxmemory_policy"] {
        let judged: BTreeSet<&str> = of(name).iter().map(|fact| server(fact)).collect();
        assert_eq!(judged.len(), cluster.nodes.len(), "{name}: {judged:?}");
    }
    assert_eq!(of("replica_lag").len(), 3);
    assert_eq!(of("link_to_master").len(), 3);
    assert!(of("role").iter().all(|fact| fact.standing == Assessment::Fine));
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
