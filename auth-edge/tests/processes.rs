//! The edge as a process: what it takes of memory, and how it goes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "the product tests use more of it")]
#[path = "product/support/session_service.rs"]
mod session_service;

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::any;
use chassis::clock::{Clock as _, ManualClock, SystemClock};
use chassis::runtime::Workers;
use futures_util::{StreamExt as _, stream};
use session_service::SessionService;
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

const PATIENCE: Duration = Duration::from_secs(60);

/// The size of each direction.
const GIGABYTE: u64 = 1_000_000_000;

/// What may be added to the process while a gigabyte passes, in KiB: buffers of two connections and the allocator's slack.
const GROWTH_KIB: u64 = 32 * 1024;

/// A piece of a body.
const PIECE: usize = 65_536;

static ZEROS: [u8; PIECE] = [0; PIECE];

/// An edge that ends when dropped.
struct Process {
    child: Child,
    address: SocketAddr,
    admin: SocketAddr,
    _table: NamedTempFile,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address nobody listens on: taken and given back.
fn free() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

impl Process {
    /// An edge before `upstream`; waits until it answers.
    async fn start(upstream: SocketAddr, session_service: &str) -> Self {
        let mut table = NamedTempFile::new().unwrap();
        writeln!(
            table,
            "[[route]]\npath = \"/*\"\nguard = \"none\"\nupstream = \"http://{upstream}\""
        )
        .unwrap();
        let (address, admin) = (free(), free());
        let child = Command::new(env!("CARGO_BIN_EXE_auth-edge"))
            .env_clear()
            .envs([
                ("EDGE_LISTEN", address.to_string()),
                ("EDGE_ADMIN_LISTEN", admin.to_string()),
                ("EDGE_BASE_URL", format!("http://{address}")),
                ("EDGE_SECRET", "a secret for tests that is long enough".to_owned()),
                ("EDGE_SESSION_SVC_URL", session_service.to_owned()),
                ("EDGE_ROUTES", table.path().to_str().unwrap().to_owned()),
                ("EDGE_DRAIN_DELAY", "1".to_owned()),
                ("OIDC_ISSUER_URL", "http://127.0.0.1:1".to_owned()),
                ("OIDC_CLIENT_ID", "client".to_owned()),
                ("OIDC_CLIENT_SECRET", "a secret of the client".to_owned()),
                ("RUST_LOG", "warn".to_owned()),
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let started = Self {
            child,
            address,
            admin,
            _table: table,
        };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(address).await.is_err() {
            assert!(Instant::now() < deadline, "the edge listens");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        started
    }

    /// Resident memory in KiB.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
    }

    fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .unwrap()
                .success()
        );
    }
}

async fn serve(router: Router) -> (SocketAddr, DropGuard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(chassis::serve::serve(
        Workers::here(),
        listener,
        router,
        None,
        stop.clone(),
    ));
    (address, stop.drop_guard())
}

/// Sends a gigabyte, and counts what it gets.
fn gigabytes() -> Router {
    let send = || async {
        let pieces = usize::try_from(GIGABYTE).unwrap() / PIECE;
        let body = stream::iter((0..=pieces).map(move |number| {
            let length = if number < pieces {
                PIECE
            } else {
                usize::try_from(GIGABYTE).unwrap() % PIECE
            };
            Ok::<_, std::io::Error>(Bytes::from_static(&ZEROS[..length]))
        }));
        Body::from_stream(body)
    };
    let count = |body: Body| async {
        let mut pieces = body.into_data_stream();
        let mut count = 0;
        while let Some(piece) = pieces.next().await {
            count += piece.unwrap().len();
        }
        count.to_string()
    };
    Router::new()
        .route("/send", any(send))
        .route("/count", any(count))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gigabyte_passes_each_way_in_memory_that_does_not_grow() {
    let (upstream, _stop) = serve(gigabytes()).await;
    let edge = Process::start(upstream, "http://127.0.0.1:1").await;
    let mut answer = reqwest::get(format!("http://{}/send", edge.address))
        .await
        .unwrap();
    let first = answer.chunk().await.unwrap().unwrap().len();
    let before = edge.resident();
    let (mut got, mut most, mut looked) = (first as u64, before, 0);
    while let Some(chunk) = answer.chunk().await.unwrap() {
        got += chunk.len() as u64;
        if got / 50_000_000 > looked {
            looked = got / 50_000_000;
            most = most.max(edge.resident());
        }
    }
    assert_eq!(got, GIGABYTE);
    assert!(
        most < before + GROWTH_KIB,
        "a download took {} KiB more",
        most - before
    );

    let mut stream = TcpStream::connect(edge.address).await.unwrap();
    let head =
        format!("POST /count HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {GIGABYTE}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut left, mut most) = (usize::try_from(GIGABYTE).unwrap(), before);
    while left > 0 {
        let length = left.min(PIECE);
        stream.write_all(&ZEROS[..length]).await.unwrap();
        left -= length;
        if left % (PIECE * 800) < PIECE {
            most = most.max(edge.resident());
        }
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("1000000000"),
        "{answer}"
    );
    assert!(
        most < before + GROWTH_KIB,
        "an upload took {} KiB more",
        most - before
    );
}

/// What a balancer knows of an edge.
struct Target {
    address: SocketAddr,
    ready: AtomicBool,
    answered: AtomicUsize,
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

/// Asks one ready edge after another, until told to stop; gives what failed.
async fn load(targets: Arc<[Arc<Target>]>, stop: CancellationToken, number: usize) -> Vec<String> {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let (mut failed, mut turn) = (Vec::new(), number);
    while !stop.is_cancelled() {
        turn += 1;
        let ready: Vec<_> = targets
            .iter()
            .filter(|target| target.ready.load(Ordering::SeqCst))
            .collect();
        let target = ready[turn % ready.len()];
        let path = if turn.is_multiple_of(10) { "slow" } else { "fast" };
        match client
            .get(format!("http://{}/{path}", target.address))
            .send()
            .await
        {
            Ok(answer) if answer.status().is_success() => {
                target.answered.fetch_add(1, Ordering::SeqCst);
            }
            other => failed.push(format!("{other:?}")),
        }
    }
    failed
}

async fn until(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edge_that_is_told_to_stop_under_load_fails_nobody() {
    let slow = || async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        "slow"
    };
    let router = Router::new()
        .route("/fast", any(|| async { "fast" }))
        .route("/slow", any(slow));
    let (upstream, _stop) = serve(router).await;
    // Readiness waits for its first answer.
    let clock = ManualClock::new(SystemClock.now_ms());
    let sessions = SessionService::start("http://127.0.0.1:1", "client", "a secret", None, &clock).await;
    let mut edges = Vec::new();
    let mut targets = Vec::new();
    for _ in 0..2 {
        let edge = Process::start(upstream, &sessions.url()).await;
        let target = Arc::new(Target {
            address: edge.address,
            ready: AtomicBool::new(false),
            answered: AtomicUsize::new(0),
        });
        tokio::spawn(follow_readiness(Arc::clone(&target), edge.admin));
        edges.push(edge);
        targets.push(target);
    }
    until("both are ready", || {
        targets.iter().all(|target| target.ready.load(Ordering::SeqCst))
    })
    .await;
    let shared: Arc<[Arc<Target>]> = targets.clone().into();
    let stop = CancellationToken::new();
    let loads: Vec<_> = (0..16)
        .map(|number| tokio::spawn(load(Arc::clone(&shared), stop.clone(), number)))
        .collect();
    let answered = |at: usize| targets[at].answered.load(Ordering::SeqCst);
    until("both answer", || answered(0) > 500 && answered(1) > 500).await;
    edges[0].terminate();
    let deadline = Instant::now() + PATIENCE;
    let code = loop {
        if let Some(status) = edges[0].child.try_wait().unwrap() {
            break status.code();
        }
        assert!(Instant::now() < deadline, "it ends");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(code, Some(0));
    let then = answered(1);
    until("the other goes on", || answered(1) > then + 500).await;
    stop.cancel();
    let mut failed = Vec::new();
    for load in loads {
        failed.extend(load.await.unwrap());
    }
    assert_eq!(failed, Vec::<String>::new(), "of {}", answered(0) + answered(1));
}
