//! Messages with an ambiguous end. Each is sent as bytes, with another request behind it.

use axum::Router;
use axum::body::Bytes;
use axum::routing::any;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::gateway::Gateway;
use crate::support::Upstream;

const SMUGGLED: &str = "GET /public/smuggled HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// Rejected messages: the answer is 400 (or 505, 501) and the connection ends.
const REFUSED: [(&str, &str); 21] = [
    (
        "two lengths",
        "Content-Length: 5\r\nContent-Length: 6\r\n\r\n0\r\n\r\n",
    ),
    ("a list of lengths", "Content-Length: 5, 6\r\n\r\n0\r\n\r\n"),
    ("a signed length", "Content-Length: +5\r\n\r\n0\r\n\r\n"),
    ("a negative length", "Content-Length: -1\r\n\r\n0\r\n\r\n"),
    ("a length in hex", "Content-Length: 0x5\r\n\r\n0\r\n\r\n"),
    (
        "a length beyond all numbers",
        "Content-Length: 99999999999999999999999\r\n\r\n0\r\n\r\n",
    ),
    (
        "chunked not last",
        "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    ),
    (
        "an unknown coding",
        "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "identity with a length",
        "Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    ),
    (
        "a space before the colon",
        "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "a folded header",
        "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "a header that continues",
        "X-A: b\r\n\tTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "a header without a colon",
        "Transfer-Encoding chunked\r\n\r\n0\r\n\r\n",
    ),
    ("a null in a header", "X-A: b\0c\r\nContent-Length: 0\r\n\r\n"),
    (
        "a bare CR in a header",
        "X-A: b\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "a control in a header's name",
        "X\u{1}A: b\r\nContent-Length: 0\r\n\r\n",
    ),
    (
        "a chunk size with a sign",
        "Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n",
    ),
    (
        "a chunk size in 0x",
        "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
    ),
    (
        "a chunk size beyond all numbers",
        "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n",
    ),
    (
        "a chunk longer than it says",
        "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
    ),
    (
        "an empty chunk size",
        "Transfer-Encoding: chunked\r\n\r\n\r\n\r\n",
    ),
];

async fn answers(gateway: &Gateway, head: &str) -> Vec<String> {
    answers_at("/public/a", gateway, head).await
}

async fn answers_at(path: &str, gateway: &Gateway, head: &str) -> Vec<String> {
    let request = format!("POST {path} HTTP/1.1\r\nHost: a\r\n{head}{SMUGGLED}");
    statuses(&gateway.stack.raw(&request).await)
}

fn statuses(raw: &str) -> Vec<String> {
    raw.lines()
        .filter(|line| line.starts_with("HTTP/1."))
        .map(|line| line.split(' ').nth(1).unwrap_or_default().to_owned())
        .collect()
}

/// An upstream that reads each request to its end before it answers, and the rule to it.
async fn reading() -> (Upstream, String) {
    let router = Router::new().fallback(any(|body: Bytes| async move { body.len().to_string() }));
    let upstream = Upstream::of(router, None).await;
    let rule = format!(
        "[[route]]\npath = \"/own/*\"\nguard = \"none\"\nupstream = \"{}\"\n",
        upstream.url()
    );
    (upstream, rule)
}

fn seen(gateway: &Gateway) -> Vec<String> {
    let requests = gateway.upstream.requests();
    requests.into_iter().map(|seen| seen.target).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_end_in_two_places_is_refused_and_nothing_behind_it_is_read() {
    // The edge forwards an answer that comes before the body is read, for any body.
    let (_reader, rule) = reading().await;
    let gateway = Gateway::start(&rule, &[]).await;
    for (name, head) in REFUSED {
        let answers = answers_at("/own/a", &gateway, head).await;
        assert!(
            answers.len() <= 1
                && answers
                    .iter()
                    .all(|status| status.starts_with('4') || status.starts_with("50")),
            "{name}: {answers:?}"
        );
        let smuggled = seen(&gateway)
            .into_iter()
            .filter(|target| target.contains("smuggled"))
            .count();
        assert_eq!(smuggled, 0, "{name}");
    }
}

/// After an answer that does not wait for its request's body, the edge keeps neither connection open: later
/// bytes could be read as a request or a body.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_behind_a_body_whose_answer_came_before_it() {
    let gateway = Gateway::start("", &[]).await;
    for (head, rest) in [
        ("Transfer-Encoding: chunked\r\n\r\n", "1\r\nabc\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n\r\n1\r\na", "\r\n0x0\r\n\r\n"),
        ("Content-Length: 100\r\n\r\n", "short"),
        ("Content-Length: 100\r\n\r\nshort", ""),
    ] {
        let mut stream = TcpStream::connect(gateway.stack.address()).await.unwrap();
        let head = format!("POST /public/a HTTP/1.1\r\nHost: a\r\n{head}");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut raw = Vec::new();
        while !raw.ends_with(b"upstream") {
            assert_ne!(stream.read_buf(&mut raw).await.unwrap(), 0, "{head:?}");
        }
        stream
            .write_all(format!("{rest}{SMUGGLED}").as_bytes())
            .await
            .unwrap();
        // Pending answers still arrive before the end.
        stream.shutdown().await.unwrap();
        stream.read_to_end(&mut raw).await.unwrap();
        let raw = String::from_utf8(raw).unwrap();
        assert_eq!(statuses(&raw), ["200"], "{head:?}: {raw}");
        assert!(raw.to_lowercase().contains("\r\nconnection: close\r\n"), "{raw}");
        gateway.stack.browser().get("/public/next").await;
    }
    let requests = gateway.upstream.requests();
    assert!(
        requests.iter().all(|seen| !seen.target.contains("smuggled")),
        "{requests:?}"
    );
    let halves = requests.iter().filter(|seen| seen.target == "/public/a");
    for half in halves {
        let on_it = requests.iter().filter(|seen| seen.connection == half.connection);
        let behind = on_it.skip_while(|seen| seen.target != "/public/a").count();
        assert_eq!(behind, 1, "{requests:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_length_beside_chunks_counts_for_nothing_and_ends_the_connection() {
    let gateway = Gateway::start("", &[]).await;
    for head in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: Chunked\r\nContent-Length: 500\r\n\r\n0\r\n\r\n",
    ] {
        answers(&gateway, head).await;
    }
    let requests = gateway.upstream.requests();
    assert!(
        requests.iter().all(|seen| seen.target == "/public/a"),
        "{requests:?}"
    );
    assert!(
        requests
            .iter()
            .all(|seen| !(seen.headers.contains_key("content-length")
                && seen.headers.contains_key("transfer-encoding"))),
        "what goes on is framed anew: {requests:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_chunks_say_beside_their_data_is_not_passed_on_and_is_bounded() {
    let (_reader, rule) = reading().await;
    let gateway = Gateway::start(&rule, &[]).await;
    let small = "Transfer-Encoding: chunked\r\n\r\n1;a=\"b\r\n0\"\r\nx\r\n0\r\n\r\n";
    answers(&gateway, small).await;
    let flood = format!(
        "Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
        format!("1;{}\r\nx\r\n", "e".repeat(2_000)).repeat(200)
    );
    let flood = format!("POST /own/a HTTP/1.1\r\nHost: a\r\n{flood}{SMUGGLED}");
    let flooded = gateway.stack.raw(&flood).await;
    assert!(!flooded.contains(" 200 "), "{flooded}");
    assert!(!seen(&gateway).iter().any(|target| target.contains("smuggled")));
    let trailers = "POST /public/t HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: x-auth-subject\r\n\r\n\
         0\r\nX-Auth-Subject: admin\r\n\r\n";
    assert!(gateway.stack.raw(trailers).await.starts_with("HTTP/1.1 200"));
    let requests = gateway.upstream.requests();
    let with_trailers = requests.iter().find(|seen| seen.target == "/public/t").unwrap();
    assert_eq!(with_trailers.all("x-auth-subject"), Vec::<String>::new());
    assert_eq!(with_trailers.all("trailer"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_one_host_and_none_of_its_forms_changes_the_rules() {
    let gateway = Gateway::start("", &[]).await;
    let status = |raw: String| raw.split(' ').nth(1).unwrap_or_default().to_owned();
    for (request, expected) in [
        ("GET /public/a HTTP/1.1\r\nConnection: close\r\n\r\n", "400"),
        (
            "GET /public/a HTTP/1.1\r\nHost: a\r\nHost: a\r\nConnection: close\r\n\r\n",
            "400",
        ),
        ("GET /public/a HTTP/1.0\r\n\r\n", "200"),
        (
            "GET http://evil.example/public/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            "200",
        ),
        (
            "GET http://evil.example/api/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            "401",
        ),
        (
            "GET /api/a HTTP/1.1\r\nHost: APP.EXAMPLE.COM.:8443\r\nConnection: close\r\n\r\n",
            "401",
        ),
        (
            "GET /api/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            "401",
        ),
        (
            "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nConnection: close\r\n\r\n",
            "400",
        ),
        (
            "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            "400",
        ),
        (
            "GET  /public/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            "400",
        ),
        (
            "GET /public/a HTTP/9.9\r\nHost: a\r\nConnection: close\r\n\r\n",
            "400",
        ),
    ] {
        assert_eq!(status(gateway.stack.raw(request).await), expected, "{request:?}");
    }
    let requests = gateway.upstream.requests();
    assert!(
        requests
            .iter()
            .all(|seen| seen.all("host") == [gateway.upstream.address().to_string()])
    );
    let own = gateway.stack.base().strip_prefix("http://").unwrap();
    assert!(requests.iter().all(|seen| seen.all("x-forwarded-host") == [own]));
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_are_few_and_short() {
    let gateway = Gateway::start("", &[]).await;
    let many = "X-A: b\r\n".repeat(101);
    let long = format!("X-A: {}\r\n", "b".repeat(70_000));
    for headers in [many, long] {
        let raw = gateway
            .stack
            .raw(&format!("GET /public/a HTTP/1.1\r\nHost: a\r\n{headers}\r\n"))
            .await;
        assert!(raw.starts_with("HTTP/1.1 431"), "{}", &raw[..raw.len().min(80)]);
    }
    assert_eq!(seen(&gateway).len(), 0);
}
