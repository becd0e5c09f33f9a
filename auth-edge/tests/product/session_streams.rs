//! Streams of a session end with it, at every edge and for every reason; other streams continue.

use std::io::Write as _;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use futures_util::{StreamExt as _, stream};
use hyper_util::rt::TokioIo;
use serde_json::json;
use session_proto::client::SessionClient;
use session_proto::v1::{EndSessionRequest, ListSessionsRequest, RollSessionRequest, end_session_request};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{Browser, Stack, Upstream};

/// The contract's limit between an ending and the end of the last stream.
const BOUND: Duration = Duration::from_secs(1);

/// A body length that no sender here reaches.
const LONG: usize = 10_000_000;

/// The close frame of an application: 1000.
const CLOSE_NORMAL: &[u8] = b"\x88\x02\x03\xe8";

/// The close frame of the edge at the end of a session: 1008.
pub(crate) const CLOSE_POLICY: &[u8] = b"\x88\x02\x03\xf0";

/// A WebSocket whose server sends this and reads.
pub(crate) async fn socket(mut request: Request, frames: &'static [&'static [u8]]) -> Response {
    let switched = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let mut socket = TokioIo::new(switched.await.unwrap());
        socket.write_all(&frames.concat()).await.unwrap();
        let _ = socket.read_to_end(&mut Vec::new()).await;
    });
    let headers = [("connection", "upgrade"), ("upgrade", "websocket")];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

/// A server whose answers begin and never end.
fn never_ending() -> Router {
    let body = |first: &'static str| {
        let first =
            stream::once(async move { Ok::<_, std::io::Error>(Bytes::from_static(first.as_bytes())) });
        Body::from_stream(first.chain(stream::pending()))
    };
    let events = move || async move { ([("content-type", "text/event-stream")], body("data: 1\n\n")) };
    let download = move || async move { ([("content-length", LONG.to_string())], body("the first bytes")) };
    let upload = |body: Body| async move {
        let mut pieces = body.into_data_stream();
        while let Some(Ok(_)) = pieces.next().await {}
        "all of it"
    };
    let all = Router::new()
        .route("/events", any(events))
        .route("/download", any(download))
        .route("/upload", any(upload))
        .route("/socket", any(|request| socket(request, &[b"\x81\x05hello"])))
        .route("/midway", any(|request| socket(request, &[b"\x81\x7fhello"])))
        .route(
            "/closed",
            any(|request| socket(request, &[b"\x81\x05hello", CLOSE_NORMAL])),
        );
    Router::new().nest("/guarded", all.clone()).nest("/open", all)
}

struct World {
    stack: Stack,
    _upstream: Upstream,
    _table: tempfile::NamedTempFile,
}

async fn world(cache_secs: &str) -> World {
    let upstream = Upstream::of(never_ending(), None).await;
    let mut table = tempfile::NamedTempFile::new().unwrap();
    for (path, guard) in [("/guarded/*", "api"), ("/open/*", "none")] {
        let url = upstream.url();
        writeln!(
            table,
            "[[route]]\npath = \"{path}\"\nguard = \"{guard}\"\nupstream = \"{url}\""
        )
        .unwrap();
    }
    let routes = table.path().to_str().unwrap().to_owned();
    let settings = [
        ("EDGE_ROUTES", routes.as_str()),
        ("EDGE_SESSION_CACHE_SECS", cache_secs),
    ];
    let stack = Stack::with(&settings).await;
    World {
        stack,
        _upstream: upstream,
        _table: table,
    }
}

const KINDS: [(&str, &str); 6] = [
    ("events", "GET"),
    ("download", "GET"),
    ("upload", "POST"),
    ("socket", "GET"),
    ("midway", "GET"),
    ("closed", "GET"),
];

