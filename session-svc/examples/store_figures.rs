//! Measures a store: bytes a session takes, what an operation costs as it grows, that nothing is left once all
//! has expired, and how long a file takes to open.
//!
//! ```text
//! cargo run --release --example store_figures -- redis://127.0.0.1:6379 100000     bytes and costs at 1/100, 1/10 and all of it
//! cargo run --release --example store_figures -- file:/tmp/sessions 1000000        the same, and opening it
//! cargo run --release --example store_figures -- redis://127.0.0.1:6379 1000000 expire
//! ```
//! The store should be empty; on Redis everything is counted, whoever wrote it.

// The layouts of the redis client's futures nest deeper than the compiler's default allows.
#![recursion_limit = "256"]
#![expect(clippy::unwrap_used, reason = "a measurement that fails says where")]
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chassis::clock::SystemClock;
use chassis::secret::{Reloading, Secret};
use redis::FromRedisValue;
use redis::aio::MultiplexedConnection;
use session_svc::keeper::Seal as _;
use session_svc::session::{
    AccessToken, Claims, Device, Handle, Scope, Session, SessionState, SessionTokens, StoredToken, index,
};
use session_svc::store::url::StoreSettings;
use session_svc::store::{Inserted, Record, SessionStore, open};
use session_svc::vault::{KeyRing, Vault};

const ISSUER: &str = "https://issuer.example.com";
const WRITERS: u64 = 128;
const READERS: usize = 32;
const SAMPLES: u64 = 20_000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, count, rest @ ..] = arguments.as_slice() else {
        println!("usage: store_figures SESSION_STORE COUNT [expire]");
        return;
    };
    let (settings, count): (StoreSettings, u64) = (url.parse().unwrap(), count.parse().unwrap());
    let measured = Measured {
        store: open(&settings, Arc::new(SystemClock)).await.unwrap(),
        server: Server::connect(url).await,
        vault: Arc::new(Vault::new(Reloading::new(
            KeyRing::parse(&[Secret::new("ab".repeat(32))]).unwrap(),
        ))),
    };
    if rest.first().is_some_and(|mode| mode == "expire") {
        measured.expire(count).await;
        return;
    }
    measured.grow(count).await;
    if let StoreSettings::File(path) = &settings {
        println!(
            "file: {:.0} bytes a session",
            std::fs::metadata(path).unwrap().len() as f64 / count as f64
        );
        drop(measured);
        let began = Instant::now();
        let store = open(&settings, Arc::new(SystemClock)).await.unwrap();
        println!(
            "opening {count} sessions after a clean end: {:?}",
            began.elapsed()
        );
        store.check().await.unwrap();
    }
}

struct Measured {
    store: Arc<dyn SessionStore>,
    server: Option<Server>,
    vault: Arc<Vault>,
}

