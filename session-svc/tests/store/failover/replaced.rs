//! A master that an operator replaces under load.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use session_svc::store::{KeyValueStore, Name, Record};

use super::{connect, eventually};
use crate::contract::{named, numbered};
use crate::sentinels::Sentinels;

/// The longest time without a successful write.
const REFUSED_MAX: Duration = Duration::from_secs(2);

/// Between two writes of a worker.
const PAUSE: Duration = Duration::from_millis(5);

/// The answers one worker received.
#[derive(Default)]
struct Observed {
    /// Sessions with an acknowledged creation, and whether their ending was acknowledged.
    sessions: HashMap<Name, bool>,
    /// The longest time without a successful write.
    refused: Duration,
}

/// Creates sessions and ends every other one until stopped.
async fn work(store: Arc<dyn KeyValueStore>, worker: u64, over: Arc<AtomicBool>) -> Observed {
    let mut observed = Observed::default();
    let mut last = Instant::now();
    for number in 0_u64.. {
        if over.load(Ordering::SeqCst) {
            break;
        }
        let now_ms = store.now_ms();
        let name = Name::from_bytes((u128::from(worker) << 64 | u128::from(number)).to_be_bytes());
        let one = Record {
            name,
            version: 1,
            expires_at_ms: now_ms + 600_000,
            created_at_ms: now_ms,
            indexes: vec![named("subject")],
            payload: vec![7; 700],
        };
        if store.insert(one, b"created".to_vec()).await.is_ok() {
            observed.refused = observed.refused.max(last.elapsed());
            last = Instant::now();
            if number.is_multiple_of(2) {
                observed.sessions.insert(name, false);
            } else if store.remove(name, b"ended".to_vec()).await.is_ok() {
                observed.sessions.insert(name, true);
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    observed.refused = observed.refused.max(last.elapsed());
    observed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planned_failover_undoes_nothing_and_refuses_for_two_seconds_at_most() {
    let mut settings = vec!["--min-replicas-to-write", "1", "--min-replicas-max-lag", "3"];
    // The other replica copies everything at once, in case it is ahead of the promoted one.
    settings.extend(["--repl-diskless-sync-delay", "0"]);
    let servers = Sentinels::start_apart(2, &settings);
    let stores = [connect(&servers.url()).await, connect(&servers.url()).await];
    eventually("a write", async || {
        stores[0].remember(numbered(0), b"x", PAUSE).await.is_ok()
    })
    .await;
    let over = Arc::new(AtomicBool::new(false));
    let workers = (0..4).map(|worker| {
        let store = Arc::clone(&stores[worker as usize % 2]);
        tokio::spawn(work(store, worker, Arc::clone(&over)))
    });
    let workers: Vec<_> = workers.collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    servers.fail_over();
    tokio::task::block_in_place(|| servers.wait_for_another(0));
    tokio::time::sleep(3 * REFUSED_MAX).await;
    over.store(true, Ordering::SeqCst);
    let mut refused = Duration::ZERO;
    let (mut lost, mut undone, mut all) = (0, 0, 0);
    for worker in workers {
        let observed = worker.await.unwrap();
        refused = refused.max(observed.refused);
        for (name, ended) in observed.sessions {
            all += 1;
            let found = stores[0].load(name).await.unwrap().is_some();
            lost += u32::from(!found && !ended);
            undone += u32::from(found && ended);
        }
    }
    println!("refused for {refused:?}, of {all}: {lost} lost, {undone} endings undone");
    assert_eq!((lost, undone), (0, 0), "of {all}");
    assert!(refused < REFUSED_MAX, "{refused:?}");
}
