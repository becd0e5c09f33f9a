//! The cost of each operation by store size: CPU time here and in servers, latency, throughput.

use std::sync::Arc;
use std::time::{Duration, Instant};

use session_svc::session::index;
use session_svc::store::{Inserted, Replaced};

use crate::sample::{ISSUER, handle, record, subject};
use crate::{Measured, STAYS_MS};

/// The largest number of sessions an operation is measured on.
const SAMPLES: u64 = 20_000;

/// Callers at once, if there are several.
const CALLERS: usize = 32;

impl Measured {
    /// Measures each operation, and leaves the number of sessions unchanged.
    pub(crate) async fn operations(&self, count: u64) {
        let step = usize::try_from((count / SAMPLES).max(1)).unwrap();
        let numbers: Vec<u64> = (0..count).step_by(step).collect();
        self.each("load", &numbers, async |number| {
            assert!(self.store.load(handle(number)).await.unwrap().is_some());
        })
        .await;
        self.load_at_once(&numbers).await;
        self.each("list", &numbers, async |number| {
            let subject = index::by_subject(ISSUER, &subject(number));
            let listing = self.store.list(subject, None, 50).await.unwrap();
            let names: Vec<_> = listing.entries.iter().map(|entry| entry.name).collect();
            assert_eq!(self.store.load_many(&names).await.unwrap().len(), 1);
        })
        .await;
        self.each("roll", &numbers, async |number| {
            let mut record = self.store.load(handle(number)).await.unwrap().unwrap();
            let read = record.version;
            record.version += 1;
            record.expires_at_ms = self.store.now_ms() + STAYS_MS;
            let session = self.open_record(&record, read);
            record.payload = self.vault.seal_session(&session).unwrap();
            let rolled = self.store.replace(record, read, Some(vec![7; 150])).await;
            assert_eq!(rolled.unwrap(), Replaced::Done);
        })
        .await;
        self.each("re-key", &numbers, async |number| {
            let mut record = self.store.load(handle(number)).await.unwrap().unwrap();
            let version = record.version;
            let session = self.open_record(&record, version);
            record.payload = self.renewed.seal_session(&session).unwrap();
            let sealed = self.store.replace(record, version, None).await;
            assert_eq!(sealed.unwrap(), Replaced::Done);
        })
        .await;
        self.each("end", &numbers, async |number| {
            let ended = self.store.remove(handle(number), vec![7; 150]).await;
            assert!(ended.unwrap().is_some());
        })
        .await;
        self.each("create", &numbers, async |number| {
            let record = record(&self.vault, number, self.store.now_ms(), STAYS_MS);
            assert_eq!(
                self.store.insert(record, vec![7; 150]).await.unwrap(),
                Inserted::Done
            );
        })
        .await;
    }

    /// The session in a record of that version, to be sealed for the record's next version.
    fn open_record(&self, record: &session_svc::store::Record, read: u64) -> session_svc::session::Session {
        let opened = self.renewed.open_session(record.name, read, &record.payload);
        let mut session = opened.unwrap();
        session.version = record.version;
        session
    }

    /// One after the other.
    async fn each(&self, what: &str, numbers: &[u64], operation: impl AsyncFn(u64)) {
        let (before, began) = (self.cpu().await, Instant::now());
        let mut took = Vec::with_capacity(numbers.len());
        for number in numbers {
            let began = Instant::now();
            operation(*number).await;
            took.push(began.elapsed());
        }
        self.tell(what, before, began.elapsed(), took).await;
    }

    /// Loads each session once, by many callers.
    async fn load_at_once(&self, numbers: &[u64]) {
        let (before, began) = (self.cpu().await, Instant::now());
        let mut readers = tokio::task::JoinSet::new();
        for part in numbers.chunks(numbers.len().div_ceil(CALLERS)) {
            let (store, part) = (Arc::clone(&self.store), part.to_vec());
            readers.spawn(async move {
                let mut took = Vec::with_capacity(part.len());
                for number in part {
                    let began = Instant::now();
                    let loaded = store.load(handle(number)).await;
                    took.push(began.elapsed());
                    assert!(loaded.unwrap().is_some());
                }
                took
            });
        }
        let mut took = Vec::new();
        while let Some(ended) = readers.join_next().await {
            took.extend(ended.unwrap());
        }
        let what = format!("load, {CALLERS} callers");
        self.tell(&what, before, began.elapsed(), took).await;
    }

    async fn tell(&self, what: &str, before: (f64, f64), all: Duration, mut took: Vec<Duration>) {
        let (after, count) = (self.cpu().await, took.len() as f64);
        took.sort_unstable();
        let quantile = |hundredths: usize| took[(took.len() * hundredths / 100).min(took.len() - 1)];
        println!(
            "  {what}: {:.1} µs here, {:.1} µs in the server; p50 {:.2} ms, p99 {:.2} ms; {:.0} a second",
            (after.0 - before.0) * 1e6 / count,
            (after.1 - before.1) * 1e6 / count,
            quantile(50).as_secs_f64() * 1e3,
            quantile(99).as_secs_f64() * 1e3,
            count / all.as_secs_f64()
        );
    }
}
