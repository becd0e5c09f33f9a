//! The events of a cluster: spread over its nodes, received by every replica, and moving between nodes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chassis::clock::SystemClock;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use session_svc::store::url::StoreSettings;
use session_svc::store::{KeyValueStore, Record, StoreError, StoreUpdate, open as open_store};

use crate::cluster::Cluster;
use crate::contract::{next, received, record, said};
use crate::redis_server::{Engine, RedisServer, record_key};

type Hearing = BoxStream<'static, Result<StoreUpdate, StoreError>>;

/// The prefix of stream names.
const STREAMS: &str = "vestibule:e";

async fn connect(url: &str) -> Arc<dyn KeyValueStore> {
    let settings: StoreSettings = url.parse().unwrap();
    open_store(&settings, Arc::new(SystemClock)).await.unwrap()
}

async fn publish(store: &Arc<dyn KeyValueStore>, payload: &[u8]) -> Record {
    let one = record(&**store, 600_000, &[]);
    store.insert(one.clone(), payload.to_vec()).await.unwrap();
    one
}

/// The lines of an answer that name streams.
fn streams(node: &RedisServer) -> Vec<String> {
    let names = node.ask(&format!("KEYS {STREAMS}*"));
    let names = names.lines().filter(|line| line.starts_with(STREAMS));
    names.map(str::to_owned).collect()
}

fn length(node: &RedisServer, stream: &str) -> usize {
    let answer = node.ask(&format!("XLEN {stream}"));
    answer.trim().trim_start_matches(':').parse().unwrap()
}

/// The events after a position, once they can be read.
async fn heard_again(store: &Arc<dyn KeyValueStore>, position: &str) -> Hearing {
    loop {
        match store.published(Some(position.to_owned())).await {
            Ok(stream) => return stream,
            Err(StoreError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The next event, whether or not some were missed before.
async fn next_event(stream: &mut Hearing) -> Vec<u8> {
    loop {
        if let StoreUpdate::Event { payload, .. } = said(stream).await {
            return payload;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_publishes_the_events_of_its_own_records_and_everybody_hears_all() {
    let cluster = Cluster::start(Engine::Redis);
    let (store, other) = (connect(&cluster.url()).await, connect(&cluster.url()).await);
    let mut stream = other.published(None).await.unwrap();
    let mut records = [0; 3];
    for number in 0..150_u8 {
        let one = publish(&store, &[number]).await;
        records[cluster.owner(&record_key(one.name))] += 1;
    }
    let mut heard = BTreeSet::new();
    for _ in 0..150 {
        heard.insert(received(&mut stream).await.0);
    }
    assert_eq!(heard.len(), 150);
    for (node, records) in cluster.nodes.iter().zip(records) {
        let streams = streams(node);
        // Each stream holds the events and the mark of its listeners.
        let published: usize = streams.iter().map(|stream| length(node, stream) - 1).sum();
        assert_eq!(published, records, "{streams:?}");
        assert!(streams.len() >= 10, "{streams:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_answer_is_lost_is_heard_or_told_as_missed() {
    let cluster = Cluster::start(Engine::Redis);
    let store = connect(&cluster.url()).await;
    let one = publish(&store, b"created").await;
    let position = store.position().await.unwrap();
    let mut stream = store.published(Some(position.clone())).await.unwrap();
    let owner = cluster.owner(&record_key(one.name));
    cluster.nodes[owner].signal("STOP");
    let lost = store.replace(next(&one, b"x"), 1, Some(b"rolled".to_vec())).await;
    // The listener sees that its stream is cut.
    while stream.next().await.unwrap().is_ok() {}
    cluster.nodes[owner].signal("CONT");
    assert!(matches!(lost, Err(StoreError::Unavailable(_))), "{lost:?}");
    let mut resumed = heard_again(&store, &position).await;
    match said(&mut resumed).await {
        StoreUpdate::Missed => {}
        StoreUpdate::Event { payload, .. } => assert_eq!(payload, b"rolled"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_moves_to_another_node_is_followed_there() {
    let cluster = Cluster::start(Engine::Redis);
    let store = connect(&cluster.url()).await;
    let mut stream = store.published(None).await.unwrap();
    let one = publish(&store, b"before").await;
    let (_, position) = received(&mut stream).await;
    let from = cluster.owner(&record_key(one.name));
    let has_event = |name: &String| length(&cluster.nodes[from], name) > 1;
    let name = streams(&cluster.nodes[from]).into_iter().find(has_event).unwrap();
    move_slot(&cluster, &name, from, (from + 1) % 3);
    // The session's record did not move: the event goes into another stream.
    let read = store.replace(next(&one, b"x"), 1, Some(b"after".to_vec())).await;
    read.unwrap();
    for number in 0..50_u8 {
        publish(&store, &[number]).await;
    }
    let mut resumed = heard_again(&store, &position).await;
    let mut heard = BTreeSet::new();
    while heard.len() < 51 {
        heard.insert(received(&mut resumed).await.0);
    }
    assert!(heard.contains(&b"after"[..]));
    publish(&store, b"last").await;
    assert_eq!(next_event(&mut resumed).await, b"last");
}

/// Moves the slot of a key that is alone in it, as `redis-cli --cluster reshard` does.
fn move_slot(cluster: &Cluster, key: &str, from: usize, to: usize) {
    let id = |node: usize| {
        let answer = cluster.nodes[node].ask("CLUSTER MYID");
        answer.lines().nth(1).unwrap().to_owned()
    };
    let slot = cluster.nodes[from].ask(&format!("CLUSTER KEYSLOT {key}"));
    let slot = slot.trim().trim_start_matches(':').to_owned();
    let said = |node: usize, command: String| {
        let answer = cluster.nodes[node].ask(&command);
        assert!(answer.starts_with('+'), "{command}: {answer}");
    };
    said(to, format!("CLUSTER SETSLOT {slot} IMPORTING {}", id(from)));
    said(from, format!("CLUSTER SETSLOT {slot} MIGRATING {}", id(to)));
    let port = cluster.nodes[to].port;
    said(from, format!("MIGRATE 127.0.0.1 {port} {key} 0 2000"));
    for node in [to, from, 3 - to - from] {
        said(node, format!("CLUSTER SETSLOT {slot} NODE {}", id(to)));
    }
}
