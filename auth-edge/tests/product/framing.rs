//! The framing towards an upstream follows from the sent body, never from a header (RFC 9112, section 6.3).
//! Each test also checks the next person's request.

use std::time::{Duration, Instant};

use crate::gateway::Gateway;
use crate::support::recorder::{Message, Recorder, When};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const UPGRADE: &str = "Connection: close, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const PREFLIGHT: &str = "Origin: https://evil.example\r\nAccess-Control-Request-Method: PUT\r\n";

async fn behind(upstream: &Recorder) -> Gateway {
    let url = upstream.url();
    let rules = format!(
        "[[route]]\npath = \"/guarded/*\"\nguard = \"api\"\nupstream = \"{url}\"\n\
         [[route]]\npath = \"/open/*\"\nguard = \"none\"\nupstream = \"{url}\"\n"
    );
    Gateway::start(&rules, &[]).await
}

/// Waits for a message with this request line, which the next person sends.
async fn next(gateway: &Gateway, upstream: &Recorder) -> Message {
    let mut browser = gateway.signed_in().await;
    let answer = browser.get("/guarded/next").await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (200, "ok"),
        "{:?}",
        upstream.messages()
    );
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let found = upstream
            .messages()
            .into_iter()
            .find(|message| message.line() == "GET /guarded/next HTTP/1.1");
        match found {
            Some(message) => return message,
            None => assert!(Instant::now() < deadline, "{:?}", upstream.messages()),
        }
        tokio::task::yield_now().await;
    }
}

