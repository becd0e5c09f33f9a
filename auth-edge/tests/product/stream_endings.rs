//! How streams end over HTTP/2 and at a stop: a close frame, a status, or the end of events.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::routing::any;
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::gateway::Gateway;
use crate::session_streams::{CLOSE_POLICY, socket};
use crate::support::{Browser, Upstream};

/// Only a failing test waits this long.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// The close frame of a stopping edge: 1001.
const CLOSE_GOING_AWAY: &[u8] = b"\x88\x02\x03\xe9";

/// Streams of each kind that begin and do not end.
const KINDS: [(&str, &str); 5] = [
    ("events", "text/event-stream; charset=utf-8"),
    ("grpc", "application/grpc"),
    ("proto", "application/grpc+proto"),
    ("web", "application/grpc-web+proto"),
    ("endless", "text/plain"),
];

async fn world() -> (Gateway, Upstream) {
    let mut router = Router::new().route("/socket", any(|request| socket(request, &[b"\x81\x05hello"])));
    for (path, kind) in KINDS {
        let begins = move || async move {
            let first = stream::once(async { Ok::<_, std::io::Error>(Bytes::from_static(b"begins")) });
            (
                [("content-type", kind)],
                Body::from_stream(first.chain(stream::pending())),
            )
        };
        router = router.route(&format!("/{path}"), any(begins));
    }
    let router = Router::new().nest("/own", router.clone()).nest("/free", router);
    let upstream = Upstream::of(router, None).await;
    let rule = |path: &str, guard: &str| {
        let url = upstream.url();
        format!("[[route]]\npath = \"/{path}/*\"\nguard = \"{guard}\"\nupstream = \"{url}\"\n")
    };
    let gateway = Gateway::start(&(rule("own", "api") + &rule("free", "none")), &[]).await;
    (gateway, upstream)
}

type Http2 = SendRequest<Empty<Bytes>>;

async fn http2_to(browser: &Browser) -> Http2 {
    let stream = TcpStream::connect(browser.address()).await.unwrap();
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

fn cookies(browser: &Browser) -> String {
    let pairs = browser.jar.iter().map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join("; ")
}

fn request(browser: &Browser, path: &str) -> hyper::http::request::Builder {
    hyper::Request::builder()
        .uri(format!("http://{}{path}", browser.host()))
        .header("cookie", cookies(browser))
}

/// A stream of each kind that has begun.
async fn open(
    sender: &mut Http2,
    browser: &Browser,
    prefix: &str,
) -> Vec<(&'static str, hyper::body::Incoming)> {
    let mut opened = Vec::new();
    for (path, _) in KINDS {
        let get = request(browser, &format!("/{prefix}/{path}"))
            .body(Empty::new())
            .unwrap();
        let mut body = sender.send_request(get).await.unwrap().into_body();
        let first = body.frame().await.unwrap().unwrap();
        assert!(first.into_data().is_ok(), "{path}");
        opened.push((path, body));
    }
    opened
}

/// A WebSocket that has begun.
async fn open_socket(browser: &Browser, prefix: &str) -> TcpStream {
    let mut stream = TcpStream::connect(browser.address()).await.unwrap();
    let cookies = cookies(browser);
    let handshake = format!(
        "GET /{prefix}/socket HTTP/1.1\r\nHost: {}\r\nCookie: {cookies}\r\nOrigin: http://{}\r\nConnection: upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        browser.host(),
        browser.host()
    );
    stream.write_all(handshake.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"hello") {
        assert_ne!(
            stream.read_buf(&mut answer).await.unwrap(),
            0,
            "{}",
            String::from_utf8_lossy(&answer)
        );
    }
    stream
}

/// The last data of a stream; an error means that the stream was cut.
async fn last(mut body: hyper::body::Incoming) -> Result<Option<HeaderMap>, hyper::Error> {
    tokio::time::timeout(LONGEST_WAIT, async {
        while let Some(frame) = body.frame().await.transpose()? {
            match frame.into_trailers() {
                Ok(trailers) => return Ok(Some(trailers)),
                Err(frame) => assert_eq!(frame.into_data().unwrap(), ""),
            }
        }
        Ok(None)
    })
    .await
    .expect("it ends")
}

async fn rest(mut stream: impl tokio::io::AsyncRead + Unpin) -> Vec<u8> {
    let mut rest = Vec::new();
    let read = tokio::time::timeout(LONGEST_WAIT, stream.read_to_end(&mut rest)).await;
    read.expect("it ends").unwrap();
    rest
}

async fn expect_ends(opened: Vec<(&'static str, hyper::body::Incoming)>, status: &str) {
    for (kind, body) in opened {
        let ended = last(body).await;
        match kind {
            "events" => assert!(ended.unwrap().is_none(), "events end as a whole"),
            "grpc" | "proto" => assert_eq!(ended.unwrap().unwrap()["grpc-status"], status),
            _ => assert!(ended.is_err(), "{kind} is cut: {ended:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_with_their_session_and_say_so() {
    let (gateway, _upstream) = world().await;
    let mut browser = gateway.signed_in().await;
    let mut sender = http2_to(&browser).await;
    let opened = open(&mut sender, &browser, "own").await;
    let socket = open_socket(&browser, "own").await;
    assert_eq!(browser.visit("/api/auth/logout").await.status, 302);
    expect_ends(opened, "16").await;
    assert_eq!(rest(socket).await, CLOSE_POLICY);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_an_edge_that_stops_end_and_say_so() {
    for prefix in ["own", "free"] {
        let (gateway, _upstream) = world().await;
        let browser = gateway.signed_in().await;
        let mut sender = http2_to(&browser).await;
        let mut opened = open(&mut sender, &browser, prefix).await;
        let socket = open_socket(&browser, prefix).await;
        gateway.stack.edge.stopping().closed.cancel();
        assert_eq!(rest(socket).await, CLOSE_GOING_AWAY);
        for (kind, body) in &mut opened {
            let more = tokio::time::timeout(Duration::from_millis(50), body.frame()).await;
            assert!(more.is_err(), "{kind} has the time of the drain: {more:?}");
        }
        opened.retain(|(kind, _)| !["web", "endless"].contains(kind));
        gateway.stack.edge.stopping().overdue.cancel();
        expect_ends(opened, "14").await;
    }
}

/// A client may keep sending after its session ended, and must still receive the close frame.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_on_sending_gets_the_close_frame() {
    let (gateway, _upstream) = world().await;
    let browser = gateway.stack.browser();
    let (mut from, mut to) = open_socket(&browser, "free").await.into_split();
    let sending = tokio::spawn(async move { while to.write_all(b"\x82\x05hello").await.is_ok() {} });
    gateway.stack.edge.stopping().closed.cancel();
    let mut close = [0; 4];
    tokio::time::timeout(LONGEST_WAIT, from.read_exact(&mut close))
        .await
        .expect("it comes")
        .unwrap();
    assert_eq!(close, CLOSE_GOING_AWAY);
    sending.await.unwrap();
}
