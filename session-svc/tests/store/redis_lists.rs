//! One person's ten thousand sessions on a real Redis: what a page costs the server, and what it trims.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chassis::clock::SystemClock;
use futures_util::stream::{self, StreamExt as _};
use session_svc::session::index;
use session_svc::store::url::StoreSettings;
use session_svc::store::{Inserted, KeyValueStore, Name, Record, open as open_store};

use crate::redis_server::{RedisServer, index_key, order_key};

/// Sessions of one person.
const MANY: usize = 10_000;

/// The largest page the service returns.
const PAGE: usize = 200;

/// The average server time a page may take: a millisecond, plus room for slow machines.
const PAGE_MICROS: f64 = 3_000.0;

const HOUR_MS: u64 = 3_600_000;

/// Names of a person's and a provider session's list that share no set, as hashes do.
fn names() -> (Name, Name) {
    let name = fresh_name().to_string();
    (
        index::by_subject("issuer", &name),
        index::by_provider_sid("issuer", &name),
    )
}

fn fresh_name() -> Name {
    static NAMES: AtomicU64 = AtomicU64::new(1);
    index::by_subject("name", &NAMES.fetch_add(1, Ordering::Relaxed).to_string())
}

fn record(store: &dyn KeyValueStore, ttl_ms: u64, indexes: &[Name]) -> Record {
    let now_ms = store.now_ms();
    Record {
        name: fresh_name(),
        version: 1,
        expires_at_ms: now_ms + ttl_ms,
        created_at_ms: now_ms,
        indexes: indexes.to_vec(),
        payload: vec![7; 1_000],
    }
}

async fn open_at(url: &str) -> Arc<dyn KeyValueStore> {
    let settings: StoreSettings = url.parse().unwrap();
    open_store(&settings, Arc::new(SystemClock)).await.unwrap()
}

async fn opened() -> (RedisServer, Arc<dyn KeyValueStore>) {
    let server = RedisServer::start(&[]);
    let store = open_at(&format!("redis://127.0.0.1:{}", server.port)).await;
    (server, store)
}

/// Sessions of a person and a provider session, the newest first, a kilobyte each.
async fn many(store: &dyn KeyValueStore, count: usize, person: Name, sid: Name) -> Vec<Name> {
    let now_ms = store.now_ms();
    let records: Vec<Record> = (0..count as u64)
        .map(|number| Record {
            // Some at the same instant; in no order of their names.
            created_at_ms: now_ms - number / 3 * 10,
            ..record(store, HOUR_MS + number, &[person, sid])
        })
        .collect();
    let mut newest_first: Vec<(u64, Name)> =
        records.iter().map(|one| (one.created_at_ms, one.name)).collect();
    newest_first.sort_unstable_by(|one, other| other.cmp(one));
    stream::iter(records)
        .map(async |one| assert_eq!(store.insert(one, Vec::new()).await.unwrap(), Inserted::Done))
        .buffer_unordered(64)
        .collect::<()>()
        .await;
    newest_first.into_iter().map(|(_, name)| name).collect()
}

/// All names of a list, in pages of this size.
async fn pages(store: &dyn KeyValueStore, index: Name, limit: usize) -> Vec<Name> {
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let listing = store.list(index, after.as_ref(), limit).await.unwrap();
        names.extend(listing.entries.into_iter().map(|entry| entry.name));
        after = listing.next;
        if after.is_none() {
            return names;
        }
    }
}

/// CPU time the server has used, in microseconds.
fn used_micros(server: &RedisServer) -> f64 {
    let observed = server.ask("INFO cpu");
    let secs = |name: &str| -> f64 {
        let line = observed.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim_start_matches(':').parse().unwrap()
    };
    (secs("used_cpu_user") + secs("used_cpu_sys")) * 1e6
}