fn status(raw: &str) -> &str {
    raw.split(' ').nth(1).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_takes_nothing_of_the_next_request() {
    for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        for (length, body) in [
            ("", ""),
            ("Content-Length: 0\r\n", ""),
            ("Content-Length: 60\r\n", ""),
            ("Content-Length: 5\r\n", "GET /"),
            ("Transfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            ("Transfer-Encoding: chunked\r\n", "5\r\nGET /\r\n0\r\n\r\n"),
            (
                "Content-Length: 60\r\nTransfer-Encoding: chunked\r\n",
                "0\r\n\r\n",
            ),
        ] {
            let upstream = Recorder::start(When::Early, OK).await;
            let gateway = behind(&upstream).await;
            let request =
                format!("{method} /open/a HTTP/1.1\r\nHost: a\r\n{UPGRADE}{PREFLIGHT}{length}\r\n{body}");
            let raw = gateway.stack.raw(&request).await;
            let plain = method == "GET" && matches!(length, "" | "Content-Length: 0\r\n");
            let expected = if plain { "200" } else { "400" };
            assert_eq!(status(&raw), expected, "{request}");
            let next = next(&gateway, &upstream).await;
            assert_eq!(next.all("x-auth-subject").len(), 1, "{request}");
            let messages = upstream.messages();
            assert_eq!(
                messages.len(),
                if plain { 2 } else { 1 },
                "{request}: {messages:?}"
            );
            assert_eq!(
                next.connection + 1,
                messages.len(),
                "a connection that carried an upgrade is not used again"
            );
            for message in &messages {
                assert_eq!(
                    (message.all("content-length").len(), message.body.as_str()),
                    (0, ""),
                    "{message:?}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preflight_has_no_body_and_asks_for_no_upgrade() {
    let upstream = Recorder::start(When::Late, OK).await;
    let gateway = behind(&upstream).await;
    for (more, body) in [
        (UPGRADE, ""),
        ("Content-Length: 5\r\nConnection: close\r\n", "hello"),
        (
            "Transfer-Encoding: chunked\r\nConnection: close\r\n",
            "5\r\nhello\r\n0\r\n\r\n",
        ),
        ("Transfer-Encoding: chunked\r\nConnection: close\r\n", "0\r\n\r\n"),
    ] {
        let request = format!("OPTIONS /guarded/a HTTP/1.1\r\nHost: a\r\n{PREFLIGHT}{more}\r\n{body}");
        let raw = gateway.stack.raw(&request).await;
        assert!(matches!(status(&raw), "400" | "401"), "{request}: {raw}");
    }
    assert_eq!(
        upstream.messages().len(),
        0,
        "nothing of it comes through the guard"
    );
    for more in ["", "Content-Length: 0\r\n", "Upgrade: websocket\r\n"] {
        let request =
            format!("OPTIONS /guarded/a HTTP/1.1\r\nHost: a\r\n{PREFLIGHT}Connection: close\r\n{more}\r\n");
        assert_eq!(status(&gateway.stack.raw(&request).await), "200", "{request}");
    }
    assert!(next(&gateway, &upstream).await.body.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_spelling_of_a_framing_header_reaches_an_upstream() {
    let upstream = Recorder::start(When::Early, OK).await;
    let gateway = behind(&upstream).await;
    let spellings = [
        "Content_Length: 60",
        "content.length: 60",
        "Transfer_Encoding: chunked",
        "transfer.encoding: chunked",
        "TE: trailers, chunked",
        "Trailer: content-length",
        "Keep-Alive: 5",
        "Proxy-Connection: keep-alive",
        "Expect: 100-continue",
        "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA",
        "http2_settings: AAMAAABkAARAAAAAAAIAAAAA",
        "Upgrade: h2c",
        "X-Named: 1",
        "X-Other: 1",
    ];
    for method in ["GET", "POST", "DELETE", "OPTIONS"] {
        for framing in ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"] {
            let body = if framing.starts_with('T') {
                "5\r\nhello\r\n0\r\n\r\n"
            } else {
                "hello"
            };
            let request = format!(
                "{method} /open/a HTTP/1.1\r\nHost: a\r\nConnection: close, x-named, HTTP2-Settings, upgrade, content-length\r\n\
                 Connection: caf\u{e9}, x-other\r\n{framing}{}\r\n\r\n{body}",
                spellings.join("\r\n")
            );
            let raw = gateway.stack.raw(&request).await;
            assert_eq!(
                status(&raw.replacen("HTTP/1.1 100 Continue\r\n\r\n", "", 1)),
                "200",
                "{request}\n{raw}"
            );
        }
    }
    next(&gateway, &upstream).await;
    for message in upstream.messages() {
        for spelling in spellings {
            let name = spelling.split(':').next().unwrap();
            assert!(message.all(name).is_empty(), "{name} in {message:?}");
        }
        let lengths = message.all("content-length").len() + message.all("transfer-encoding").len();
        let has_body = !message.line().contains("/next");
        assert_eq!(lengths, usize::from(has_body), "{message:?}");
        assert!(
            !has_body || message.body.contains("hello"),
            "no body is lost: {message:?}"
        );
        assert!(message.all("connection").is_empty(), "{message:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_body_is_said_to_be_empty_where_one_is_expected() {
    let upstream = Recorder::start(When::Late, OK).await;
    let gateway = behind(&upstream).await;
    for (method, expected) in [
        ("POST", &["0"][..]),
        ("PUT", &["0"]),
        ("PATCH", &["0"]),
        ("GET", &[]),
        ("DELETE", &[]),
    ] {
        let request = format!("{method} /open/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_eq!(status(&gateway.stack.raw(&request).await), "200");
        let message = upstream.messages().pop().unwrap();
        assert_eq!(message.all("content-length"), expected, "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_cannot_be_read_is_its_clients_mistake_and_touches_nobody_else() {
    let upstream = Recorder::start(When::Late, OK).await;
    let gateway = behind(&upstream).await;
    for body in ["no-size\r\n", "5\r\nhello\r\nno-size\r\n"] {
        let head = "POST /open/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let raw = gateway.stack.raw(&format!("{head}{body}")).await;
        assert_eq!(status(&raw), "400", "{body}: {raw}");
    }
    let next = next(&gateway, &upstream).await;
    assert_eq!((next.all("x-auth-subject").len(), next.body.as_str()), (1, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_spelling_of_a_method_opens_a_tunnel_or_an_echo() {
    let upstream = Recorder::start(When::Late, OK).await;
    let gateway = behind(&upstream).await;
    for method in [
        "CONNECT", "connect", "Connect", "TRACE", "trace", "Trace", "TRACK", "track",
    ] {
        let request = format!("{method} /open/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let raw = gateway.stack.raw(&request).await;
        assert!(matches!(status(&raw), "400" | "405"), "{method}: {raw}");
    }
    assert_eq!(upstream.messages().len(), 0);
}

/// Answers with an ambiguous end: leftover bytes never become another answer.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_upstream_sends_beyond_its_answer_answers_nobody() {
    const EVIL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let answers: [&'static str; 5] = [
        "HTTP/1.1 204 No Content\r\nContent-Length: 42\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 42\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    ];
    assert!(answers.iter().all(|answer| answer.ends_with(EVIL)));
    for answer in answers {
        let upstream = Recorder::start(When::Late, answer).await;
        let gateway = behind(&upstream).await;
        for method in ["GET", "HEAD", "POST"] {
            for _ in 0..3 {
                let request = format!("{method} /open/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
                let raw = gateway.stack.raw(&request).await;
                assert!(!raw.contains("evil"), "{method} {answer:?}: {raw}");
            }
        }
    }
}
