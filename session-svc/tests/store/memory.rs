//! The memory store keeps the contract and its own limits.

use std::sync::Arc;
use std::time::Duration;

use chassis::clock::ManualClock;
use session_svc::store::embedded::{DEFAULT_CAPACITY, EmbeddedStore};
use session_svc::store::{Inserted, KeyValueStore, Record, StoreCounts, StoreError, StoreUpdate};

use crate::contract::{Bench, fresh_name, named, numbered, record, said};

const SOME_TIME_MS: u64 = 1_800_000_000_000;

fn memory(capacity: usize) -> (EmbeddedStore, ManualClock) {
    let clock = ManualClock::new(SOME_TIME_MS);
    (
        EmbeddedStore::in_memory(Arc::new(clock.clone()), capacity).unwrap(),
        clock,
    )
}

async fn open() -> Bench {
    let (store, clock) = memory(DEFAULT_CAPACITY);
    let pass = move |ms| -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        clock.advance_ms(ms);
        Box::pin(async {})
    };
    Bench {
        other: Arc::new(store.clone()),
        store: Arc::new(store),
        pass: Box::new(pass),
        _keeps: Box::new(()),
    }
}

crate::suite!(open());

#[tokio::test]
async fn a_full_store_says_so_until_something_expires() {
    let (store, clock) = memory(3);
    let mut first = None;
    for _ in 0..3 {
        let one = record(&store, 1_000, &[named("subject")]);
        first.get_or_insert(one.name);
        assert_eq!(store.insert(one, Vec::new()).await.unwrap(), Inserted::Done);
    }
    let one_more = record(&store, 5_000, &[named("subject")]);
    let refused = store.insert(one_more.clone(), Vec::new()).await;
    assert!(matches!(refused, Err(StoreError::Full)), "{refused:?}");
    let barrier = first.unwrap();
    let known = record(&store, 1_000, &[named("subject")]);
    let known = Record {
        name: barrier,
        ..known
    };
    assert_eq!(store.insert(known, Vec::new()).await.unwrap(), Inserted::Taken);
    let barred = store
        .insert_unless(Some(barrier), one_more.clone(), Vec::new())
        .await;
    assert_eq!(barred.unwrap(), Inserted::Barred);
    clock.advance_ms(1_000);
    assert_eq!(store.insert(one_more, Vec::new()).await.unwrap(), Inserted::Done);
    assert_eq!(store.holdings().unwrap().records, 1);
}

#[tokio::test]
async fn remembered_values_and_leases_are_bounded_too() {
    let (store, clock) = memory(3);
    let ttl = Duration::from_millis(1_000);
    let remember = async |name| store.remember(name, b"x", ttl).await;
    let acquire = async |name| store.acquire_lease(name, "one", ttl).await;
    let mut known = None;
    for _ in 0..3 {
        let name = fresh_name();
        known = Some(name);
        assert_eq!(remember(name).await.unwrap(), None);
        assert!(acquire(name).await.unwrap().is_some());
    }
    let name = fresh_name();
    let remembered = remember(name).await;
    assert!(matches!(remembered, Err(StoreError::Full)), "{remembered:?}");
    assert_eq!(
        remember(known.unwrap()).await.unwrap().as_deref(),
        Some(&b"x"[..])
    );
    let held = acquire(name).await;
    assert!(matches!(held, Err(StoreError::Full)), "{held:?}");
    clock.advance_ms(1_000);
    assert_eq!(remember(name).await.unwrap(), None);
    assert!(acquire(name).await.unwrap().is_some());
}

#[tokio::test]
async fn a_position_yet_to_come_is_told_as_missed() {
    let (store, _clock) = memory(3);
    let now = store.position().await.unwrap();
    let (origin, _) = now.rsplit_once('-').unwrap();
    let mut stream = store.published(Some(format!("{origin}-1"))).await.unwrap();
    for number in 0..2 {
        let one = record(&store, 1_000, &[]);
        store.insert(one, vec![number]).await.unwrap();
    }
    assert_eq!(said(&mut stream).await, StoreUpdate::Missed);
}

#[tokio::test]
async fn five_thousand_created_and_expired_leave_nothing_behind() {
    let (store, clock) = memory(DEFAULT_CAPACITY);
    for number in 0..5_000_u64 {
        let subject = numbered(number % 7_000);
        let one = record(&store, 1_000 + number % 900, &[subject, fresh_name()]);
        store.insert(one, Vec::new()).await.unwrap();
        store
            .remember(fresh_name(), b"x", Duration::from_millis(1_000))
            .await
            .unwrap();
    }
    clock.advance_ms(2_000);
    store.sweep().await.unwrap();
    assert_eq!(
        store.holdings().unwrap(),
        StoreCounts {
            records: 0,
            index_entries: 0,
            remembered: 0
        }
    );
}

#[tokio::test]
async fn writes_clear_away_what_expired() {
    let (store, clock) = memory(DEFAULT_CAPACITY);
    for _ in 0..100 {
        store
            .insert(record(&store, 1_000, &[named("subject")]), Vec::new())
            .await
            .unwrap();
        clock.advance_ms(500);
    }
    assert!(
        store.holdings().unwrap().records <= 4,
        "{:?}",
        store.holdings().unwrap()
    );
}
