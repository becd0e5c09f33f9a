//! Connections over an in-memory stream: start, reuse and end.

use std::sync::Mutex;

use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::super::byte_budget::TotalBudget;
use super::*;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n";

/// The client's end of a connection, and the token that shuts the server's end down.
pub(in super::super) fn connected(router: Router) -> (DuplexStream, CancellationToken) {
    connected_within(router, Limits::default())
}

/// The same, with these limits.
pub(super) fn connected_within(router: Router, limits: Limits) -> (DuplexStream, CancellationToken) {
    let (client, server) = tokio::io::duplex(4096);
    let draining = CancellationToken::new();
    let accepted = AcceptedConnection {
        peer: PeerAddress(([127, 0, 0, 1], 1).into()),
        certificate: None,
        draining: draining.clone(),
        progress: ConnectionProgress::default(),
        budget: limits
            .waiting_bytes
            .map(|bytes| ByteBudget::of(&TotalBudget::new(bytes)))
            .unwrap_or_default(),
        limits: Arc::new(limits),
        permit: None,
    };
    tokio::spawn(plain(server, accepted, router));
    (client, draining)
}

pub(super) fn answering() -> Router {
    Router::new().route("/", get(|| async { "answered" }))
}

async fn ask(client: &mut DuplexStream) -> String {
    client.write_all(REQUEST).await.unwrap();
    read_answer(client).await
}

async fn read_answer(client: &mut DuplexStream) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(b"answered") {
        assert_ne!(
            client.read_buf(&mut answer).await.unwrap(),
            0,
            "closed without an answer"
        );
    }
    String::from_utf8(answer).unwrap()
}

async fn is_closed(client: &mut DuplexStream) -> bool {
    client.read(&mut [0]).await.unwrap() == 0
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_just_opened_gets_its_first_answer_while_draining() {
    let (mut client, draining) = connected(answering());
    draining.cancel();
    tokio::time::sleep(FIRST_REQUEST_TIMEOUT - Duration::from_millis(1)).await;
    assert!(ask(&mut client).await.contains("connection: close\r\n"));
    assert!(is_closed(&mut client).await);
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_ends_with_its_next_answer_which_says_so() {
    let (mut client, draining) = connected(answering());
    for _ in 0..2 {
        assert!(!ask(&mut client).await.contains("connection:"));
    }
    draining.cancel();
    tokio::time::sleep(QUIET - Duration::from_millis(1)).await;
    assert!(ask(&mut client).await.contains("connection: close\r\n"));
    assert!(is_closed(&mut client).await);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed() {
    let (mut client, _draining) = connected(answering());
    ask(&mut client).await;
    let began = Instant::now();
    assert!(is_closed(&mut client).await);
    assert_eq!(began.elapsed(), IDLE_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn a_connection_nobody_uses_is_closed_while_draining() {
    let (mut client, draining) = connected(answering());
    ask(&mut client).await;
    draining.cancel();
    let began = Instant::now();
    assert!(is_closed(&mut client).await);
    assert_eq!(began.elapsed(), QUIET);
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_request() {
    let (alive, gone) = oneshot::channel::<()>();
    let alive = Arc::new(Mutex::new(Some(alive)));
    let began = Arc::new(Notify::new());
    let begin = Arc::clone(&began);
    let never = get(move || async move {
        let _alive = alive.lock().unwrap().take();
        begin.notify_one();
        std::future::pending::<()>().await;
    });
    let (mut client, _draining) = connected(answering().route("/never", never));
    let request = b"GET /never HTTP/1.1\r\nhost: here\r\n\r\n";
    client.write_all(request).await.unwrap();
    began.notified().await;
    drop(client);
    let ended = tokio::time::timeout(Duration::from_secs(60), gone).await;
    assert!(ended.is_ok(), "the request goes on for nobody");
}

#[tokio::test]
async fn requests_that_come_together_are_answered_in_turn() {
    let slow = get(|| async {
        tokio::task::yield_now().await;
        "answered"
    });
    let (mut client, _draining) = connected(Router::new().route("/", slow));
    const COUNT: usize = 600;
    let (mut reading, mut writing) = tokio::io::split(&mut client);
    let asking = async {
        for _ in 0..COUNT {
            writing.write_all(REQUEST).await.unwrap();
        }
    };
    let answered = async {
        let (mut answers, mut count) = (Vec::new(), 0);
        while count < COUNT {
            assert_ne!(reading.read_buf(&mut answers).await.unwrap(), 0);
            count = answers.windows(8).filter(|bytes| bytes == b"answered").count();
        }
    };
    tokio::join!(asking, answered);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_gives_its_buffers_back_and_loses_no_byte() {
    // Empty lines before a request are ignored (RFC 9112, section 2.2).
    for pause in [1, 5, 6, 15].map(Duration::from_secs) {
        let (mut client, draining) = connected(answering());
        for _ in 0..3 {
            ask(&mut client).await;
            tokio::time::sleep(pause).await;
            let (first, rest) = REQUEST.split_at(REQUEST.len() / 2);
            client.write_all(b"\r\n").await.unwrap();
            tokio::time::sleep(pause).await;
            client.write_all(first).await.unwrap();
            tokio::time::sleep(pause).await;
            client.write_all(rest).await.unwrap();
            tokio::time::sleep(pause).await;
            assert!(read_answer(&mut client).await.contains("200 OK"));
            tokio::time::sleep(pause).await;
        }
        draining.cancel();
        assert!(is_closed(&mut client).await);
    }
}

#[tokio::test(start_paused = true)]
async fn only_an_unused_http1_connection_without_a_part_of_a_request_gives_its_buffers_back() {
    const WHILE: Duration = Duration::from_secs(60);
    for (sent, version, gives_back) in [
        (REQUEST, Version::HTTP_11, true),
        (REQUEST, Version::HTTP_2, false),
        (b"GET / HTTP/1.1\r\nhost: h", Version::HTTP_11, false),
    ] {
        let (mut client, server) = tokio::io::duplex(64);
        let progress = ConnectionProgress::default();
        let mut server = ConnectionIo::over(server, progress.clone(), ByteBudget::default(), None);
        client.write_all(sent).await.unwrap();
        server.read_exact(&mut vec![0; sent.len()]).await.unwrap();
        progress.request_received(version);
        let busy = progress.begin(0);
        let unused = async || {
            tokio::time::timeout(WHILE, server.until_unused(BUFFERS_KEPT))
                .await
                .is_ok()
        };
        assert!(!unused().await, "a request is in flight");
        drop(busy);
        assert_eq!(unused().await, gives_back, "{version:?}");
        assert!(!unused().await, "once, until more bytes arrive");
    }
}
