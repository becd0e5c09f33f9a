//! Engines that fail over during creations, reads, changes, lists and endings, through the store alone and
//! the whole service. Errors occur only without a master, and all can be retried. Data that reached the
//! replica is kept, and no restart is needed.

mod adapter;
mod endings;
mod isolation;
pub(crate) mod load;
mod replaced;
pub(crate) mod service;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use adapter::Adapter;
use chassis::clock::SystemClock;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use load::{Load, Target};
use service::Service;
use session_svc::store::url::StoreSettings;
use session_svc::store::{KeyValueStore, StoreError, StoreUpdate, open};

use crate::cluster::Cluster;
use crate::redis_server::{Engine, RedisServer};
use crate::sentinels::Sentinels;

/// Longest any awaited change may take.
const WAIT_MAX: Duration = Duration::from_secs(30);

async fn connect(url: &str) -> Arc<dyn KeyValueStore> {
    let settings: StoreSettings = url.parse().unwrap();
    open(&settings, Arc::new(SystemClock)).await.unwrap()
}

async fn eventually(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !done().await {
        assert!(started.elapsed() < WAIT_MAX, "still waiting for: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Runs a load, waits until the replicas have everything, and fails the engine over. `down` ends a master and
/// waits until another node replaces it.
async fn through_a_failover(target: Arc<dyn Target>, copied: impl Fn(), down: impl FnOnce()) {
    let load = Load::start(target);
    load.runs_on(300).await;
    assert_eq!(load.errors(), 0, "no error while nothing is down");

    let paused = load.pause().await;
    copied();
    paused.settle();
    load.runs_on(50).await;

    tokio::task::block_in_place(down);
    load.recovers().await;
    // Cluster nodes agree one by one; some may reject for a moment longer.
    eventually(
        "operations without an error once the engine is back",
        async || {
            let before = load.errors();
            load.runs_on(300).await;
            load.errors() == before
        },
    )
    .await;
    load.nothing_settled_is_lost().await;
}

/// The last position received before the stream was cut.
async fn heard_until_cut(mut events: BoxStream<'static, Result<StoreUpdate, StoreError>>) -> Option<String> {
    let mut position = None;
    while let Some(said) = tokio::time::timeout(WAIT_MAX, events.next()).await.unwrap() {
        match said {
            Ok(StoreUpdate::Event { position: at, .. }) => position = Some(at),
            Ok(StoreUpdate::Missed) => {}
            Err(_) => return position,
        }
    }
    position
}

/// A listener that was cut off resumes, or learns what it missed.
async fn hears_again(store: &Arc<dyn KeyValueStore>, position: Option<String>) {
    let mut stream = None;
    eventually("events to be heard again", async || {
        stream = store.published(position.clone()).await.ok();
        stream.is_some()
    })
    .await;
    let said = tokio::time::timeout(WAIT_MAX, stream.unwrap().next())
        .await
        .unwrap();
    assert!(said.unwrap().is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_fails_over_behind_sentinels_under_load() {
    let servers = Mutex::new(Sentinels::start(Engine::Redis));
    let url = servers.lock().unwrap().url();
    let store = connect(&url).await;
    let listener = tokio::spawn(heard_until_cut(store.published(None).await.unwrap()));
    let copied = || servers.lock().unwrap().servers[0].wait_until_copied();
    through_a_failover(Arc::new(Adapter::new(&store)), copied, || {
        let mut servers = servers.lock().unwrap();
        servers.servers[0].kill();
        servers.wait_for_second();
    })
    .await;
    hears_again(&store, listener.await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_master_is_given_up_and_writes_to_it_are_not_believed() {
    let servers = Sentinels::start(Engine::Redis);
    let store = connect(&servers.url()).await;
    let copied = || servers.servers[0].wait_until_copied();
    through_a_failover(Arc::new(Adapter::new(&store)), copied, || {
        servers.servers[0].signal("STOP");
        servers.wait_for_second();
    })
    .await;
    // The node returns and becomes a replica, without an effect on clients.
    let load = Load::start(Arc::new(Adapter::new(&store)));
    servers.servers[0].signal("CONT");
    load.runs_on(300).await;
    assert_eq!(load.errors(), 0);
    load.settle_all().await;
    load.nothing_settled_is_lost().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_behind_sentinels_fails_over_under_load() {
    let servers = Mutex::new(Sentinels::start(Engine::Redis));
    let url = servers.lock().unwrap().url();
    let service = Service::start(connect(&url).await).await;
    let watch = tokio::spawn(service.watched_until_cut());
    let copied = || servers.lock().unwrap().servers[0].wait_until_copied();
    through_a_failover(Arc::new(service.clone()), copied, || {
        let mut servers = servers.lock().unwrap();
        servers.servers[0].kill();
        servers.wait_for_second();
    })
    .await;
    let resume_token = watch.await.unwrap();
    eventually("the watch to go on", async || {
        service.hears_an_ending_after(&resume_token).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_fails_over_under_load() {
    let cluster = Mutex::new(Cluster::start_with(Engine::Redis, 1, &[]));
    let url = cluster.lock().unwrap().url();
    let store = connect(&url).await;
    // The node that holds the events as well as its sessions.
    let master = cluster.lock().unwrap().owner("vestibule:e");
    let listener = tokio::spawn(heard_until_cut(store.published(None).await.unwrap()));
    let copied = || {
        let cluster = cluster.lock().unwrap();
        cluster.nodes[..3].iter().for_each(RedisServer::wait_until_copied);
    };
    through_a_failover(Arc::new(Adapter::new(&store)), copied, || {
        let mut cluster = cluster.lock().unwrap();
        cluster.nodes[master].kill();
        cluster.wait_until_served_without(master);
    })
    .await;
    hears_again(&store, listener.await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_on_a_cluster_fails_over_under_load() {
    let cluster = Mutex::new(Cluster::start_with(Engine::Redis, 1, &[]));
    let url = cluster.lock().unwrap().url();
    let service = Service::start(connect(&url).await).await;
    let copied = || {
        let cluster = cluster.lock().unwrap();
        cluster.nodes[..3].iter().for_each(RedisServer::wait_until_copied);
    };
    through_a_failover(Arc::new(service), copied, || {
        let mut cluster = cluster.lock().unwrap();
        cluster.nodes[1].kill();
        cluster.wait_until_served_without(1);
    })
    .await;
}
