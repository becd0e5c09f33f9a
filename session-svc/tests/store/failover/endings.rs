//! Endings that replicas acknowledge survive a failover. Other endings return an error.

use std::sync::Arc;
use std::time::{Duration, Instant};

use session_svc::store::{KeyValueStore, Name, Record, StoreError};

use super::isolation::session;
use super::{connect, eventually};
use crate::cluster::Cluster;
use crate::redis_server::{Engine, RedisServer, record_key};
use crate::sentinels::Sentinels;

/// The longest another caller's call takes while replicas are awaited: a fraction of that wait.
const OTHERS_MAX: Duration = Duration::from_millis(250);

/// A master that needs its replicas; a stopped replica counts as good during a test.
const HELD: [&str; 4] = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "60"];

async fn begun(store: &Arc<dyn KeyValueStore>, number: u64) -> Name {
    let name = session(&**store, number).name;
    eventually("a master with replicas", async || {
        let record = Record {
            name,
            ..session(&**store, number)
        };
        store.insert(record, Vec::new()).await.is_ok()
    })
    .await;
    name
}

fn is_unavailable(confirmed: Result<bool, StoreError>) -> bool {
    matches!(confirmed, Err(StoreError::Unavailable(_)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ending_is_confirmed_once_a_replica_has_it_and_nobody_else_waits_for_that() {
    let master = RedisServer::start(&["--repl-diskless-sync-delay", "0"]);
    let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &master.port.to_string()]);
    let url = format!("redis://127.0.0.1:{}", master.port);
    let store = connect(&url).await;
    master.wait_until_copied();
    let unasked = begun(&store, 0).await;
    store.remove(unasked, Vec::new()).await.unwrap();
    assert!(!store.confirm_removed(&[unasked]).await.unwrap());
    master.ask("CONFIG SET min-replicas-to-write 1");
    master.ask("CONFIG SET min-replicas-max-lag 60");
    let (one, other) = (begun(&store, 1).await, begun(&store, 2).await);
    master.wait_until_copied();
    store.remove(one, Vec::new()).await.unwrap();
    assert!(store.confirm_removed(&[one]).await.unwrap());

    replica.signal("STOP");
    store.remove(other, Vec::new()).await.unwrap();
    let asked = store.clone();
    let confirming = tokio::spawn(async move { asked.confirm_removed(&[other]).await });
    while !confirming.is_finished() {
        let began = Instant::now();
        assert_eq!(store.load(other).await.unwrap(), None);
        begun(&store, 3).await;
        assert!(began.elapsed() < OTHERS_MAX, "others wait for the replicas");
    }
    assert!(is_unavailable(confirming.await.unwrap()));
    // The next call gets the same answer, even if it no longer knows what to end.
    assert!(is_unavailable(store.confirm_removed(&[other]).await));
    assert!(is_unavailable(store.confirm_removed(&[]).await));

    replica.signal("CONT");
    assert!(store.confirm_removed(&[other]).await.unwrap());
    assert!(store.confirm_removed(&[]).await.unwrap());

    // A full server ends sessions.
    let last = begun(&store, 4).await;
    assert_eq!(master.ask("CONFIG SET maxmemory 1"), "+OK\r\n");
    assert!(matches!(store.check().await, Err(StoreError::Full)));
    store.remove(last, Vec::new()).await.unwrap();
    assert!(store.confirm_removed(&[last]).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ending_that_a_failover_undoes_was_never_confirmed() {
    let servers = Sentinels::start_apart(2, &HELD);
    let store = connect(&servers.url()).await;
    let one = begun(&store, 1).await;
    servers.servers[0].wait_until_copied();

    servers.isolate(0);
    // Rejected, or done here and not confirmed: by then the master may know that its replica is gone.
    let removed = store.remove(one, Vec::new()).await;
    assert!(removed.is_err() || is_unavailable(store.confirm_removed(&[one]).await));
    tokio::task::block_in_place(|| servers.wait_for_another(0));
    eventually("the session on the new master", async || {
        matches!(store.load(one).await, Ok(Some(_)))
    })
    .await;
    eventually("a replica of the new master", async || {
        store.confirm_removed(&[]).await.is_ok()
    })
    .await;
    assert!(is_unavailable(store.confirm_removed(&[one]).await));

    eventually("an ending that lasts", async || {
        store.remove(one, Vec::new()).await.is_ok() && store.confirm_removed(&[one]).await.is_ok()
    })
    .await;
    assert_eq!(store.load(one).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_cluster_the_replicas_of_the_sessions_own_master_are_asked() {
    let cluster = Cluster::start_with(
        Engine::Redis,
        1,
        &[&HELD[..], &["--cluster-allow-replica-migration", "no"]].concat(),
    );
    let store = connect(&cluster.url()).await;
    // One session that the first master has, and one that it lacks.
    let (mut first, mut elsewhere) = (None, None);
    for number in 0..64 {
        let name = begun(&store, number).await;
        let at = match cluster.owner(&record_key(name)) {
            0 => &mut first,
            _ => &mut elsewhere,
        };
        at.get_or_insert(name);
    }
    let (first, elsewhere) = (first.unwrap(), elsewhere.unwrap());
    for name in [first, elsewhere] {
        store.remove(name, Vec::new()).await.unwrap();
    }
    // A master without one of these endings may still be copying to its replica.
    for names in [&[first, elsewhere][..], &[]] {
        eventually("replicas to have the endings", async || {
            matches!(store.confirm_removed(names).await, Ok(true))
        })
        .await;
    }

    let facts = cluster.nodes[0].ask("INFO replication");
    let follows = |node: &&RedisServer| facts.contains(&format!("port={},", node.port));
    let replica = cluster.nodes.iter().find(follows).unwrap();
    replica.signal("STOP");
    assert!(store.confirm_removed(&[elsewhere]).await.unwrap());
    assert!(is_unavailable(store.confirm_removed(&[first]).await));
    assert!(is_unavailable(store.confirm_removed(&[]).await));
    replica.signal("CONT");
    eventually("the replica to follow", async || {
        store.confirm_removed(&[]).await.is_ok()
    })
    .await;
}
