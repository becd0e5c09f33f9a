//! Valkey keeps the contract like Redis: alone, behind Sentinels, as a cluster.

use std::sync::Arc;

use chassis::clock::SystemClock;
use session_svc::store::url::StoreSettings;
use session_svc::store::{Inserted, KeyValueStore, open as open_store};

use crate::cluster::Cluster;
use crate::contract::{Bench, Pass, eventually, record};
use crate::redis_server::{Engine, RedisServer, record_key};
use crate::sentinels::Sentinels;

async fn connect(url: &str) -> Arc<dyn KeyValueStore> {
    let settings: StoreSettings = url.parse().unwrap();
    open_store(&settings, Arc::new(SystemClock)).await.unwrap()
}

async fn bench(url: &str) -> Bench {
    let (store, other) = (connect(url).await, connect(url).await);
    let timed = Arc::clone(&store);
    let pass: Pass = Box::new(move |ms| {
        let store = Arc::clone(&timed);
        Box::pin(async move {
            let until = store.now_ms() + ms + 20;
            eventually("time to pass", || async { store.now_ms() >= until }).await;
        })
    });
    Bench {
        store,
        other,
        pass,
        _keeps: Box::new(()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_on_one_server() {
    let server = RedisServer::start_on(Engine::Valkey, &[]);
    let bench = &bench(&format!("redis://127.0.0.1:{}", server.port)).await;
    crate::cases!(run_all, bench,);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_behind_sentinels_and_after_a_failover() {
    let mut servers = Sentinels::start(Engine::Valkey);
    let bench = &bench(&servers.url()).await;
    crate::cases!(run_all, bench,);
    let one = record(&*bench.store, 600_000, &[]);
    bench.store.insert(one.clone(), Vec::new()).await.unwrap();
    servers.servers[0].wait_until_copied();
    servers.servers[0].kill();
    servers.wait_for_second();
    eventually("the session on the new master", || async {
        bench
            .store
            .load(one.name)
            .await
            .is_ok_and(|found| found.as_ref() == Some(&one))
    })
    .await;
    let two = record(&*bench.store, 600_000, &[]);
    eventually("the other replica to write", || async {
        matches!(
            bench.other.insert(two.clone(), Vec::new()).await,
            Ok(Inserted::Done)
        )
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_on_a_cluster() {
    let cluster = Cluster::start(Engine::Valkey);
    let bench = &bench(&cluster.url()).await;
    crate::cases!(run_all, bench,);
    let mut owners = std::collections::BTreeSet::new();
    for _ in 0..40 {
        let one = record(&*bench.store, 60_000, &[]);
        bench.store.insert(one.clone(), Vec::new()).await.unwrap();
        owners.insert(cluster.owner(&record_key(one.name)));
    }
    assert_eq!(owners.len(), cluster.nodes.len(), "every node has sessions");
}
