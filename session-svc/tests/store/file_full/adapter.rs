//! The adapter alone.

use std::sync::Arc;
use std::time::Duration;

use chassis::clock::ManualClock;
use session_svc::store::embedded::EmbeddedStore;
use session_svc::store::{Inserted, KeyValueStore as _, Record, Replaced, StoreError};

use super::disk::Disk;
use crate::contract::{eventually, next, numbered, record};

const SOME_TIME_MS: u64 = 1_800_000_000_000;

/// How many sessions there are when the disk fills.
const SESSIONS: usize = 200;

fn opened(disk: &Disk) -> EmbeddedStore {
    EmbeddedStore::open(&disk.store(), Arc::new(ManualClock::new(SOME_TIME_MS))).unwrap()
}

/// Waits until there is room again, and begins a session.
async fn sessions_begin_again(store: &EmbeddedStore) {
    eventually("the store to have room again", || async {
        store.check().await.is_ok()
    })
    .await;
    assert_eq!(
        store.insert(session(store, 0), Vec::new()).await.unwrap(),
        Inserted::Done
    );
}

fn session(store: &EmbeddedStore, number: usize) -> Record {
    Record {
        payload: vec![b'x'; 6_000 + number % 7 * 1_000],
        ..record(store, 600_000, &[numbered(number as u64 % 50)])
    }
}

fn mark(store: &EmbeddedStore) -> Record {
    record(store, 120_000, &[])
}

async fn filled_up(store: &EmbeddedStore, disk: &Disk) -> Vec<Record> {
    let mut kept = Vec::new();
    for number in 0..SESSIONS {
        let session = session(store, number);
        assert_eq!(
            store.insert(session.clone(), vec![1; 200]).await.unwrap(),
            Inserted::Done
        );
        kept.push(session);
    }
    disk.fill();
    kept.extend(until_full(store).await);
    kept
}

/// The records stored before the disk was full.
async fn until_full(store: &EmbeddedStore) -> Vec<Record> {
    let mut kept = Vec::new();
    for number in SESSIONS.. {
        assert!(number < 100_000, "the disk does not fill");
        let session = session(store, number);
        match store.insert(session.clone(), vec![1; 200]).await {
            Ok(_) => kept.push(session),
            Err(StoreError::Full) => return kept,
            Err(error) => panic!("{error:?}"),
        }
    }
    unreachable!()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_can_be_signed_out_while_the_disk_is_full() {
    let disk = Disk::of_mib(32);
    let store = opened(&disk);
    let kept = filled_up(&store, &disk).await;
    for session in &kept {
        assert_eq!(store.load(session.name).await.unwrap().as_ref(), Some(session));
    }
    // In the order of an ending: the session, then its mark.
    let mut refused = 0;
    for session in &kept {
        match store.remove(session.name, vec![2; 200]).await {
            Ok(Some(_)) => {}
            other => {
                refused += 1;
                drop(other);
            }
        }
        store.insert(mark(&store), Vec::new()).await.unwrap();
    }
    assert_eq!(refused, 0, "of {} sessions", kept.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_are_signed_out_at_once_while_the_disk_is_full() {
    let disk = Disk::of_mib(32);
    let store = Arc::new(opened(&disk));
    let kept = filled_up(&store, &disk).await;
    let endings = kept.iter().map(|session| {
        let (store, name) = (Arc::clone(&store), session.name);
        tokio::spawn(async move { store.remove(name, vec![2; 200]).await })
    });
    for ending in endings.collect::<Vec<_>>() {
        assert!(ending.await.unwrap().unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_rewritten_while_the_disk_is_full_and_none_is_lost() {
    let disk = Disk::of_mib(32);
    let store = opened(&disk);
    let kept = filled_up(&store, &disk).await;
    for session in kept.iter().take(100) {
        let lease = store
            .acquire_lease(session.name, "holder", Duration::from_secs(10))
            .await
            .unwrap()
            .expect("an outcome can be kept");
        let refreshed = next(session, &vec![b'y'; session.payload.len() + 40]);
        let replaced = store.replace(refreshed.clone(), 1, Some(vec![3; 200])).await;
        assert_eq!(replaced.unwrap(), Replaced::Done);
        assert_eq!(store.load(session.name).await.unwrap(), Some(refreshed));
        store.release_lease(&lease).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lease_is_given_once_an_outcome_cannot_be_kept() {
    let disk = Disk::of_mib(32);
    let store = opened(&disk);
    let kept = filled_up(&store, &disk).await;
    // Application data in sessions grows until the store rejects it.
    let mut grown = 0;
    for session in &kept {
        match store.replace(next(session, &[b'z'; 120_000]), 1, None).await {
            Ok(_) => grown += 1,
            Err(StoreError::Full) => break,
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(grown < kept.len(), "the room for rewriting is bounded");
    let lease = store
        .acquire_lease(numbered(0), "holder", Duration::from_secs(10))
        .await;
    assert!(matches!(lease, Err(StoreError::Full)), "{lease:?}");
    for session in &kept {
        assert!(store.remove(session.name, vec![2; 200]).await.unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_opens_on_a_full_disk_and_writes_again_as_soon_as_there_is_room() {
    let disk = Disk::of_mib(32);
    let store = opened(&disk);
    let kept = filled_up(&store, &disk).await;
    drop(store);
    // Other files take the space freed by closing.
    disk.fill();
    let store = opened(&disk);
    for session in &kept {
        assert_eq!(store.load(session.name).await.unwrap().as_ref(), Some(session));
    }
    // The store now uses its allocated free space.
    until_full(&store).await;
    assert!(matches!(store.check().await, Err(StoreError::Full)));
    for session in kept.iter().take(100) {
        assert!(store.remove(session.name, vec![2; 200]).await.unwrap().is_some());
    }
    disk.empty();
    sessions_begin_again(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endings_go_on_when_another_program_takes_the_room_that_was_given_up() {
    let disk = Disk::of_mib(32);
    let store = opened(&disk);
    let kept = filled_up(&store, &disk).await;
    disk.fill();
    for session in &kept {
        assert!(store.remove(session.name, vec![2; 200]).await.unwrap().is_some());
    }
    assert!(matches!(store.check().await, Err(StoreError::Full)));
    disk.empty();
    sessions_begin_again(&store).await;
}
