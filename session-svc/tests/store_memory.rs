//! The memory store _keeps the contract, and its own bounds.

mod contract;

use std::sync::Arc;
use std::time::Duration;

use chassis::clock::ManualClock;
use contract::{Bench, fresh_name, record};
use session_svc::store::memory::{DEFAULT_CAPACITY, MemoryStore};
use session_svc::store::{Holdings, Inserted, SessionStore, StoreError};

const SOME_TIME_MS: u64 = 1_800_000_000_000;

fn memory(capacity: usize) -> (MemoryStore, ManualClock) {
    let clock = ManualClock::new(SOME_TIME_MS);
    (MemoryStore::new(Arc::new(clock.clone()), capacity), clock)
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

suite!(memory, open());

#[tokio::test]
async fn a_full_store_says_so_until_something_expires() {
    let (store, clock) = memory(3);
    for _ in 0..3 {
        let one = record(&store, 1_000, &["subject"]);
        assert_eq!(store.insert(one, Vec::new()).await.unwrap(), Inserted::Done);
    }
    let one_more = record(&store, 5_000, &["subject"]);
    let refused = store.insert(one_more.clone(), Vec::new()).await;
    assert!(matches!(refused, Err(StoreError::Full)), "{refused:?}");
    clock.advance_ms(1_000);
    assert_eq!(store.insert(one_more, Vec::new()).await.unwrap(), Inserted::Done);
    assert_eq!(store.holdings().records, 1);
}

#[tokio::test]
async fn fifty_thousand_created_and_expired_leave_nothing_behind() {
    let (store, clock) = memory(DEFAULT_CAPACITY);
    for number in 0..50_000_u64 {
        let subject = format!("subject {}", number % 7_000);
        let one = record(&store, 1_000 + number % 900, &[&subject, &fresh_name()]);
        store.insert(one, Vec::new()).await.unwrap();
        store
            .remember(&fresh_name(), b"x", Duration::from_millis(1_000))
            .await
            .unwrap();
    }
    clock.advance_ms(2_000);
    store.sweep();
    assert_eq!(
        store.holdings(),
        Holdings {
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
            .insert(record(&store, 1_000, &["subject"]), Vec::new())
            .await
            .unwrap();
        clock.advance_ms(500);
    }
    assert!(store.holdings().records <= 4, "{:?}", store.holdings());
}
