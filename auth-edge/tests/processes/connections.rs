//! Who may be connected, for how long, and who has to go.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::any;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::process::{LONGEST_WAIT, Process, serve};

const ASK: &str = "GET /quick HTTP/1.1\r\nHost: a\r\n\r\n";
const STAY: &str = "GET /never HTTP/1.1\r\nHost: a\r\n\r\n";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Answers at once, or begins an answer that never ends.
fn upstream() -> Router {
    let never = || async {
        use futures_util::StreamExt as _;
        let begin = futures_util::stream::iter([Ok::<_, std::io::Error>("begins")]);
        Body::from_stream(begin.chain(futures_util::stream::pending()))
    };
    Router::new()
        .route("/quick", any(|| async { "quick" }))
        .route("/never", any(never))
}

async fn from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
    socket.connect(to).await.unwrap()
}

async fn read(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut answer = vec![0; 4096];
    let read = tokio::time::timeout(LONGEST_WAIT, stream.read(&mut answer)).await;
    assert!(read.is_ok(), "neither an answer nor an end");
    let length = read.unwrap()?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}

async fn ask(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    read(stream).await.unwrap()
}

/// Whether the other side has hung up, after whatever it still says.
async fn is_closed(stream: &mut TcpStream) -> bool {
    loop {
        match read(stream).await {
            Ok(said) if said.is_empty() => return true,
            Ok(_) => {}
            Err(_reset) => return true,
        }
    }
}

async fn readiness(edge: &Process) -> (u16, String) {
    let answer = reqwest::get(format!("http://{}/readyz", edge.admin))
        .await
        .unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http2_connection_that_asks_for_nothing_is_closed() {
    let (upstream, _stop) = serve(upstream()).await;
    let edge = Process::start(upstream, &[]).await;
    let mut silent = from(2, edge.address).await;
    silent.write_all(PREFACE).await.unwrap();
    let closed = tokio::time::timeout(Duration::from_secs(15), is_closed(&mut silent)).await;
    assert_eq!(closed, Ok(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_ceiling_the_idlest_goes_and_when_all_are_busy_readiness_says_so() {
    let (upstream, _stop) = serve(upstream()).await;
    let edge = Process::start(upstream, &[("EDGE_MAX_CONNECTIONS", "3")]).await;
    let mut connections = Vec::new();
    for last in 2..5 {
        let mut stream = from(last, edge.address).await;
        assert!(ask(&mut stream, ASK).await.starts_with("HTTP/1.1 200"));
        connections.push(stream);
    }
    assert!(ask(&mut connections[0], STAY).await.starts_with("HTTP/1.1 200"));
    let mut newcomer = from(6, edge.address).await;
    assert!(ask(&mut newcomer, STAY).await.starts_with("HTTP/1.1 200"));
    assert!(
        is_closed(&mut connections[1]).await,
        "it was idle for the longest"
    );
    assert!(ask(&mut connections[2], STAY).await.starts_with("HTTP/1.1 200"));

    let mut waits = from(7, edge.address).await;
    waits.write_all(ASK.as_bytes()).await.unwrap();
    let deadline = tokio::time::Instant::now() + LONGEST_WAIT;
    loop {
        let (_, report) = readiness(&edge).await;
        if report.contains("every connection there may be is busy") {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{report}");
    }
    assert_eq!(readiness(&edge).await.0, 503);
    drop(newcomer);
    assert!(
        read(&mut waits).await.unwrap().starts_with("HTTP/1.1 200"),
        "and then it is served"
    );
    let (_, report) = readiness(&edge).await;
    assert!(
        !report.contains("every connection there may be is busy"),
        "{report}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_has_its_share_of_connections_makes_room_among_its_own() {
    let (upstream, _stop) = serve(upstream()).await;
    let edge = Process::start(upstream, &[("EDGE_MAX_CONNECTIONS", "8")]).await;
    let mut neighbour = from(2, edge.address).await;
    assert!(ask(&mut neighbour, ASK).await.starts_with("HTTP/1.1 200"));
    let mut idle = from(3, edge.address).await;
    assert!(ask(&mut idle, ASK).await.starts_with("HTTP/1.1 200"));
    for _ in 0..2 {
        let mut stream = from(3, edge.address).await;
        assert!(ask(&mut stream, STAY).await.starts_with("HTTP/1.1 200"));
        std::mem::forget(stream);
    }
    assert!(is_closed(&mut idle).await);
    assert!(
        is_closed(&mut from(3, edge.address).await).await,
        "both of its connections are busy"
    );
    assert!(ask(&mut neighbour, ASK).await.starts_with("HTTP/1.1 200"));
}