/// All names of a list, and how many calls it took.
async fn paged(store: &dyn KeyValueStore, index: Name, loading: bool) -> (Vec<Name>, u64) {
    let (mut names, mut after, mut calls) = (Vec::new(), None, 0);
    loop {
        let listing = store.list(index, after.as_ref(), PAGE).await.unwrap();
        assert!(listing.entries.len() <= PAGE);
        let found: Vec<Name> = listing.entries.iter().map(|entry| entry.name).collect();
        if loading {
            assert_eq!(store.load_many(&found).await.unwrap().len(), found.len());
        }
        names.extend(listing.entries.into_iter().map(|entry| entry.name));
        calls += 1;
        after = listing.next;
        if after.is_none() {
            return (names, calls);
        }
    }
}

/// Checks the server's CPU time since `before`, answers included; elapsed time is unreliable.
fn bounded(server: &RedisServer, before: f64, calls: u64, what: &str) {
    let each = (used_micros(server) - before) / calls as f64;
    eprintln!("{what}: {each:.0} µs each of {calls} calls");
    assert!(each < PAGE_MICROS, "{what}: {each} µs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_ten_thousand_is_a_matter_of_microseconds_for_the_server() {
    let (server, store) = opened().await;
    let (person, sid) = names();
    let newest_first = many(&*store, MANY, person, sid).await;
    // The server loads the script once.
    store.list(fresh_name(), None, 1).await.unwrap();

    let before = used_micros(&server);
    let (names, calls) = paged(&*store, person, true).await;
    assert_eq!(names, newest_first);
    bounded(&server, before, calls, "a person's pages");

    let before = used_micros(&server);
    let (names, calls) = paged(&*store, sid, false).await;
    assert_eq!(names, newest_first);
    bounded(&server, before, calls, "a provider session's");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_expired_is_trimmed_from_both_orders_a_bounded_number_at_a_time() {
    let (server, store) = opened().await;
    let (person, sid) = names();
    let now_ms = store.now_ms();
    for _ in 0..250 {
        let one = Record {
            expires_at_ms: now_ms + 400,
            ..record(&*store, 1, &[person, sid])
        };
        store.insert(one, Vec::new()).await.unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(15);
    while store.now_ms() <= now_ms + 450 {
        assert!(Instant::now() < deadline, "the server's time stands still");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..3 {
        let one = record(&*store, HOUR_MS, &[person]);
        store.insert(one, Vec::new()).await.unwrap();
    }
    let left = |key: String| server.ask(&format!("ZRANGE {key} 0 -1"));
    assert!(
        left(index_key(person)).starts_with("*3\r\n"),
        "{}",
        left(index_key(person))
    );
    // Small sets have no second order.
    assert!(
        left(order_key(person)).starts_with("*0\r\n"),
        "{}",
        left(order_key(person))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_is_ordered_by_creation_from_the_hundred_and_twenty_ninth_entry_on() {
    let (server, store) = opened().await;
    let (person, sid) = names();
    let there = |index: Name| server.ask(&format!("ZCARD {}", order_key(index)));
    let mut newest_first = Vec::new();
    for number in 0..140_u64 {
        let one = record(&*store, HOUR_MS, &[person, sid]);
        let one = Record {
            created_at_ms: one.created_at_ms + number * 7 % 11,
            ..one
        };
        newest_first.push((one.created_at_ms, one.name));
        store.insert(one, Vec::new()).await.unwrap();
        let expected = if number < 128 { 0 } else { number + 1 };
        for index in [person, sid] {
            assert_eq!(there(index), format!(":{expected}\r\n"), "after {number}");
        }
        if [0, 1, 127, 128, 139].contains(&number) {
            newest_first.sort_unstable_by(|one, other| other.cmp(one));
            let expected: Vec<Name> = newest_first.iter().map(|(_, name)| *name).collect();
            for (index, limit) in [(person, 200), (person, 30), (sid, 50)] {
                assert_eq!(pages(&*store, index, limit).await, expected, "after {number}");
            }
        }
    }
}
