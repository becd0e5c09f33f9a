//! The Redis store on a cluster: the contract, and a lost node.

use std::sync::Arc;
use std::time::Duration;

use chassis::clock::SystemClock;
use session_svc::store::url::StoreSettings;
use session_svc::store::{Inserted, KeyValueStore, Record, StoreError, open as open_store};

use crate::cluster::Cluster;
use crate::contract::{Bench, Pass, eventually, fresh_name, named, numbered, record};
use crate::lists::listed;
use crate::redis_server::{Engine, RedisServer, record_key};

async fn connect(url: &str) -> Arc<dyn KeyValueStore> {
    let settings: StoreSettings = url.parse().unwrap();
    open_store(&settings, Arc::new(SystemClock)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_on_a_cluster() {
    let cluster = Cluster::start(Engine::Redis);
    let url = &cluster.url();
    let (store, other) = (connect(url).await, connect(url).await);
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
async fn a_thousand_created_and_expired_leave_no_key_but_the_events() {
    let cluster = Cluster::start(Engine::Redis);
    let store = connect(&cluster.url()).await;
    // 100 at once: with more, a call would wait longer for its turn than it may take.
    let turns = Arc::new(tokio::sync::Semaphore::new(100));
    let writers = (0..1_000_u64).map(|number| {
        let (store, turns) = (Arc::clone(&store), Arc::clone(&turns));
        tokio::spawn(async move {
            let _turn = turns.acquire().await.unwrap();
            let one = record(&*store, 300 + number % 300, &[numbered(number % 7), fresh_name()]);
            store.insert(one, Vec::new()).await.unwrap();
            store
                .remember(fresh_name(), b"x", Duration::from_millis(300))
                .await
                .unwrap();
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let keys = |pattern: &str| {
        let keys = |node: &RedisServer| node.ask(&format!("KEYS {pattern}")).matches("vestibule:").count();
        cluster.nodes.iter().map(keys).sum::<usize>()
    };
    eventually("all keys to expire", || async {
        keys("vestibule:*") == keys("vestibule:e*")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_away_takes_only_its_own_sessions_and_gives_way_when_it_is_back() {
    let mut cluster = Cluster::start(Engine::Redis);
    let store = connect(&cluster.url()).await;
    let victim = 1;
    let (mut its, mut others): (Vec<Record>, Vec<Record>) = (Vec::new(), Vec::new());
    while its.len() < 5 || others.len() < 5 {
        let one = record(&*store, 600_000, &[]);
        assert_eq!(
            store.insert(one.clone(), b"created".to_vec()).await.unwrap(),
            Inserted::Done
        );
        let owned = cluster.owner(&record_key(one.name)) == victim;
        if owned {
            its.push(one)
        } else {
            others.push(one)
        };
    }
    cluster.nodes[victim].kill();
    for one in &its {
        let read = store.load(one.name).await;
        assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    }
    for one in &others {
        eventually("the other nodes' sessions", || async {
            store
                .load(one.name)
                .await
                .is_ok_and(|found| found.as_ref() == Some(one))
        })
        .await;
    }
    // The node kept nothing on disk, so its sessions are gone; new ones are stored again.
    cluster.nodes[victim].start_again();
    cluster.wait_until_whole();
    for one in &its {
        eventually("the node to be used again", || async {
            store.load(one.name).await.is_ok()
        })
        .await;
        assert_eq!(
            store.insert(one.clone(), b"created".to_vec()).await.unwrap(),
            Inserted::Done
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_whose_record_was_never_written_is_not_listed() {
    let cluster = Cluster::start(Engine::Redis);
    let store = connect(&cluster.url()).await;
    let kept = record(&*store, 60_000, &[named("subject")]);
    store.insert(kept.clone(), Vec::new()).await.unwrap();
    // A crash between the two steps leaves an entry without a record.
    let lost = record(&*store, 60_000, &[named("subject")]);
    store.insert(lost.clone(), Vec::new()).await.unwrap();
    let key = record_key(lost.name);
    assert_eq!(
        cluster.nodes[cluster.owner(&key)].ask(&format!("DEL {key}")),
        ":1\r\n"
    );
    assert_eq!(
        listed(&*store, named("subject"), 10).await.unwrap(),
        vec![kept.clone()]
    );
    assert_eq!(listed(&*store, named("subject"), 1).await.unwrap(), vec![kept]);
}