impl Measured {
    async fn grow(&self, count: u64) {
        let empty = self.used().await;
        let mut written = 0;
        for target in [count / 100, count / 10, count] {
            let began = Instant::now();
            self.write(written..target, 86_400_000).await;
            let took = began.elapsed();
            let each = (target - written).max(1);
            println!(
                "{target} sessions; {:.0} created a second",
                each as f64 / took.as_secs_f64()
            );
            written = target;
            self.operations(target).await;
        }
        if let (Some(server), Some(empty), Some(full)) = (&self.server, empty, self.used().await) {
            println!(
                "{:.0} bytes a session, of {} sealed",
                (full - empty) as f64 / count as f64,
                self.session(0, 1, 1).payload.len()
            );
            server.kinds().await;
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

    fn session(&self, number: u64, now_ms: u64, ttl_ms: u64) -> Record {
        record(&self.vault, number, now_ms, ttl_ms)
    }

    /// CPU time of this process and of the server, per operation: one at a time, and loads by many callers at once.
    async fn operations(&self, count: u64) {
        let step = (count / SAMPLES).max(1);
        let numbers: Vec<u64> = (0..count).step_by(usize::try_from(step).unwrap()).collect();
        let before = self.cpu().await;
        for number in &numbers {
            assert!(self.store.load(handle(*number).name()).await.unwrap().is_some());
        }
        let loaded = self.cpu().await;
        self.load_at_once(&numbers).await;
        let loaded_at_once = self.cpu().await;
        for number in &numbers {
            let subject = index::by_subject(ISSUER, &subject(*number));
            let listing = self.store.list(subject, None, 50).await.unwrap();
            let names: Vec<_> = listing.entries.iter().map(|entry| entry.name).collect();
            assert_eq!(self.store.load_many(&names).await.unwrap().len(), 1);
        }
        let listed = self.cpu().await;
        for (what, from, to) in [
            ("load", before, loaded),
            ("load, 32 callers", loaded, loaded_at_once),
            ("list", loaded_at_once, listed),
        ] {
            let each = |from: f64, to: f64| (to - from) * 1e6 / numbers.len() as f64;
            println!(
                "  {what}: {:.1} µs here, {:.1} µs in the server",
                each(from.0, to.0),
                each(from.1, to.1)
            );
        }
    }

    /// Loads each of them once.
    async fn load_at_once(&self, numbers: &[u64]) {
        let mut readers = tokio::task::JoinSet::new();
        for part in numbers.chunks(numbers.len().div_ceil(READERS)) {
            let (store, part) = (Arc::clone(&self.store), part.to_vec());
            readers.spawn(async move {
                for number in part {
                    let loaded = store.load(handle(number).name()).await;
                    assert!(loaded.unwrap().is_some());
                }
            });
        }
        while let Some(ended) = readers.join_next().await {
            ended.unwrap();
        }
    }

    async fn expire(&self, count: u64) {
        let began = Instant::now();
        self.write(0..count, 2_000).await;
        println!("{count} created in {:?}", began.elapsed());
        let Some(server) = &self.server else {
            println!("only a server can be asked what is left");
            return;
        };
        let began = Instant::now();
        let mut keys: u64 = server.ask(&["DBSIZE"]).await;
        while keys > 1 && began.elapsed() < Duration::from_secs(120) {
            tokio::time::sleep(Duration::from_millis(50)).await;
            keys = server.ask(&["DBSIZE"]).await;
        }
        println!(
            "{keys} keys left {:?} after the last was created (the event stream is one)",
            began.elapsed()
        );
    }

    async fn used(&self) -> Option<u64> {
        Some(self.server.as_ref()?.number("memory", "used_memory").await as u64)
    }

    async fn cpu(&self) -> (f64, f64) {
        let server = match &self.server {
            Some(server) => {
                server.number("cpu", "used_cpu_user").await + server.number("cpu", "used_cpu_sys").await
            }
            None => 0.0,
        };
        (own_cpu_secs(), server)
    }
}

/// The server of a `redis://` address.
struct Server(MultiplexedConnection);

impl Server {
    async fn connect(url: &str) -> Option<Self> {
        let client = redis::Client::open(url).ok()?;
        Some(Self(client.get_multiplexed_async_connection().await.unwrap()))
    }

    async fn ask<T: FromRedisValue>(&self, command: &[&str]) -> T {
        let mut cmd = redis::cmd(command[0]);
        cmd.arg(&command[1..]);
        cmd.query_async(&mut self.0.clone()).await.unwrap()
    }

    async fn number(&self, section: &str, name: &str) -> f64 {
        let facts: String = self.ask(&["INFO", section]).await;
        let line = facts
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap().trim().parse().unwrap()
    }

    /// Where the bytes go: a sample of each kind of key.
    async fn kinds(&self) {
        let keys: u64 = self.ask(&["DBSIZE"]).await;
        println!("  {keys} keys");
        for kind in ['s', 'i', 'o', 'e'] {
            let (_, sample): (u64, Vec<Vec<u8>>) = self
                .ask(&[
                    "SCAN",
                    "0",
                    "MATCH",
                    &format!("vestibule:{kind}*"),
                    "COUNT",
                    "2000",
                ])
                .await;
            let mut bytes = 0_u64;
            for key in &sample {
                let mut cmd = redis::cmd("MEMORY");
                cmd.arg("USAGE").arg(key);
                bytes += cmd.query_async::<u64>(&mut self.0.clone()).await.unwrap();
            }
            if !sample.is_empty() {
                println!(
                    "  {kind}: {} bytes a key, of a sample of {}",
                    bytes / sample.len() as u64,
                    sample.len()
                );
            }
        }
    }
}

fn own_cpu_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / 100.0
}

fn handle(number: u64) -> Handle {
    let mixed = u128::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    Handle::from_bytes(mixed.to_be_bytes())
}

fn subject(number: u64) -> String {
    format!("auth0|{:024x}", u128::from(number) * 0x9e37_79b9_7f4a)
}

/// A session of the usual size: opaque tokens, an ID token of five claims, one browser.
fn record(vault: &Vault, number: u64, now_ms: u64, ttl_ms: u64) -> Record {
    let subject = subject(number);
    let user = serde_json::json!({
        "sub": subject, "name": "Ada Lovelace", "email": "ada@example.com",
        "email_verified": true, "picture": "https://cdn.example.com/avatars/ada.png",
    })
    .to_string();
    let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let id_token = [
        part(br#"{"alg":"RS256","kid":"key-1"}"#),
        part(user.as_bytes()),
        part(&[7; 256]),
    ];
    let device = Device {
        user_agent: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36".to_owned(),
        address: Some("203.0.113.7".parse().unwrap()),
        at_ms: now_ms,
    };
    let token = |text: &str| StoredToken::new(text.to_owned());
    let sid = format!("sid-{number:020}");
    let session = Session {
        handle: handle(number),
        issuer: ISSUER.to_owned(),
        subject: subject.clone(),
        user: Claims::of_kept(user),
        attributes: Claims::default(),
        tokens: SessionTokens {
            access: Some(AccessToken {
                value: token("mQ3vXbWk8sYt1zN6pL0cR5dF9gH2jK4aSxEuTiOyBnM"),
                token_type: "Bearer".to_owned(),
                expires_at_ms: now_ms + 300_000,
            }),
            scope: Scope::parse("openid profile email"),
            refresh: Some(token("v1.Mr5mQ3vXbWk8sYt1zN6pL0cR5dF9gH2jK4aSxEuTiOyBnM")),
            id_token: Some(token(&id_token.join("."))),
            generation: 0,
            pending: None,
            ..Default::default()
        },
        provider_sid: Some(sid.clone()),
        earlier_sids: Vec::new(),
        authenticated_at_ms: Some(now_ms),
        created_at_ms: now_ms,
        rolled_at_ms: now_ms,
        not_after_ms: None,
        created_on: device.clone(),
        last_seen_on: device,
        state: SessionState::Active,
        version: 1,
        carried: Default::default(),
    };
    Record {
        name: session.handle.name(),
        version: 1,
        expires_at_ms: now_ms + ttl_ms,
        created_at_ms: now_ms,
        indexes: vec![
            index::by_subject(ISSUER, &subject),
            index::by_provider_sid(ISSUER, &sid),
        ],
        payload: vault.seal_session(&session).unwrap(),
    }
}
