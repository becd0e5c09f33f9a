//! The Redis store behind Sentinels: the contract, and a master that dies.

use std::sync::Arc;

use chassis::clock::SystemClock;
use session_svc::store::url::StoreSettings;
use session_svc::store::{Inserted, KeyValueStore, Replaced, open as open_store};

use crate::contract::{Bench, Pass, eventually, named, next, received, record};
use crate::lists::listed;
use crate::redis_server::Engine;
use crate::sentinels::Sentinels;

async fn connect(url: &str) -> Arc<dyn KeyValueStore> {
    let settings: StoreSettings = url.parse().unwrap();
    open_store(&settings, Arc::new(SystemClock)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_behind_sentinels() {
    let servers = Sentinels::start(Engine::Redis);
    let (store, other) = (connect(&servers.url()).await, connect(&servers.url()).await);
    let timed = Arc::clone(&store);
    let pass: Pass = Box::new(move |ms| {
        let store = Arc::clone(&timed);
        Box::pin(async move {
            let until = store.now_ms() + ms + 20;
            eventually("time to pass", || async { store.now_ms() >= until }).await;
        })
    });
    let bench = &Bench {
        store,
        other,
        pass,
        _keeps: Box::new(()),
    };
    crate::cases!(run_all, bench,);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_survive_the_masters_death_and_only_errors_that_pass_are_seen() {
    let mut servers = Sentinels::start(Engine::Redis);
    let store = connect(&servers.url()).await;
    let mut before = Vec::new();
    for _ in 0..50 {
        let one = record(&*store, 600_000, &[named("subject")]);
        assert_eq!(
            store.insert(one.clone(), b"created".to_vec()).await.unwrap(),
            Inserted::Done
        );
        before.push(one);
    }
    servers.servers[0].wait_until_copied();

    servers.servers[0].kill();
    servers.wait_for_second();
    eventually("the store to work on the new master", || async {
        store.check().await.is_ok()
    })
    .await;
    for one in &before {
        eventually("a load from the new master", || async {
            store
                .load(one.name)
                .await
                .is_ok_and(|found| found.as_ref() == Some(one))
        })
        .await;
    }
    assert_eq!(
        listed(&*store, named("subject"), 100).await.unwrap().len(),
        before.len()
    );
    let changed = store
        .replace(next(&before[0], b"after"), 1, Some(b"rolled".to_vec()))
        .await;
    assert_eq!(changed.unwrap(), Replaced::Done);

    // Listeners have resumed as well.
    eventually("events to be heard again", || async {
        store.published(None).await.is_ok()
    })
    .await;
    let mut stream = store.published(None).await.unwrap();
    store.remove(before[1].name, b"ended".to_vec()).await.unwrap();
    assert_eq!(received(&mut stream).await.0, b"ended");

    // The old master returns as a replica; no client writes to it.
    servers.servers[0].start_again();
    assert_eq!(store.load(before[1].name).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sentinel_that_is_away_does_not_matter() {
    let mut servers = Sentinels::start(Engine::Redis);
    servers.sentinels[0].kill();
    let store = connect(&servers.url()).await;
    store.check().await.unwrap();
    let one = record(&*store, 60_000, &[]);
    assert_eq!(store.insert(one, Vec::new()).await.unwrap(), Inserted::Done);
}
