//! Answers framed by the body that was read (RFC 9112, sections 2.3, 5.1, 5.2 and 6.3).

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::gateway::Gateway;

/// A server that writes these bytes to each request and closes. Returns its address.
async fn server_that_says(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else { break };
                head.push(byte);
            }
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}")
}

/// What an HTTP/1.1 client receives for such an answer, in lower case: head and body, without chunk sizes.
async fn passed_on(method: &str, answer: &'static str) -> (String, String) {
    let upstream = server_that_says(answer).await;
    let rule = format!("[[route]]\npath = \"/said/*\"\nguard = \"none\"\nupstream = \"{upstream}\"\n");
    let gateway = Gateway::start(&rule, &[]).await;
    let request = format!("{method} /said/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let raw = gateway.stack.raw(&request).await.to_ascii_lowercase();
    let (head, body) = raw.split_once("\r\n\r\n").unwrap_or((&raw, ""));
    (head.to_owned(), body.to_owned())
}

fn lengths(head: &str) -> Vec<&str> {
    let lines = head
        .lines()
        .filter_map(|line| line.strip_prefix("content-length: "));
    lines.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_length_is_the_one_of_the_body() {
    for (answer, length, body) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            &[][..],
            "5\r\nhello\r\n0\r\n\r\n",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
            &["5"],
            "hello",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
            &["5"],
            "hello",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",
            &["5"],
            "hello",
        ),
        (
            "HTTP/1.1 200 OK\r\nX-A: b\r\n  c\r\nContent-Length: 5\r\n\r\nhello",
            &["5"],
            "hello",
        ),
        ("HTTP/1.1 200 OK\r\n\r\nhello", &[], "5\r\nhello\r\n0\r\n\r\n"),
        ("HTTP/1.0 200 OK\r\n\r\nhello", &[], "5\r\nhello\r\n0\r\n\r\n"),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            &["5"],
            "hello",
        ),
        (
            "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
            &[],
            "",
        ),
        (
            "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            &[],
            "",
        ),
        (
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello",
            &[],
            "",
        ),
    ] {
        let (head, got) = passed_on("GET", answer).await;
        assert!(head.starts_with("http/1.1 "), "{answer:?}: {head}");
        assert_eq!(
            (&lengths(&head)[..], got.as_str()),
            (length, body),
            "{answer:?}: {head}"
        );
        assert!(!head.contains("\r\n "), "{answer:?}: {head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_head_names_the_length_of_the_body_it_has_not() {
    for (answer, length) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", &["5"][..]),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", &["5"]),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n", &[]),
        ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", &[]),
        ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", &["5"]),
        ("HTTP/1.1 200 OK\r\n\r\n", &[]),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &[]),
    ] {
        let (head, body) = passed_on("HEAD", answer).await;
        assert!(head.starts_with("http/1.1 200"), "{answer:?}: {head}");
        assert_eq!(
            (&lengths(&head)[..], body.as_str()),
            (length, ""),
            "{answer:?}: {head}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_end_nobody_can_know_is_502() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ] {
        let (head, _) = passed_on("GET", answer).await;
        assert!(head.starts_with("http/1.1 502"), "{answer:?}: {head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_ends_too_early_is_no_whole_one() {
    for (answer, whole) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "9"),
        ("HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nhello", "9"),
    ] {
        let (head, body) = passed_on("GET", answer).await;
        // If the upstream ends at once, the edge closes before it sends the head.
        let is_named = head.is_empty() || lengths(&head) == [whole];
        assert!(is_named && body.len() < 9, "{answer:?}: {head}{body}");
    }
    let (_, body) = passed_on(
        "GET",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    )
    .await;
    assert!(!body.ends_with("0\r\n\r\n"), "{body}");
}
