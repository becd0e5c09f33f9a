//! Clients that do not read their answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use futures_util::stream;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::memory::gigabyte;
use crate::process::{Process, serve, until};

/// Clients at once.
const CLIENTS: usize = 8;

/// The most edge memory all of them may use, in KiB: both connections' buffers for each.
const GROWTH_KIB: u64 = 32 * 1024;

/// Counts answers in progress.
#[derive(Clone, Default)]
struct Open(Arc<AtomicUsize>);

impl Open {
    fn one(&self) -> Sending {
        self.0.fetch_add(1, Ordering::SeqCst);
        Sending(self.clone())
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

struct Sending(Open);

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Sends a gigabyte, or as much as a WebSocket takes.
fn sending(open: &Open) -> Router {
    let (file, socket) = (open.clone(), open.clone());
    let send = move || {
        let sending = file.one();
        async move {
            let pieces = gigabyte().map(move |piece| {
                let _ = &sending;
                Ok::<Bytes, std::io::Error>(piece)
            });
            Body::from_stream(stream::iter(pieces))
        }
    };
    let talk = move |mut request: Request| {
        let sending = socket.one();
        async move {
            let switched = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let _sending = sending;
                let mut socket = TokioIo::new(switched.await.unwrap());
                while socket.write_all(&[0; 65_536]).await.is_ok() {}
            });
            let headers = [("connection", "upgrade"), ("upgrade", "websocket")];
            (StatusCode::SWITCHING_PROTOCOLS, headers).into_response() as Response
        }
    };
    Router::new().route("/send", any(send)).route("/talk", any(talk))
}

/// Sends a request and reads only the beginning of the answer.
async fn over_http1(address: SocketAddr, path: &str, more: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{more}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).await.unwrap();
    assert!(begin.starts_with(b"HTTP/1.1 "), "{begin:?}");
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stops_reading_frees_the_upstream_and_its_memory() {
    let open = Open::default();
    let (upstream, _stop) = serve(sending(&open)).await;
    let edge = Process::start(upstream, &[]).await;
    let before = edge.resident();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(over_http1(edge.address, "/send", "").await);
    }
    let socket = "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MTIzNDU2Nzg5MDEyMzQ1Ng==\r\n";
    clients.push(over_http1(edge.address, "/talk", socket).await);
    until("every upstream is let go", || open.count() == 0).await;
    let after = edge.resident();
    assert!(after < before + GROWTH_KIB, "{} KiB more", after - before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_stands_still_frees_the_upstream_and_its_connection_goes_on() {
    let open = Open::default();
    let (upstream, _stop) = serve(sending(&open)).await;
    let edge = Process::start(upstream, &[]).await;
    let stream = TcpStream::connect(edge.address).await.unwrap();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = |path: &str| {
        hyper::Request::get(format!("http://{}{path}", edge.address))
            .body(Empty::<Bytes>::new())
            .unwrap()
    };
    let mut answer = sender.send_request(request("/send")).await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.frame().await.unwrap().unwrap();
    until("the upstream is let go", || open.count() == 0).await;
    let other = sender.send_request(request("/nothing")).await.unwrap();
    assert_eq!(other.status(), 404, "the connection is as good as before");
    assert!(
        answer.collect().await.is_err(),
        "the client notices what is missing"
    );
}