/// Opens a stream of each kind at a browser's edge, and waits until each has begun.
async fn open(browser: &Browser, path: &str) -> Vec<(&'static str, TcpStream)> {
    let mut opened = Vec::new();
    for (kind, method) in KINDS {
        let more = match kind {
            "upload" => format!("Content-Length: {LONG}\r\nOrigin: {}\r\n", browser.base()),
            "socket" | "midway" | "closed" => {
                "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                    .to_owned()
            }
            _ => String::new(),
        };
        let cookies: Vec<_> = browser
            .jar
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let request = format!(
            "{method} /{path}/{kind} HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n{more}\r\n",
            browser.host(),
            cookies.join("; ")
        );
        let mut stream = TcpStream::connect(browser.address()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        if kind == "upload" {
            stream.write_all(&[b'x'; 70_000]).await.unwrap();
        } else {
            let expected = match kind {
                "events" => "data: 1",
                "download" => "the first bytes",
                "closed" => "hello\u{fffd}\u{2}\u{3}\u{fffd}",
                _ => "hello",
            };
            let mut seen = String::new();
            while !seen.contains(expected) {
                let mut bytes = [0; 4096];
                let read = stream.read(&mut bytes).await.unwrap();
                seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
                assert!(read > 0, "{path} {kind}: {seen}");
            }
        }
        opened.push((kind, stream));
    }
    opened
}

/// Waits until all streams have ended, by [`BOUND`] after `ended`.
async fn all_end(streams: Vec<(&'static str, TcpStream)>, ended: Instant, case: &str) {
    for (kind, mut stream) in streams {
        let mut rest = Vec::new();
        let left = BOUND.saturating_sub(ended.elapsed());
        // The connection stays open after the events end.
        let last_chunk: &[u8] = if kind == "events" {
            b"0\r\n\r\n"
        } else {
            b"nothing"
        };
        let end = async {
            while !rest.ends_with(last_chunk) && stream.read_buf(&mut rest).await.unwrap_or(0) > 0 {}
        };
        let over = tokio::time::timeout(left, end).await;
        assert!(over.is_ok(), "{case}: {kind} goes on");
        match kind {
            "upload" => assert!(rest.starts_with(b"HTTP/1.1 401"), "{case}: {rest:?}"),
            "socket" => assert_eq!(rest, CLOSE_POLICY, "{case}"),
            "events" => assert_eq!(rest, b"0\r\n\r\n", "{case}"),
            // Fewer bytes than promised; a frame that is incomplete, or the last one.
            _ => assert_eq!(rest, b"", "{case}: {kind}"),
        }
    }
}

/// Whether all streams are still open.
async fn all_go_on(streams: &mut [(&'static str, TcpStream)], case: &str) {
    for (kind, stream) in streams {
        let read = tokio::time::timeout(Duration::from_millis(50), stream.read_u8()).await;
        assert!(
            read.is_err(),
            "{case}: {kind} of another session has ended: {read:?}"
        );
    }
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    Logout,
    BackChannel,
    OtherDevice,
    Operator,
    SignedInAnew,
    Expired,
}

fn client(stack: &Stack) -> SessionClient {
    stack.sessions.client()
}

/// Ends the session of `browser`; `other` belongs to the same person.
async fn end(stack: &Stack, ending: Ending, browser: &mut Browser, other: &mut Browser) {
    match ending {
        Ending::Logout => {
            assert_eq!(browser.clone().visit("/api/auth/logout").await.status, 302);
        }
        Ending::BackChannel => {
            let token = stack
                .provider
                .logout_token(json!({"sid": "sid-here", "sub": null}));
            let form = format!("logout_token={token}");
            let answer = other.post("/api/auth/backchannel-logout", &[], &form).await;
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        Ending::OtherDevice => {
            let path = "/session.v1.BrowserSessionService/EndMyOtherSessions";
            let headers = [
                ("x-csrf", "1"),
                ("sec-fetch-site", "same-origin"),
                ("content-type", "application/grpc-web+proto"),
            ];
            let empty = Some("\0\0\0\0\0".to_owned());
            let answer = other.send(reqwest::Method::POST, path, &headers, empty).await;
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        Ending::Operator => {
            let request = ListSessionsRequest {
                issuer: stack.provider.issuer().to_owned(),
                subject: "alice".to_owned(),
                ..ListSessionsRequest::default()
            };
            let sessions = client(stack).list_sessions(request).await.unwrap().sessions;
            let here = sessions
                .into_iter()
                .find(|session| session.provider_sid == "sid-here")
                .unwrap();
            let by = Some(end_session_request::By::Handle(here.handle));
            let request = EndSessionRequest {
                by,
                ..EndSessionRequest::default()
            };
            assert!(client(stack).end_session(request).await.unwrap().ended);
        }
        Ending::SignedInAnew => _ = browser.clone().sign_in().await,
        Ending::Expired => {
            stack.advance(50_000);
            let request = RollSessionRequest {
                session_id: other.jar["session"].split('.').next().unwrap().to_owned(),
                device: None,
            };
            assert!(client(stack).roll_session(request).await.unwrap().rolled);
            stack.advance(50_000);
        }
    }
}

async fn signed_in(stack: &Stack, sid: &str) -> Browser {
    stack.provider.script(|script| script.sid = Some(sid.to_owned()));
    let mut browser = stack.browser();
    browser.sign_in().await;
    browser
}

async fn scene(cache_secs: &str, ending: Ending) {
    let case = format!("{ending:?}, cache {cache_secs}");
    let world = world(cache_secs).await;
    let stack = &world.stack;
    let mut here = signed_in(stack, "sid-here").await;
    let mut other = signed_in(stack, "sid-other").await;
    let mut there = stack.beside().await;
    there.jar = here.jar.clone();
    let mut streams = open(&here, "guarded").await;
    streams.extend(open(&there, "guarded").await);
    let mut others = open(&other, "guarded").await;
    let mut unguarded = open(&here, "open").await;
    assert_eq!(stack.edge.streaming_sessions(), 2, "{case}");
    all_go_on(&mut streams, &case).await;
    end(stack, ending, &mut here, &mut other).await;
    all_end(streams, Instant::now(), &case).await;
    all_go_on(&mut others, &case).await;
    all_go_on(&mut unguarded, &case).await;
    drop(others);
    let deadline = Instant::now() + Duration::from_secs(10);
    while stack.edge.streaming_sessions() > 0 {
        assert!(
            Instant::now() < deadline,
            "{case}: streams that are over are kept"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_stream_of_a_session_ends_with_it_and_no_other_one() {
    for ending in [
        Ending::Logout,
        Ending::BackChannel,
        Ending::OtherDevice,
        Ending::Operator,
        Ending::SignedInAnew,
        Ending::Expired,
    ] {
        for cache_secs in ["0", "60"] {
            scene(cache_secs, ending).await;
        }
    }
}

/// Without the session service, endings are unknown; when it returns, the edge finds them.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_ends_no_stream_and_hides_no_ending() {
    for cache_secs in ["0", "60"] {
        let world = world(cache_secs).await;
        let stack = &world.stack;
        let mut here = signed_in(stack, "sid-here").await;
        let mut other = signed_in(stack, "sid-other").await;
        let streams = open(&here, "guarded").await;
        let mut others = open(&other, "guarded").await;
        let second = stack.sessions.beside().await;
        let mut elsewhere = stack.beside_at(&second).await;
        elsewhere.jar = other.jar.clone();
        stack.sessions.stop().await;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        all_go_on(&mut others, "an outage").await;
        end(stack, Ending::OtherDevice, &mut here, &mut elsewhere).await;
        stack.sessions.start_again().await;
        let back = Instant::now() + Duration::from_secs(5);
        while other.get("/api/auth/me").await.status != 200 {
            assert!(Instant::now() < back);
        }
        all_end(
            streams,
            Instant::now() + Duration::from_secs(2),
            "after an outage",
        )
        .await;
        all_go_on(&mut others, "after an outage").await;
    }
}
