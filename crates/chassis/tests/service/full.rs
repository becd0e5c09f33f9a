//! A listener, or a client, with all the connections it may have.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::any;
use chassis::readiness::{Readiness, Weight};
use chassis::runtime::Workers;
use chassis::serve::{self, Limits, PerClientLimit, Stopping};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(60);
const ASK: &str = "GET /quick HTTP/1.1\r\nHost: a\r\n\r\n";
const STAY: &str = "GET /never HTTP/1.1\r\nHost: a\r\n\r\n";

/// Answers at once, or begins an answer that never ends.
fn router() -> Router {
    let never = || async {
        use futures_util::StreamExt as _;
        let begin = futures_util::stream::iter([Ok::<_, std::io::Error>("begins")]);
        Body::from_stream(begin.chain(futures_util::stream::pending()))
    };
    Router::new()
        .route("/quick", any(|| async { "quick" }))
        .route("/never", any(never))
}

async fn listener_with(limits: Limits) -> (SocketAddr, DropGuard) {
    let listener = serve::bind(([127, 0, 0, 1], 0).into(), "LISTEN").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let stopping = Stopping::on(stop.clone());
    let serving = serve::serve_each(Workers::here(), listener, router, None, limits, stopping);
    tokio::spawn(serving);
    (address, stop.drop_guard())
}

async fn from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
    socket.connect(to).await.unwrap()
}

async fn read(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut answer = vec![0; 4096];
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut answer)).await;
    let length = read.unwrap()?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}

async fn is_answered(stream: &mut TcpStream, request: &str) -> bool {
    stream.write_all(request.as_bytes()).await.unwrap();
    read(stream).await.unwrap().starts_with("HTTP/1.1 200")
}

/// Whether the peer has closed, after any remaining data.
async fn is_closed(stream: &mut TcpStream) -> bool {
    loop {
        match read(stream).await {
            Ok(said) if said.is_empty() => return true,
            Ok(_) => {}
            Err(_reset) => return true,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_ceiling_the_idlest_goes_and_when_all_are_busy_readiness_says_so() {
    let readiness = Readiness::new();
    let limits = Limits {
        connections: 3,
        capacity: Some(readiness.condition("connections", Weight::Required)),
        ..Limits::default()
    };
    let mut is_ready = readiness.subscribe();
    let (address, _stop) = listener_with(limits).await;
    let mut connections = Vec::new();
    for last in 2..5 {
        let mut stream = from(last, address).await;
        assert!(is_answered(&mut stream, ASK).await);
        connections.push(stream);
    }
    assert!(is_answered(&mut connections[0], STAY).await);
    let mut newcomer = from(6, address).await;
    assert!(is_answered(&mut newcomer, STAY).await);
    assert!(
        is_closed(&mut connections[1]).await,
        "it was idle for the longest"
    );
    assert!(is_answered(&mut connections[2], STAY).await);

    let mut waits = from(7, address).await;
    waits.write_all(ASK.as_bytes()).await.unwrap();
    let unready = tokio::time::timeout(PATIENCE, is_ready.wait_for(|is_ready| !is_ready));
    assert!(unready.await.is_ok(), "readiness says that all are busy");
    drop(newcomer);
    assert!(read(&mut waits).await.unwrap().starts_with("HTTP/1.1 200"));
    let ready = tokio::time::timeout(PATIENCE, is_ready.wait_for(|is_ready| *is_ready));
    assert!(ready.await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_has_its_share_of_connections_makes_room_among_its_own() {
    let limits = Limits {
        connections: 8,
        per_client: Some(PerClientLimit {
            connections: 2,
            is_proxy: Arc::new(|_address| false),
        }),
        ..Limits::default()
    };
    let (address, _stop) = listener_with(limits).await;
    let mut neighbour = from(2, address).await;
    assert!(is_answered(&mut neighbour, ASK).await);
    let mut idle = from(3, address).await;
    assert!(is_answered(&mut idle, ASK).await);
    let mut busy = Vec::new();
    for _ in 0..2 {
        let mut stream = from(3, address).await;
        assert!(is_answered(&mut stream, STAY).await);
        busy.push(stream);
    }
    assert!(is_closed(&mut idle).await);
    assert!(
        is_closed(&mut from(3, address).await).await,
        "both of its connections are busy"
    );
    assert!(is_answered(&mut neighbour, ASK).await);
}
