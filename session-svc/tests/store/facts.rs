//! What a store's servers report about their settings and state.

use std::collections::BTreeSet;
use std::sync::Arc;

use chassis::clock::SystemClock;
use chassis::findings::{Check, CheckResult, Finding};
use session_svc::store::url::StoreSettings;
use session_svc::store::{KeyValueStore, open as open_store};

use crate::cluster::Cluster;
use crate::redis_server::{Engine, RedisServer};
use crate::sentinels::Sentinels;

async fn opened(url: &str) -> Arc<dyn KeyValueStore> {
    let settings: StoreSettings = url.parse().unwrap();
    open_store(&settings, Arc::new(SystemClock)).await.unwrap()
}

fn fact<'a>(facts: &'a [Check], name: &str) -> &'a Finding {
    let (_, finding) = facts.iter().find(|(id, _)| *id == name).unwrap();
    finding
}

#[tokio::test]
async fn a_redis_server_says_how_it_stands() {
    let server = RedisServer::start(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    let store = opened(&format!("redis://127.0.0.1:{}", server.port)).await;
    let facts = store.facts().await.unwrap();
    assert!(
        fact(&facts, "server_version").found.starts_with("redis ")
            || fact(&facts, "server_version").found.starts_with("valkey ")
    );
    assert_eq!(fact(&facts, "maxmemory_policy").verdict, CheckResult::Problem);
    assert_eq!(fact(&facts, "persistence").found, "not appended");
    server.ask("CONFIG SET maxmemory-policy noeviction");
    server.ask("CONFIG SET appendonly yes");
    let facts = store.facts().await.unwrap();
    assert_eq!(fact(&facts, "maxmemory_policy").verdict, CheckResult::Fits);
    assert_eq!(fact(&facts, "persistence").found, "appendonly");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_master_of_a_cluster_is_judged() {
    let cluster = Cluster::start(Engine::Redis);
    let store = opened(&cluster.url()).await;
    let facts = store.facts().await.unwrap();
    for name in ["server_version", "role", "persistence", "maxmemory_policy"] {
        let judged = facts.iter().filter(|(id, _)| *id == name);
        let judged: BTreeSet<&str> = judged.map(|(_, finding)| server(finding)).collect();
        assert_eq!(judged.len(), cluster.nodes.len(), "{name}: {judged:?}");
    }
    // None of them has a replica.
    assert_eq!(fact(&facts, "connected_replicas").verdict, CheckResult::Warning);
}

/// The server of a fact.
fn server(fact: &Finding) -> &str {
    fact.found.rsplit_once(" on ").map_or("", |(_, server)| server)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_sentinels_the_master_is_judged() {
    let servers = Sentinels::start(Engine::Redis);
    let store = opened(&servers.url()).await;
    let facts = store.facts().await.unwrap();
    assert_eq!(fact(&facts, "role").found, "master");
    // One replica, which writes do not wait for.
    assert_eq!(fact(&facts, "connected_replicas").verdict, CheckResult::Warning);
}
