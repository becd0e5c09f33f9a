//! Shares: one address, body or session leaves room for others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::any;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;

use crate::gateway::Gateway;
use crate::support::Upstream;

const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// A connection from its own address.
pub(crate) async fn from(address: [u8; 4], to: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((address, 0))).unwrap();
    socket.connect(to.parse().unwrap()).await.unwrap()
}

/// Sends a request and returns the head of its answer.
pub(crate) async fn ask(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    head(stream).await
}

async fn head(stream: &mut TcpStream) -> String {
    let mut answer = vec![0; 4096];
    let read = tokio::time::timeout(LONGEST_WAIT, stream.read(&mut answer)).await;
    let length = read.expect("an answer").unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

/// An upstream that holds answers below /own/slow until released, and counts requests.
async fn slow() -> (Upstream, Arc<Semaphore>, Arc<Semaphore>) {
    let (began, go_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (begin, wait) = (Arc::clone(&began), Arc::clone(&go_on));
    let slow = move || {
        let (begin, wait) = (Arc::clone(&begin), Arc::clone(&wait));
        async move {
            begin.add_permits(1);
            wait.acquire().await.unwrap().forget();
            "done"
        }
    };
    let router = Router::new()
        .route("/own/slow", any(slow))
        .route("/own/read", any(|_: Bytes| async { "read" }));
    (Upstream::of(router, None).await, began, go_on)
}

fn rule(upstream: &Upstream) -> String {
    format!(
        "[[route]]\npath = \"/own/*\"\nguard = \"none\"\nupstream = \"{}\"\n",
        upstream.url()
    )
}

const SLOW: &str = "GET /own/slow HTTP/1.1\r\nHost: a\r\n\r\n";
const STATUS: &str = "GET /api/auth/status HTTP/1.1\r\nHost: a\r\n\r\n";

async fn acquired(count: &Semaphore, many: u32) {
    let all = tokio::time::timeout(LONGEST_WAIT, count.acquire_many(many)).await;
    all.expect("all of them are there").unwrap().forget();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_takes_its_share_of_requests_and_others_have_theirs() {
    let (upstream, began, go_on) = slow().await;
    let settings = [("concurrent_requests", "16")];
    let gateway = Gateway::start(&rule(&upstream), &settings).await;
    let edge = gateway.stack.address();
    let mut greedy = Vec::new();
    for _ in 0..4 {
        let mut stream = from([127, 0, 0, 2], edge).await;
        stream.write_all(SLOW.as_bytes()).await.unwrap();
        greedy.push(stream);
    }
    acquired(&began, 4).await;
    let refused = ask(&mut from([127, 0, 0, 2], edge).await, SLOW).await;
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    assert!(
        refused.to_ascii_lowercase().contains("retry-after: 1\r\n"),
        "{refused}"
    );
    let other = ask(&mut from([127, 0, 0, 3], edge).await, STATUS).await;
    assert!(other.starts_with("HTTP/1.1 200"), "{other}");
    go_on.add_permits(4);
    for stream in &mut greedy {
        assert!(head(stream).await.starts_with("HTTP/1.1 200"));
    }
    let again = ask(&mut from([127, 0, 0, 2], edge).await, STATUS).await;
    assert!(again.starts_with("HTTP/1.1 200"), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_browsers_prove_their_device_no_refusal_ends_the_binding() {
    let (upstream, began, go_on) = slow().await;
    let settings = [("concurrent_requests", "4"), ("EDGE_BASE_URL", "https://a")];
    let gateway = Gateway::start(&rule(&upstream), &settings).await;
    let edge = gateway.stack.address();
    let mut greedy = from([127, 0, 0, 2], edge).await;
    greedy.write_all(SLOW.as_bytes()).await.unwrap();
    acquired(&began, 1).await;
    for (path, status) in [("register", 503), ("refresh?session=a", 503), ("elsewhere", 429)] {
        let request =
            format!("POST /api/auth/device/{path} HTTP/1.1\r\nHost: a\r\ncontent-length: 0\r\n\r\n");
        let refused = ask(&mut from([127, 0, 0, 2], edge).await, &request).await;
        assert!(refused.starts_with(&format!("HTTP/1.1 {status}")), "{refused}");
    }
    go_on.add_permits(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_who_are_signed_in_are_not_held_to_the_share_of_their_address() {
    let (upstream, began, _go_on) = slow().await;
    let settings = [("concurrent_requests", "16")];
    let gateway = Gateway::start(&rule(&upstream), &settings).await;
    let edge = gateway.stack.address();
    let (name, value) = gateway.stack.session_cookie().await;
    let signed_in = SLOW.replace("Host", &format!("Cookie: {name}={value}\r\nHost"));
    let forged = SLOW.replace(
        "Host",
        &format!("Cookie: {name}={}.{}\r\nHost", "a".repeat(32), "b".repeat(43)),
    );
    let mut open = Vec::new();
    for request in [SLOW, SLOW, SLOW, SLOW, &signed_in] {
        let mut stream = from([127, 0, 0, 2], edge).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        open.push(stream);
        acquired(&began, 1).await;
    }
    for beyond in [SLOW, &signed_in, &forged] {
        let refused = ask(&mut from([127, 0, 0, 2], edge).await, beyond).await;
        assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_trusted_proxy_the_share_is_the_clients() {
    let (upstream, began, _go_on) = slow().await;
    let settings = [
        ("concurrent_requests", "8"),
        ("EDGE_TRUSTED_PROXIES", "127.0.0.9"),
    ];
    let gateway = Gateway::start(&rule(&upstream), &settings).await;
    let edge = gateway.stack.address();
    let by =
        |request: &str, client: &str| request.replace("Host", &format!("X-Forwarded-For: {client}\r\nHost"));
    let mut open = Vec::new();
    for client in ["2001:db8::1", "2001:db8::2"] {
        let mut stream = from([127, 0, 0, 9], edge).await;
        stream.write_all(by(SLOW, client).as_bytes()).await.unwrap();
        open.push(stream);
    }
    acquired(&began, 2).await;
    let refused = ask(&mut from([127, 0, 0, 9], edge).await, &by(STATUS, "2001:db8::3")).await;
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    let other = ask(
        &mut from([127, 0, 0, 9], edge).await,
        &by(STATUS, "2001:db8:0:1::1"),
    )
    .await;
    assert!(other.starts_with("HTTP/1.1 200"), "{other}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_waited_for_take_no_place_of_other_requests() {
    let (upstream, ..) = slow().await;
    let settings = [("concurrent_requests", "2")];
    let gateway = Gateway::start(&rule(&upstream), &settings).await;
    let edge = gateway.stack.address();
    let bodies = [
        "POST /own/read HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n1".to_owned(),
        format!(
            "POST /session.v1.BrowserSessionService/GetCurrentSession HTTP/1.1\r\nHost: {edge}\r\nX-Csrf: 1\r\n\
             Sec-Fetch-Site: same-origin\r\nContent-Type: application/grpc-web+proto\r\nContent-Length: 100\r\n\r\n"
        ),
    ];
    // Each from its own address, which has a share of one.
    let begun = async |last: u8, request: &str| {
        let mut stream = from([127, 0, 0, last], edge).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    };
    let mut waiting = [begun(4, &bodies[0]).await, begun(5, &bodies[1]).await];
    // Once a third body is rejected, both count. If a body collided with the third, the test sends it again.
    let third =
        "POST /own/read HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nConnection: close\r\n\r\n1234567890";
    let deadline = tokio::time::Instant::now() + LONGEST_WAIT;
    while !ask(&mut from([127, 0, 0, 3], edge).await, third)
        .await
        .starts_with("HTTP/1.1 503")
    {
        assert!(tokio::time::Instant::now() < deadline, "bodies are bounded too");
        for ((stream, request), last) in waiting.iter_mut().zip(&bodies).zip(4..) {
            let answered = tokio::time::timeout(Duration::from_millis(5), stream.readable());
            if answered.await.is_ok() {
                *stream = begun(last, request).await;
            }
        }
    }
    for _ in 0..5 {
        let other = ask(&mut from([127, 0, 0, 3], edge).await, STATUS).await;
        assert!(other.starts_with("HTTP/1.1 200"), "{other}");
    }
    waiting[0].write_all(b"234567890").await.unwrap();
    assert!(head(&mut waiting[0]).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_trickles_is_given_up_and_so_is_its_upstream() {
    let (upstream, ..) = slow().await;
    let settings = [("body_silence_secs", "1")];
    let gateway = Gateway::start(&rule(&upstream), &settings).await;
    let edge = gateway.stack.address();
    for head_of in [
        "POST /own/read HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n",
        "POST /own/read HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\nContent-Length: 100000\r\n\r\n",
        "POST /api/auth/backchannel-logout HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\n",
    ] {
        let (mut reading, mut writing) = from([127, 0, 0, 2], edge).await.into_split();
        writing.write_all(head_of.as_bytes()).await.unwrap();
        let trickle = tokio::spawn(async move {
            let mut every = tokio::time::interval(Duration::from_millis(300));
            loop {
                every.tick().await;
                if writing.write_all(b"a").await.is_err() {
                    return;
                }
            }
        });
        let mut answer = vec![0; 4096];
        let read = tokio::time::timeout(LONGEST_WAIT, reading.read(&mut answer)).await;
        let length = read.expect("it trickles for ever").unwrap();
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        assert!(answer.starts_with("HTTP/1.1 408"), "{head_of} {answer}");
        trickle.abort();
    }
    // A large body that arrives fast is still accepted.
    let large = "a".repeat(2_000_000);
    let answer = gateway.stack.browser().post("/own/read", &[], &large).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "read"));
}
