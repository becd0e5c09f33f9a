//! What a store publishes, and how a listener resumes.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::sync::Arc;

use session_svc::store::{Inserted, Replaced, SessionStore, StoreUpdate};

use super::{Bench, fresh_name, next, received, record, said};

const LONG_MS: u64 = 60_000;

/// More events than any store keeps for resuming.
const MORE_THAN_KEPT: usize = 22_000;

async fn publish(store: &Arc<dyn SessionStore>, payload: &[u8]) {
    let one = record(&**store, LONG_MS, &[]);
    assert_eq!(store.insert(one, payload.to_vec()).await.unwrap(), Inserted::Done);
}

pub(crate) async fn writes_are_published_in_order_to_every_replica(bench: &Bench) {
    let mut here = bench.store.published(None).await.unwrap();
    let mut there = bench.other.published(None).await.unwrap();
    let one = record(&*bench.store, LONG_MS, &[]);
    bench
        .store
        .insert(one.clone(), b"created".to_vec())
        .await
        .unwrap();
    bench
        .other
        .replace(next(&one, b"2"), 1, Some(b"rolled\0".to_vec()))
        .await
        .unwrap();
    bench
        .store
        .replace(next(&next(&one, b"2"), b"3"), 2, None)
        .await
        .unwrap();
    bench.store.remove(one.name, b"ended".to_vec()).await.unwrap();
    for stream in [&mut here, &mut there] {
        for expected in [&b"created"[..], b"rolled\0", b"ended"] {
            assert_eq!(received(stream).await.0, expected);
        }
    }
}

pub(crate) async fn refused_writes_publish_nothing(bench: &Bench) {
    let one = record(&*bench.store, LONG_MS, &[]);
    bench
        .store
        .insert(one.clone(), b"created".to_vec())
        .await
        .unwrap();
    let mut stream = bench.store.published(None).await.unwrap();
    assert_eq!(
        bench.store.insert(one.clone(), b"taken".to_vec()).await.unwrap(),
        Inserted::Taken
    );
    let stale = bench
        .store
        .replace(next(&one, b"x"), 7, Some(b"stale".to_vec()))
        .await
        .unwrap();
    assert_eq!(stale, Replaced::Stale);
    let unknown = next(&record(&*bench.store, LONG_MS, &[]), b"x");
    let missing = bench
        .store
        .replace(unknown, 1, Some(b"missing".to_vec()))
        .await
        .unwrap();
    assert_eq!(missing, Replaced::Missing);
    publish(&bench.store, b"the next one").await;
    assert_eq!(received(&mut stream).await.0, b"the next one");
}

pub(crate) async fn a_stream_resumes_after_a_position_without_loss(bench: &Bench) {
    let mut stream = bench.store.published(None).await.unwrap();
    for number in 0..5_u8 {
        publish(&bench.store, &[number]).await;
    }
    let mut positions = Vec::new();
    for number in 0..5_u8 {
        let (payload, position) = received(&mut stream).await;
        assert_eq!(payload, [number]);
        positions.push(position);
    }
    drop(stream);
    publish(&bench.other, &[5]).await;
    let mut resumed = bench.other.published(Some(positions[1].clone())).await.unwrap();
    for number in 2..6_u8 {
        assert_eq!(received(&mut resumed).await.0, [number]);
    }
    publish(&bench.store, &[6]).await;
    assert_eq!(received(&mut resumed).await.0, [6]);
}

pub(crate) async fn a_foreign_position_is_told_as_missed(bench: &Bench) {
    publish(&bench.store, b"before").await;
    for position in [
        "",
        "-",
        "nonsense",
        "9-9",
        "18446744073709551615-18446744073709551615",
        &fresh_name().to_string(),
    ] {
        let mut stream = bench.store.published(Some(position.to_owned())).await.unwrap();
        assert_eq!(said(&mut stream).await, StoreUpdate::Missed, "{position:?}");
        publish(&bench.store, b"after").await;
        assert_eq!(received(&mut stream).await.0, b"after", "{position:?}");
    }
}

pub(crate) async fn a_position_that_was_dropped_is_told_as_missed(bench: &Bench) {
    let mut stream = bench.store.published(None).await.unwrap();
    publish(&bench.store, b"old").await;
    let (_, position) = received(&mut stream).await;
    let writers = (0..64).map(|_| {
        let store = Arc::clone(&bench.store);
        tokio::spawn(async move {
            for _ in 0..MORE_THAN_KEPT / 64 {
                publish(&store, b"noise").await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let mut resumed = bench.store.published(Some(position)).await.unwrap();
    assert_eq!(said(&mut resumed).await, StoreUpdate::Missed);
    // The listener that slept through all of it is told as well, sooner or later.
    while said(&mut stream).await != StoreUpdate::Missed {}
    publish(&bench.store, b"last").await;
    for stream in [&mut resumed, &mut stream] {
        while received(stream).await.0 != b"last" {}
    }
}

pub(crate) async fn a_stream_tells_only_what_comes_after_it_began(bench: &Bench) {
    publish(&bench.store, b"before").await;
    let mut stream = bench.store.published(None).await.unwrap();
    publish(&bench.store, b"after").await;
    assert_eq!(received(&mut stream).await.0, b"after");
}

pub(crate) async fn the_newest_position_is_one_to_go_on_from(bench: &Bench) {
    // Also in a store nothing was ever written to.
    let first = bench.store.position().await.unwrap();
    publish(&bench.store, b"one").await;
    let second = bench.other.position().await.unwrap();
    publish(&bench.other, b"two").await;
    let mut stream = bench.store.published(Some(first)).await.unwrap();
    assert_eq!(received(&mut stream).await.0, b"one");
    assert_eq!(received(&mut stream).await.0, b"two");
    let mut stream = bench.other.published(Some(second)).await.unwrap();
    assert_eq!(received(&mut stream).await.0, b"two");
}
