//! Measures a store: bytes per session, cost and latency of operations as it grows, that nothing remains
//! after expiry, and how long a file takes to open.
//!
//! ```text
//! cargo run --release --example store_figures -- redis://127.0.0.1:6379 100000     at 1/100, 1/10 and all of it
//! cargo run --release --example store_figures -- redis-cluster://127.0.0.1:7001,127.0.0.1:7002,… 1000,100000,1000000
//! cargo run --release --example store_figures -- file:/tmp/sessions 1000000        the same, and opening it
//! cargo run --release --example store_figures -- redis://127.0.0.1:6379 1000000 bytes      bytes alone
//! cargo run --release --example store_figures -- redis://127.0.0.1:6379 1000000 expire     that nothing stays
//! ```
//! The store should be empty: on Redis all data counts. For a cluster, name at least all masters.

// The redis client's futures nest deeper than the compiler's default limit.
#![recursion_limit = "256"]
#![expect(clippy::unwrap_used, reason = "a measurement that fails says where")]
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

mod operations;
mod sample;
mod servers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chassis::clock::SystemClock;
use chassis::secret::{Reloading, Secret};
use rustix::time::{ClockId, clock_gettime};
use session_svc::store::url::StoreSettings;
use session_svc::store::{Inserted, KeyValueStore, open};
use session_svc::vault::{KeyRing, Vault};

use crate::sample::record;
use crate::servers::Servers;

/// Callers that write at once while the store is filled.
const WRITERS: u64 = 128;

/// How long a lasting session lives, in milliseconds.
const STAYS_MS: u64 = 86_400_000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, counts, rest @ ..] = arguments.as_slice() else {
        println!("usage: store_figures SESSION_STORE COUNT[,COUNT…] [bytes|expire]");
        return;
    };
    let settings: StoreSettings = url.parse().unwrap();
    let counts = steps(counts);
    let measured = Measured {
        store: open(&settings, Arc::new(SystemClock)).await.unwrap(),
        servers: Servers::connect(url).await,
        vault: Arc::new(vault(&["ab"])),
        renewed: vault(&["cd", "ab"]),
    };
    let last = *counts.last().unwrap();
    let mode = rest.first().map_or("", String::as_str);
    if mode == "expire" {
        measured.expire(last).await;
        return;
    }
    measured.grow(&counts, mode != "bytes").await;
    if let StoreSettings::File(path) = &settings {
        let bytes = std::fs::metadata(path).unwrap().len();
        println!("file: {:.0} bytes a session", bytes as f64 / last as f64);
        drop(measured);
        let began = Instant::now();
        let store = open(&settings, Arc::new(SystemClock)).await.unwrap();
        println!("opening {last} sessions after a clean end: {:?}", began.elapsed());
        store.check().await.unwrap();
    }
}

/// The given counts; a single one gives a hundredth, a tenth and all of it.
fn steps(given: &str) -> Vec<u64> {
    let counts: Vec<u64> = given.split(',').map(|count| count.parse().unwrap()).collect();
    match counts[..] {
        [all] => vec![all / 100, all / 10, all],
        _ => counts,
    }
}

/// Seals with the first of these keys, each given as its repeated byte.
fn vault(keys: &[&str]) -> Vault {
    let keys: Vec<_> = keys.iter().map(|byte| Secret::new(byte.repeat(32))).collect();
    Vault::new(Reloading::new(KeyRing::parse(&keys).unwrap()))
}

struct Measured {
    store: Arc<dyn KeyValueStore>,
    servers: Option<Servers>,
    vault: Arc<Vault>,
    /// Seals with another key, and opens texts sealed by `vault`.
    renewed: Vault,
}

impl Measured {
    async fn grow(&self, counts: &[u64], with_operations: bool) {
        let empty = self.used().await;
        let mut written = 0;
        for target in counts {
            let before = self.cpu().await;
            let began = Instant::now();
            self.write(written..*target, STAYS_MS).await;
            let (took, after) = (began.elapsed(), self.cpu().await);
            let each = (target - written).max(1) as f64;
            println!(
                "{target} sessions; {:.0} created a second, {:.1} µs here, {:.1} µs in the server",
                each / took.as_secs_f64(),
                (after.0 - before.0) * 1e6 / each,
                (after.1 - before.1) * 1e6 / each,
            );
            written = *target;
            if with_operations {
                self.operations(written).await;
            }
            if let (Some(empty), Some(full)) = (empty, self.used().await) {
                println!(
                    "  {:.0} bytes a session, of {} sealed",
                    (full - empty) / written as f64,
                    record(&self.vault, 0, 1, 1).payload.len()
                );
            }
        }
        if let Some(servers) = &self.servers {
            servers.kinds().await;
            println!(
                "  {:.0?} bytes used on each",
                servers.numbers("memory", "used_memory").await
            );
            println!(
                "  {:.1?} s of CPU on each",
                servers.numbers("cpu", "used_cpu_user").await
            );
        }
    }

    /// Sessions of different persons, each found by person and by provider sid.
    async fn write(&self, numbers: std::ops::Range<u64>, ttl_ms: u64) {
        let next = Arc::new(AtomicU64::new(numbers.start));
        let mut writers = tokio::task::JoinSet::new();
        for _ in 0..WRITERS {
            let (store, vault) = (Arc::clone(&self.store), Arc::clone(&self.vault));
            let (next, end) = (Arc::clone(&next), numbers.end);
            writers.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= end {
                        return;
                    }
                    let record = record(&vault, number, store.now_ms(), ttl_ms);
                    assert_eq!(store.insert(record, vec![7; 150]).await.unwrap(), Inserted::Done);
                }
            });
        }
        while let Some(ended) = writers.join_next().await {
            ended.unwrap();
        }
    }

    async fn expire(&self, count: u64) {
        let began = Instant::now();
        self.write(0..count, 2_000).await;
        println!("{count} created in {:?}", began.elapsed());
        let Some(servers) = &self.servers else {
            println!("only a server can be asked what is left");
            return;
        };
        let began = Instant::now();
        let mut keys = servers.keys().await;
        while keys > servers.streams().await && began.elapsed() < Duration::from_secs(120) {
            tokio::time::sleep(Duration::from_millis(50)).await;
            keys = servers.keys().await;
        }
        println!(
            "{keys} keys left {:?} after the last was created, {} of them event streams",
            began.elapsed(),
            servers.streams().await,
        );
    }

    async fn used(&self) -> Option<f64> {
        Some(self.servers.as_ref()?.number("memory", "used_memory").await)
    }

    /// CPU seconds of this process and of the servers.
    async fn cpu(&self) -> (f64, f64) {
        let servers = match &self.servers {
            Some(servers) => {
                servers.number("cpu", "used_cpu_user").await + servers.number("cpu", "used_cpu_sys").await
            }
            None => 0.0,
        };
        (own_cpu_secs(), servers)
    }
}

fn own_cpu_secs() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
