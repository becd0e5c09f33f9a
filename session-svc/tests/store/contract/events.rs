//! The events a store publishes, and how a listener resumes.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use session_svc::store::{Inserted, KeyValueStore, Record, Replaced, StoreError, StoreUpdate};

use super::{Bench, WAIT_MAX, fresh_name, next, received, record, said};

type Hearing = BoxStream<'static, Result<StoreUpdate, StoreError>>;

const LONG_MS: u64 = 60_000;

/// More events than any store keeps for resuming.
const MORE_THAN_KEPT: usize = 22_000;

async fn publish(store: &Arc<dyn KeyValueStore>, payload: &[u8]) {
    let one = record(&**store, LONG_MS, &[]);
    assert_eq!(store.insert(one, payload.to_vec()).await.unwrap(), Inserted::Done);
}

/// One record whose writes each publish a payload; order is guaranteed only per record.
struct Publisher<'a> {
    store: &'a Arc<dyn KeyValueStore>,
    written: Record,
}

impl<'a> Publisher<'a> {
    async fn begin(store: &'a Arc<dyn KeyValueStore>) -> Self {
        let written = record(&**store, LONG_MS, &[]);
        let inserted = store.insert(written.clone(), b"begun".to_vec()).await;
        assert_eq!(inserted.unwrap(), Inserted::Done);
        Self { store, written }
    }

    async fn publish_at(&mut self, store: &Arc<dyn KeyValueStore>, payload: &[u8]) {
        let read = self.written.version;
        self.written = next(&self.written, payload);
        let replaced = store.replace(self.written.clone(), read, Some(payload.to_vec()));
        assert_eq!(replaced.await.unwrap(), Replaced::Done);
    }

    async fn publish(&mut self, payload: &[u8]) {
        self.publish_at(self.store, payload).await;
    }
}

pub(crate) async fn writes_are_published_in_order_to_every_replica(bench: &Bench) {
    let mut here = hear(&bench.store, None).await;
    let mut there = hear(&bench.other, None).await;
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
    let mut stream = hear(&bench.store, None).await;
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
    let mut publisher = Publisher::begin(&bench.store).await;
    let mut stream = hear(&bench.store, None).await;
    for number in 0..5_u8 {
        publisher.publish(&[number]).await;
    }
    let mut positions = Vec::new();
    for number in 0..5_u8 {
        let (payload, position) = received(&mut stream).await;
        assert_eq!(payload, [number]);
        positions.push(position);
    }
    drop(stream);
    publisher.publish_at(&bench.other, &[5]).await;
    let mut resumed = hear(&bench.other, Some(&positions[1])).await;
    for number in 2..6_u8 {
        assert_eq!(received(&mut resumed).await.0, [number]);
    }
    publisher.publish(&[6]).await;
    assert_eq!(received(&mut resumed).await.0, [6]);
}

pub(crate) async fn of_many_records_every_event_is_heard_from_a_position_on(bench: &Bench) {
    let position = bench.store.position().await.unwrap();
    let numbers = 0..100_u8;
    for number in numbers.clone() {
        publish(&bench.store, &[number]).await;
    }
    let mut stream = hear(&bench.other, Some(&position)).await;
    let (mut heard, mut half) = (Vec::new(), None);
    for _ in numbers.clone() {
        let (payload, position) = received(&mut stream).await;
        heard.extend(payload);
        half = half.or((heard.len() == 50).then_some(position));
    }
    // A listener that resumes in the middle receives each later event once.
    let mut resumed = hear(&bench.store, half.as_deref()).await;
    let mut rest = heard[..50].to_vec();
    for _ in 50..100 {
        rest.extend(received(&mut resumed).await.0);
    }
    for mut heard in [heard, rest] {
        heard.sort_unstable();
        assert_eq!(heard, numbers.clone().collect::<Vec<_>>());
    }
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
        let mut stream = hear(&bench.store, Some(position)).await;
        assert_eq!(said(&mut stream).await, StoreUpdate::Missed, "{position:?}");
        publish(&bench.store, b"after").await;
        assert_eq!(received(&mut stream).await.0, b"after", "{position:?}");
    }
}

pub(crate) async fn a_position_that_was_dropped_is_told_as_missed(bench: &Bench) {
    let mut stream = hear(&bench.store, None).await;
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
    // A new listener at that position learns of the gap, like the one that was asleep. Events still in the
    // store may come first. A listener that is cut off under this load resumes at its last position.
    let mut resumed = hear(&bench.store, Some(&position)).await;
    for stream in [&mut resumed, &mut stream] {
        let is_missed = |update: &StoreUpdate| *update == StoreUpdate::Missed;
        heard_until(&bench.store, stream, &position, is_missed).await;
    }
    // A cluster's streams report this one by one: new events may mix with missed ones.
    let is_last =
        |update: &StoreUpdate| matches!(update, StoreUpdate::Event { payload, .. } if payload == b"last");
    for stream in [&mut resumed, &mut stream] {
        loop {
            let position = newest(&bench.store).await;
            publish(&bench.store, b"last").await;
            let is_either = |update: &StoreUpdate| is_last(update) || *update == StoreUpdate::Missed;
            if is_last(&heard_until(&bench.store, stream, &position, is_either).await) {
                break;
            }
        }
    }
}

/// Reads events until the expected update; resumes from a position if the stream was cut.
async fn heard_until(
    store: &Arc<dyn KeyValueStore>,
    stream: &mut Hearing,
    position: &str,
    is_it: impl Fn(&StoreUpdate) -> bool,
) -> StoreUpdate {
    loop {
        match tokio::time::timeout(WAIT_MAX, stream.next()).await.unwrap() {
            Some(Ok(update)) if is_it(&update) => return update,
            Some(Ok(_)) => {}
            Some(Err(_)) | None => *stream = hear(store, Some(position)).await,
        }
    }
}

/// The newest position, once the store answers: the events before it keep the servers busy.
async fn newest(store: &Arc<dyn KeyValueStore>) -> String {
    let began = Instant::now();
    loop {
        match store.position().await {
            Ok(position) => return position,
            Err(error) => assert!(began.elapsed() < WAIT_MAX, "{error}"),
        }
    }
}

/// The events after a position, or from now on, once they can be read: a busy machine answers too late at first.
async fn hear(store: &Arc<dyn KeyValueStore>, position: Option<&str>) -> Hearing {
    let began = Instant::now();
    loop {
        match store.published(position.map(str::to_owned)).await {
            Ok(stream) => return stream,
            Err(_) if began.elapsed() < WAIT_MAX => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

pub(crate) async fn a_stream_tells_only_what_comes_after_it_began(bench: &Bench) {
    publish(&bench.store, b"before").await;
    let mut stream = hear(&bench.store, None).await;
    publish(&bench.store, b"after").await;
    assert_eq!(received(&mut stream).await.0, b"after");
}

pub(crate) async fn the_newest_position_is_one_to_go_on_from(bench: &Bench) {
    // A position exists before any write.
    let first = bench.store.position().await.unwrap();
    let mut publisher = Publisher::begin(&bench.store).await;
    let second = bench.other.position().await.unwrap();
    publisher.publish_at(&bench.other, b"two").await;
    let mut stream = hear(&bench.store, Some(&first)).await;
    assert_eq!(received(&mut stream).await.0, b"begun");
    assert_eq!(received(&mut stream).await.0, b"two");
    let mut stream = hear(&bench.other, Some(&second)).await;
    assert_eq!(received(&mut stream).await.0, b"two");
}
