//! Traffic through the edge leaves no memory in use.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::any;
use futures_util::{StreamExt as _, stream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::process::{Process, serve};

/// The size of each direction.
pub(crate) const GIGABYTE: u64 = 1_000_000_000;

/// The most the process may grow for a gigabyte, in KiB: two connections' buffers, and slack.
const GROWTH_KIB: u64 = 32 * 1024;

/// A piece of a body.
const PIECE: usize = 65_536;

static ZEROS: [u8; PIECE] = [0; PIECE];

/// A gigabyte in pieces.
pub(crate) fn gigabyte() -> impl Iterator<Item = Bytes> + Send + 'static {
    let pieces = usize::try_from(GIGABYTE).unwrap() / PIECE;
    (0..=pieces).map(move |number| {
        let length = if number < pieces {
            PIECE
        } else {
            usize::try_from(GIGABYTE).unwrap() % PIECE
        };
        Bytes::from_static(&ZEROS[..length])
    })
}

/// Sends a gigabyte, and counts what it receives.
fn gigabytes() -> Router {
    let send = || async { Body::from_stream(stream::iter(gigabyte().map(Ok::<_, std::io::Error>))) };
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
    let edge = Process::start(upstream, &[]).await;
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default(); // for reqwest
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
