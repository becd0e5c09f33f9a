//! Connections that hold more than their share of memory.

use std::sync::Mutex;

use axum::body::Bytes;
use axum::routing::get;
use futures_util::stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::super::byte_budget::UNCOUNTED_BYTES;
use super::tests::{answering, connected_within};
use super::*;

/// Far beyond every timeout.
const AGES: Duration = Duration::from_secs(3_600);

const PIECE: usize = 8 * 1024;
const PIECES: usize = 100;
const ASK: &[u8] = b"GET / HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n";

/// Limits with `waiting` bytes for all connections, and `request` for each request.
fn sharing(waiting: usize, request: usize) -> Limits {
    Limits {
        waiting_bytes: Some(waiting),
        request_bytes: request,
        ends_over_share: true,
        ..Limits::default()
    }
}

/// Answers with many pieces. The receiver resolves at the end of the answer.
fn pieces() -> (Router, oneshot::Receiver<()>) {
    let (alive, gone) = oneshot::channel();
    let alive = Arc::new(Mutex::new(Some(alive)));
    let answer = move || {
        let alive = alive.lock().unwrap().take();
        let pieces = stream::unfold((PIECES, alive), |(left, alive)| async move {
            let piece = Ok::<_, Infallible>(Bytes::from(vec![b'x'; PIECE]));
            (left > 0).then(|| (piece, (left - 1, alive)))
        });
        async { Body::from_stream(pieces) }
    };
    (Router::new().route("/", get(answer)), gone)
}

#[tokio::test(start_paused = true)]
async fn a_request_beyond_the_share_of_its_connection_is_refused_without_a_body() {
    let (mut client, _draining) =
        connected_within(answering(), sharing(UNCOUNTED_BYTES, 2 * UNCOUNTED_BYTES));
    client.write_all(ASK).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(
        answer.contains("retry-after: 1\r\n") && answer.ends_with("\r\n\r\n"),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_reads_ends_at_the_share_of_its_connection() {
    let (router, gone) = pieces();
    let (mut client, _draining) = connected_within(router, sharing(PIECE, 0));
    client.write_all(ASK).await.unwrap();
    assert!(
        matches!(timeout(AGES, gone).await, Ok(Err(_dropped))),
        "it waits for ever"
    );
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer).await;
    assert!(answer.len() < 2 * UNCOUNTED_BYTES, "{} bytes", answer.len());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_read_is_complete_however_small_the_share_is() {
    let (router, _gone) = pieces();
    let (mut client, _draining) = connected_within(router, sharing(0, 0));
    client.write_all(ASK).await.unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    assert!(answer.len() > PIECES * PIECE, "{} bytes", answer.len());
}
