//! Requests that take too long, are too large, or are too many.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::any;
use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};

use crate::gateway::Gateway;
use crate::shares::{ask, from};
use crate::support::Upstream;

const LONGEST_WAIT: Duration = Duration::from_secs(20);

fn rule(upstream: &str) -> String {
    format!("[[route]]\npath = \"/own/*\"\nguard = \"none\"\nupstream = \"{upstream}\"\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_does_not_answer_is_504() {
    let router = Router::new().route("/own/never", any(std::future::pending::<()>));
    let upstream = Upstream::of(router, None).await;
    let gateway = Gateway::start(&rule(&upstream.url()), &[("EDGE_UPSTREAM_TIMEOUT", "1")]).await;
    assert_eq!(gateway.stack.browser().get("/own/never").await.status, 504);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_silent_within_its_body_is_408() {
    let gateway = Gateway::start("", &[("body_silence_secs", "1")]).await;
    let head = "POST /public/a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n1";
    let answer = gateway.stack.raw(head).await;
    // The edge forwards an answer that comes before the body is complete; this upstream reads no body.
    assert!(
        answer.starts_with("HTTP/1.1 408") || answer.starts_with("HTTP/1.1 200"),
        "{answer}"
    );
    let reading = Router::new().route("/own/read", any(|_: Bytes| async {}));
    let upstream = Upstream::of(reading, None).await;
    let gateway = Gateway::start(&rule(&upstream.url()), &[("body_silence_secs", "1")]).await;
    let answer = gateway.stack.raw(&head.replace("/public/a", "/own/read")).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_beyond_its_limit_is_413_whether_it_says_so_or_not() {
    let received = Arc::new(Semaphore::new(0));
    let count = Arc::clone(&received);
    let reading = Router::new()
        .fallback(any(|body: Bytes| async move { body.len().to_string() }))
        .layer(axum::middleware::map_request(
            move |request: axum::extract::Request| {
                count.add_permits(1);
                std::future::ready(request)
            },
        ));
    let upstream = Upstream::of(reading, None).await;
    let url = upstream.url();
    let rules = format!(
        "{}[[route]]\npath = \"/own/more/*\"\nguard = \"none\"\nupstream = \"{url}\"\nmax_body = 20\n",
        rule(&url)
    );
    let rules = rules.replacen("guard", "max_body = 10\nguard", 1);
    let gateway = Gateway::start(&rules, &[]).await;
    let mut browser = gateway.stack.browser();
    for (path, length, status) in [
        ("/own/a", 10, 200),
        ("/own/a", 11, 413),
        ("/own/more/a", 20, 200),
        ("/own/more/a", 21, 413),
    ] {
        let answer = browser.post(path, &[], &"x".repeat(length)).await;
        assert_eq!(answer.status, status, "{path} {length}");
    }
    assert_eq!(
        received.available_permits(),
        2,
        "what says it is too large is sent to nobody"
    );
    for (length, status) in [(10, "200"), (11, "413")] {
        let chunk = "x".repeat(length);
        let request = format!(
            "POST /own/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{chunk}\r\n0\r\n\r\n"
        );
        let answer = gateway.stack.raw(&request).await;
        assert_eq!(answer.split(' ').nth(1), Some(status), "{length}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_at_once_than_allowed_is_503_and_says_when_to_come_back() {
    let (began, go_on) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let (begin, wait) = (Arc::clone(&began), Arc::clone(&go_on));
    let slow = move || {
        let (begin, wait) = (Arc::clone(&begin), Arc::clone(&wait));
        async move {
            begin.notify_one();
            wait.acquire().await.unwrap().forget();
            "done"
        }
    };
    let upstream = Upstream::of(Router::new().route("/own/slow", any(slow)), None).await;
    let limit = [("concurrent_requests", "1")];
    let gateway = Gateway::start(&rule(&upstream.url()), &limit).await;
    // From another address than the second, which has its own share.
    let mut first = from([127, 0, 0, 2], gateway.stack.address()).await;
    let first =
        tokio::spawn(async move { ask(&mut first, "GET /own/slow HTTP/1.1\r\nHost: a\r\n\r\n").await });
    began.notified().await;
    let mut second = gateway.stack.browser();
    let shed = second.get("/public/a").await;
    assert_eq!((shed.status, shed.header("retry-after")), (503, "5"));
    assert_eq!(shed.json()["error"], "overloaded");
    assert_eq!(gateway.upstream.requests().len(), 0);
    go_on.add_permits(1);
    assert!(first.await.unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(second.get("/public/a").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_whose_message_never_comes_give_their_places_back() {
    const PERMITS: usize = 8;
    let permits = PERMITS.to_string();
    let settings = [
        ("concurrent_requests", permits.as_str()),
        ("body_silence_secs", "1"),
    ];
    let gateway = Gateway::start("", &settings).await;
    let address = gateway.stack.address();
    let mut silent = Vec::new();
    // A slow trickle of bytes is not a message.
    for beginning in ["", "\0", "\0\0\0"] {
        for last in 2..2 + u8::try_from(PERMITS).unwrap() {
            let head = format!(
                "POST /session.v1.BrowserSessionService/GetCurrentSession HTTP/1.1\r\nHost: {address}\r\nX-Csrf: 1\r\n\
                 Sec-Fetch-Site: same-origin\r\nContent-Type: application/grpc-web+proto\r\nContent-Length: 100\r\n\r\n{beginning}"
            );
            let mut stream = from([127, 0, 0, last], address).await;
            stream.write_all(head.as_bytes()).await.unwrap();
            silent.push(stream);
        }
    }
    // Connections with a place get a timeout answer. The others learn at once that there is no place, or that
    // their address has its share. The edge reads connections in no order.
    let mut late = 0;
    for mut stream in silent {
        let mut answer = vec![0; 4096];
        let read = tokio::time::timeout(LONGEST_WAIT, stream.read(&mut answer)).await;
        let length = read.expect("a permit is never given back").unwrap();
        let head = String::from_utf8_lossy(&answer[..length]).into_owned();
        late += usize::from(head.contains("grpc-status: 4"));
        let is_refused = head.starts_with("HTTP/1.1 503") || head.starts_with("HTTP/1.1 429");
        assert!(head.contains("grpc-status: 4") || is_refused, "{head}");
    }
    assert!(late >= PERMITS, "{late}");
    assert_eq!(gateway.stack.browser().get("/api/auth/status").await.status, 200);
}

/// Accepts connections and reads a head on each. Closes the first of every pair and answers the second.
async fn hangs_up_every_other_time() -> (String, Arc<Semaphore>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let received = Arc::new(Semaphore::new(0));
    let count = Arc::clone(&received);
    tokio::spawn(async move {
        let mut answers = false;
        while let Ok((mut stream, _)) = listener.accept().await {
            read_head(&mut stream).await;
            count.add_permits(1);
            if answers {
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
                    .await;
            }
            answers = !answers;
        }
    });
    (format!("http://{address}"), received)
}

async fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_safe_is_sent_again_when_a_connection_breaks() {
    let (url, received) = hangs_up_every_other_time().await;
    let gateway = Gateway::start(&rule(&url), &[]).await;
    let mut browser = gateway.stack.browser();
    let answer = browser.get("/own/a").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
    assert_eq!(received.available_permits(), 2, "sent twice");
    assert_eq!(browser.post("/own/a", &[], "a=b").await.status, 502);
    assert_eq!(received.available_permits(), 3, "sent once");
    assert_eq!(browser.get("/own/a").await.status, 200, "the answer of this pair");
    assert_eq!(
        browser.send(Method::DELETE, "/own/a", &[], None).await.status,
        502
    );
    assert_eq!(received.available_permits(), 5, "sent once");
}
