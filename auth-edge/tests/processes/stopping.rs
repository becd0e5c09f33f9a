//! An edge that is stopped while clients use it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::any;
use chassis::clock::{Clock as _, ManualClock, SystemClock};
use hyper_util::rt::TokioIo;
use oidc::{ProviderSettings, RelyingParty};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::client::{Client, Kind, Unanswered};
use crate::process::{LONGEST_WAIT, Process, serve, until};
use crate::session_service::SessionService;

/// Requests of each kind that are in progress when the edge is stopped.
const HELD: usize = 4;

/// Clients of each kind that send requests without a pause.
const CLIENTS_EACH: usize = 3;

/// Requests of each kind that must be answered before and after.
const MANY: usize = 50;

/// A balancer's knowledge of an edge, and how often each kind of client got an answer.
struct Target {
    address: SocketAddr,
    ready: AtomicBool,
    answered: [AtomicUsize; Kind::ALL.len()],
}

impl Target {
    fn answered_each(&self, at_least: usize) -> bool {
        self.answered
            .iter()
            .all(|count| count.load(Ordering::SeqCst) >= at_least)
    }

    fn count(&self) -> usize {
        self.answered
            .iter()
            .map(|count| count.load(Ordering::SeqCst))
            .sum()
    }
}

async fn follow_readiness(target: Arc<Target>, admin: SocketAddr) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    loop {
        let answer = client.get(format!("http://{admin}/readyz")).send().await;
        let ready = answer.is_ok_and(|answer| answer.status().is_success());
        target.ready.store(ready, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Asks one ready edge after another until stopped. Returns the lost requests.
async fn ask(at: usize, targets: Arc<[Arc<Target>]>, stop: CancellationToken) -> Vec<String> {
    let mut client = Client::new(Kind::ALL[at]);
    let (mut failed, mut turn) = (Vec::new(), at);
    while !stop.is_cancelled() {
        turn += 1;
        let target = &targets[turn % targets.len()];
        if !target.ready.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
            continue;
        }
        match client.get(target.address, "/fast").await {
            Ok(()) => {
                target.answered[at].fetch_add(1, Ordering::SeqCst);
            }
            Err(Unanswered::Refused) => {}
            Err(Unanswered::Lost(why)) => failed.push(why),
        }
    }
    failed
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edge_that_is_told_to_stop_under_load_fails_nobody() {
    let (arrived, go_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (arriving, waiting) = (Arc::clone(&arrived), Arc::clone(&go_on));
    let held = move || {
        let (arriving, waiting) = (Arc::clone(&arriving), Arc::clone(&waiting));
        async move {
            arriving.fetch_add(1, Ordering::SeqCst);
            waiting.acquire().await.unwrap().forget();
            "held"
        }
    };
    let router = Router::new()
        .route("/fast", any(|| async { "fast" }))
        .route("/held", any(held));
    let (upstream, _stop) = serve(router).await;
    // Readiness waits for the session service's first answer.
    let clock = ManualClock::new(SystemClock.now_ms());
    let nobody = RelyingParty::new(ProviderSettings::new("http://127.0.0.1:1", "client")).unwrap();
    let sessions = SessionService::start(nobody, &clock, Duration::from_millis(300), None).await;
    let url = sessions.url();
    let settings = [("EDGE_SESSION_SVC_URL", url.as_str()), ("DRAIN_DELAY", "2")];
    let mut stopped = Process::start(upstream, &settings).await;
    let other = Process::start(upstream, &settings).await;
    let targets: Arc<[Arc<Target>]> = [&stopped, &other]
        .map(|edge| {
            let target = Arc::new(Target {
                address: edge.address,
                ready: AtomicBool::new(false),
                answered: Default::default(),
            });
            tokio::spawn(follow_readiness(Arc::clone(&target), edge.admin));
            target
        })
        .into();
    until("both are ready", || {
        targets.iter().all(|target| target.ready.load(Ordering::SeqCst))
    })
    .await;

    let address = stopped.address;
    let held: Vec<_> = Kind::ALL
        .iter()
        .flat_map(|kind| [*kind; HELD])
        .map(|kind| tokio::spawn(async move { Client::new(kind).get(address, "/held").await }))
        .collect();
    let stop = CancellationToken::new();
    let clients: Vec<_> = (0..CLIENTS_EACH * Kind::ALL.len())
        .map(|number| {
            let at = number % Kind::ALL.len();
            tokio::spawn(ask(at, Arc::clone(&targets), stop.clone()))
        })
        .collect();
    until("all are held", || arrived.load(Ordering::SeqCst) == held.len()).await;
    until("both answer every kind", || {
        targets.iter().all(|target| target.answered_each(MANY))
    })
    .await;

    stopped.terminate();
    let deadline = Instant::now() + LONGEST_WAIT;
    while TcpStream::connect(address).await.is_ok() {
        assert!(Instant::now() < deadline, "the port closes");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(
        held.iter().all(|request| !request.is_finished()),
        "requests are worked on after the port has closed"
    );
    go_on.add_permits(held.len());
    for request in held {
        request.await.unwrap().unwrap();
    }
    assert_eq!(stopped.exit_code().await, Some(0));
    let then = targets[1].count();
    until("the other one goes on", || targets[1].count() > then + MANY).await;
    stop.cancel();
    for client in clients {
        assert_eq!(client.await.unwrap(), Vec::<String>::new());
    }
}

/// A WebSocket no longer counts as a request: the end of the process would cut it.
#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_gets_its_close_frame_before_the_process_ends() {
    let socket = |mut request: Request| async move {
        let switched = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut socket = TokioIo::new(switched.await.unwrap());
            socket.write_all(b"\x81\x05hello").await.unwrap();
            let _ = socket.read_to_end(&mut Vec::new()).await;
        });
        let headers = [("connection", "upgrade"), ("upgrade", "websocket")];
        (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
    };
    let (upstream, _stop) = serve(Router::new().fallback(any(socket))).await;
    let mut edge = Process::start(upstream, &[]).await;
    let mut client = TcpStream::connect(edge.address).await.unwrap();
    let handshake = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    client.write_all(handshake.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"hello") {
        assert_ne!(client.read_buf(&mut answer).await.unwrap(), 0);
    }
    edge.terminate();
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"\x88\x02\x03\xe9");
    drop(client);
    assert_eq!(edge.exit_code().await, Some(0));
}
