//! Measures watches of one session service: memory per watch, CPU time and latency of an ending.
//!
//! ```text
//! SESSION_STORE=redis://127.0.0.1:6379 … session-svc &
//! cargo run --release --example watches -- http://127.0.0.1:50051 PID 64
//! ```
//! Every watch has its own connection, like an edge. PID is the service, which should be idle otherwise.

#![expect(clippy::unwrap_used, reason = "a measurement that fails says where")]
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::time::{Duration, Instant};

use session_proto::v1;
use session_proto::v1::session_event::Kind;
use session_proto::v1::session_service_client::SessionServiceClient;
use tokio::sync::mpsc;
use tonic::transport::Channel;

/// Endings whose latency is measured, one after the other.
const ALONE: usize = 300;

/// Endings whose CPU time is measured, by several callers.
const TOGETHER: usize = 3_000;

/// Callers at once.
const CALLERS: usize = 16;

/// How long streams are open before memory is measured.
const SETTLED: Duration = Duration::from_secs(3);

type Client = SessionServiceClient<Channel>;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, pid, watches] = arguments.as_slice() else {
        println!("usage: watches ADDRESS PID WATCHES");
        return;
    };
    let (service, watches): (Service, usize) = (Service(pid.clone()), watches.parse().unwrap());
    let caller = Client::connect(address.clone()).await.unwrap();
    // One-time allocations happen here.
    end_together(&caller, TOGETHER).await;
    let without = end_measured(&service, &caller).await;
    println!("0 watches: an ending takes {without:.0} µs of CPU");

    let before = service.resident_kib();
    let (said, mut heard) = mpsc::unbounded_channel();
    for _ in 0..watches {
        watch(address.clone(), said.clone()).await;
    }
    tokio::time::sleep(SETTLED).await;
    let each = (service.resident_kib() - before) as f64 / watches as f64;
    println!(
        "{watches} watches: {each:.0} KiB each, {} KiB in all",
        service.resident_kib()
    );

    let began = service.cpu_secs();
    tokio::time::sleep(SETTLED).await;
    let idle = (service.cpu_secs() - began) / SETTLED.as_secs_f64();
    println!(
        "{watches} watches: {:.1} % of a core while nothing happens",
        idle * 100.0
    );

    let mut took: Vec<Duration> = Vec::with_capacity(ALONE);
    for handle in created(&caller, ALONE).await {
        let began = Instant::now();
        end(&mut caller.clone(), handle.clone()).await;
        let mut told = 0;
        while told < watches {
            told += usize::from(heard.recv().await.unwrap() == handle);
        }
        took.push(began.elapsed());
    }
    took.sort_unstable();
    let ms = |hundredths: usize| took[took.len() * hundredths / 100].as_secs_f64() * 1e3;
    println!(
        "{watches} watches: all are told {:.1} ms (p50), {:.1} ms (p99) after an ending was asked for",
        ms(50),
        ms(99)
    );
    let with = end_measured(&service, &caller).await;
    println!(
        "{watches} watches: an ending takes {with:.0} µs of CPU, {:.1} µs for each watch",
        (with - without) / watches as f64
    );
}

/// The measured process.
struct Service(String);

impl Service {
    fn resident_kib(&self) -> i64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.unwrap().split_whitespace().next().unwrap().parse().unwrap()
    }

    fn cpu_secs(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0)).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
        (ticks(11) + ticks(12)) / 100.0
    }
}

/// Reports the handle of every ended session.
async fn watch(address: String, said: mpsc::UnboundedSender<String>) {
    let mut client = Client::connect(address).await.unwrap();
    let all = v1::WatchSessionsRequest::default();
    let mut events = client.watch_sessions(all).await.unwrap().into_inner();
    // The first heartbeat: the watch is open.
    events.message().await.unwrap();
    tokio::spawn(async move {
        let _connected = client;
        while let Ok(Some(event)) = events.message().await {
            if event.kind() == Kind::Ended {
                let _ = said.send(event.handle);
            }
        }
    });
}

async fn created(caller: &Client, count: usize) -> Vec<String> {
    let mut handles = Vec::with_capacity(count);
    for number in 0..count {
        let request = v1::CreateSessionRequest {
            issuer: "https://issuer.example.com".to_owned(),
            user: format!(r#"{{"sub":"person-{number}"}}"#),
            tokens: Some(v1::TokenSet {
                access_token: "mQ3vXbWk8sYt1zN6pL0cR5dF9gH2jK4aSxEuTiOyBnM".to_owned(),
                token_type: "Bearer".to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let created = caller.clone().create_session(request).await.unwrap().into_inner();
        handles.push(created.session.unwrap().handle);
    }
    handles
}

async fn end(caller: &mut Client, handle: String) {
    let request = v1::EndSessionRequest {
        by: Some(v1::end_session_request::By::Handle(handle)),
        ..Default::default()
    };
    assert!(caller.end_session(request).await.unwrap().into_inner().ended);
}

/// CPU microseconds the service uses per ending.
async fn end_measured(service: &Service, caller: &Client) -> f64 {
    let handles = created(caller, TOGETHER).await;
    tokio::time::sleep(SETTLED).await;
    let began = service.cpu_secs();
    end_all(caller, handles).await;
    (service.cpu_secs() - began) * 1e6 / TOGETHER as f64
}

async fn end_together(caller: &Client, count: usize) {
    end_all(caller, created(caller, count).await).await;
}

async fn end_all(caller: &Client, handles: Vec<String>) {
    let mut callers = tokio::task::JoinSet::new();
    for part in handles.chunks(handles.len().div_ceil(CALLERS)) {
        let (mut caller, part) = (caller.clone(), part.to_vec());
        callers.spawn(async move {
            for handle in part {
                end(&mut caller, handle).await;
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
}
