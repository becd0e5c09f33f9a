//! Leases: exclusive access for one holder.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failure here fails the test"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use session_svc::store::Name;

use super::{Bench, SHORT_MS, WAIT_MAX, fresh_name};

const SHORT: Duration = Duration::from_millis(SHORT_MS);
const LONG: Duration = Duration::from_secs(60);

fn fresh_lease() -> Name {
    fresh_name()
}

pub(crate) async fn a_lease_is_held_by_one(bench: &Bench) {
    let name = fresh_lease();
    let lease = bench
        .store
        .acquire_lease(name, "one", LONG)
        .await
        .unwrap()
        .expect("a free lease");
    assert_eq!((lease.name, lease.holder.as_str()), (name, "one"));
    assert_eq!(bench.other.acquire_lease(name, "two", LONG).await.unwrap(), None);
    assert!(
        bench
            .store
            .acquire_lease(fresh_lease(), "two", LONG)
            .await
            .unwrap()
            .is_some()
    );
}

/// A requester that gave up and asks again gets the lease; its first request has no effect.
pub(crate) async fn a_lease_is_taken_again_by_its_holder_alone(bench: &Bench) {
    let name = fresh_lease();
    let take = async |holder| bench.store.acquire_lease(name, holder, LONG).await.unwrap();
    let first = take("one").await.expect("a free lease");
    let second = take("one").await.expect("the holder's own lease");
    assert!(second.serial > first.serial);
    for stranger in ["two", "on", "onee", "ne", ""] {
        assert_eq!(take(stranger).await, None, "{stranger:?}");
    }
    bench.store.release_lease(&first).await.unwrap();
    assert_eq!(take("two").await, None, "given back is what was taken last");
    // The holder's own late request took the lease once more.
    take("one").await.expect("the holder's own lease");
    assert!(bench.store.renew_lease(&second, LONG).await.unwrap());
    let last = take("one").await.unwrap();
    bench.store.release_lease(&last).await.unwrap();
    assert!(!bench.store.renew_lease(&second, LONG).await.unwrap());
    assert!(take("two").await.is_some());
}

pub(crate) async fn a_lease_given_back_is_free_at_once(bench: &Bench) {
    let name = fresh_lease();
    let lease = bench
        .store
        .acquire_lease(name, "one", LONG)
        .await
        .unwrap()
        .unwrap();
    bench.store.release_lease(&lease).await.unwrap();
    assert!(!bench.store.renew_lease(&lease, LONG).await.unwrap());
    let second = bench
        .other
        .acquire_lease(name, "two", LONG)
        .await
        .unwrap()
        .expect("a free lease");
    bench.store.release_lease(&lease).await.unwrap();
    assert!(
        bench.other.renew_lease(&second, LONG).await.unwrap(),
        "a late release takes nothing from another"
    );
}

pub(crate) async fn a_renewed_lease_is_held_longer(bench: &Bench) {
    let name = fresh_lease();
    let lease = bench
        .store
        .acquire_lease(name, "one", SHORT)
        .await
        .unwrap()
        .unwrap();
    assert!(bench.store.renew_lease(&lease, LONG).await.unwrap());
    (bench.pass)(SHORT_MS * 2).await;
    assert_eq!(bench.other.acquire_lease(name, "two", LONG).await.unwrap(), None);
    assert!(bench.store.renew_lease(&lease, SHORT).await.unwrap());
}

pub(crate) async fn a_lease_that_ran_out_is_taken_over_and_the_old_holder_is_refused(bench: &Bench) {
    let name = fresh_lease();
    let old = bench
        .store
        .acquire_lease(name, "one", SHORT)
        .await
        .unwrap()
        .unwrap();
    (bench.pass)(SHORT_MS).await;
    let started = Instant::now();
    let new = loop {
        if let Some(lease) = bench.other.acquire_lease(name, "two", LONG).await.unwrap() {
            break lease;
        }
        assert!(started.elapsed() < WAIT_MAX, "the lease never runs out");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert!(new.serial > old.serial);
    assert!(!bench.store.renew_lease(&old, LONG).await.unwrap());
    bench.store.release_lease(&old).await.unwrap();
    assert!(bench.other.renew_lease(&new, LONG).await.unwrap());
}

pub(crate) async fn a_lease_and_a_value_may_last_no_time_or_for_ever(bench: &Bench) {
    let (short, long) = (fresh_name(), fresh_name());
    for (name, ttl) in [(short, Duration::ZERO), (long, Duration::MAX)] {
        let lease = bench.store.acquire_lease(name, "one", ttl).await.unwrap();
        assert!(lease.is_some(), "{ttl:?}");
        let known = bench.store.remember(name, b"one", ttl).await.unwrap();
        assert_eq!(known, None, "{ttl:?}");
    }
    assert_eq!(bench.other.acquire_lease(long, "two", LONG).await.unwrap(), None);
    let known = bench.other.remember(long, b"two", LONG).await.unwrap();
    assert_eq!(known.as_deref(), Some(&b"one"[..]));
}

pub(crate) async fn serials_grow_with_every_lease(bench: &Bench) {
    let name = fresh_lease();
    let mut last = 0;
    for round in 0..20 {
        let store = if round % 2 == 0 {
            &bench.store
        } else {
            &bench.other
        };
        let lease = store.acquire_lease(name, "one", LONG).await.unwrap().unwrap();
        assert!(lease.serial > last, "{} after {last}", lease.serial);
        last = lease.serial;
        store.release_lease(&lease).await.unwrap();
    }
}

pub(crate) async fn of_concurrent_takers_one_gets_the_lease(bench: &Bench) {
    let name = fresh_lease();
    let takers = (0..24).map(|number| {
        let store = Arc::clone(if number % 2 == 0 {
            &bench.store
        } else {
            &bench.other
        });
        tokio::spawn(async move {
            store
                .acquire_lease(name, &format!("holder {number}"), LONG)
                .await
                .unwrap()
        })
    });
    let mut granted = 0;
    for taker in takers.collect::<Vec<_>>() {
        granted += usize::from(taker.await.unwrap().is_some());
    }
    assert_eq!(granted, 1);
}
