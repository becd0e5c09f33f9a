//! Product analytics: nothing when off; when on, three addresses and no identifying data.

use std::net::SocketAddr;
use std::time::Duration;

use axum::response::IntoResponse as _;
use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::{Stack, Upstream};

const CONFIG: &str = "/ingest/array/phc_test/config";

async fn stack(upstream: &Upstream) -> Stack {
    let url = upstream.url();
    Stack::with(&[
        ("EDGE_ANALYTICS_HOST", url.as_str()),
        ("EDGE_ANALYTICS_TOKEN", "phc_test"),
    ])
    .await
}

#[tokio::test]
async fn off_there_is_no_route_and_a_profile_says_nothing_of_it() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    assert_eq!(browser.get(CONFIG).await.status, 404);
    assert_eq!(browser.post("/ingest/e/", &[], "{}").await.status, 404);
    let profile = browser.get("/api/auth/me").await;
    assert_eq!(
        (
            profile.header("x-analytics-token"),
            profile.header("x-analytics-id")
        ),
        ("", "")
    );
}

#[tokio::test]
async fn on_the_three_addresses_pass_and_no_other() {
    let upstream = Upstream::start().await;
    let stack = stack(&upstream).await;
    let mut browser = stack.browser();
    assert_eq!(browser.get(CONFIG).await.status, 200);
    assert_eq!(
        browser
            .post("/ingest/e/?ip=0&compression=gzip-js", &[], "x")
            .await
            .status,
        200
    );
    assert_eq!(browser.post("/ingest/s/", &[], "x").await.status, 200);
    let targets: Vec<String> = upstream.requests().into_iter().map(|seen| seen.target).collect();
    assert_eq!(
        targets,
        ["/array/phc_test/config", "/e/?ip=0&compression=gzip-js", "/s/"]
    );
    for (method, path) in [
        (Method::GET, "/ingest/array/phc_other/config"),
        (Method::GET, "/ingest/array/phc_test/config.js"),
        (Method::GET, "/ingest/e/"),
        (Method::POST, "/ingest/array/phc_test/config"),
        (Method::POST, "/ingest/flags/"),
        (Method::POST, "/ingest/e/../api/users/"),
        (Method::POST, "/ingest/e/%2e%2e/api/"),
        (Method::POST, "/ingest//e/"),
        (Method::GET, "/ingest/static/recorder.js"),
        (Method::GET, "/ingest"),
    ] {
        let answer = browser.send(method.clone(), path, &[], None).await;
        assert!(
            matches!(answer.status, 404 | 405),
            "{method} {path}: {}",
            answer.status
        );
    }
    assert_eq!(upstream.requests().len(), 3);
}

#[tokio::test]
async fn neither_cookie_nor_credential_nor_address_passes_and_no_cookie_comes_back() {
    let upstream = Upstream::start().await;
    let stack = stack(&upstream).await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    upstream.answer_by(|_| {
        let headers = [("set-cookie", "visitor=1; Path=/"), ("x-visitor", "1")];
        Some((headers, "upstream").into_response())
    });
    let headers = [
        ("authorization", "Bearer secret"),
        ("x-forwarded-for", "203.0.113.9"),
        ("user-agent", "Firefox"),
        ("content-type", "text/plain"),
        ("referer", "https://app.example/account?code=secret"),
    ];
    let answer = browser
        .send(Method::POST, "/ingest/e/", &headers, Some("batch".to_owned()))
        .await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "upstream"));
    assert_eq!(
        (answer.header("cache-control"), answer.set_cookies().len()),
        ("no-store", 0)
    );
    assert_eq!(
        answer.header("x-visitor"),
        "",
        "what is not asked for stays there"
    );
    let seen = upstream.requests().pop().unwrap();
    let mut names: Vec<&str> = seen.headers.keys().map(axum::http::HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["content-length", "content-type", "host", "user-agent"]);
}

#[tokio::test]
async fn another_sites_page_cannot_send_through_us_and_no_batch_is_boundless() {
    let upstream = Upstream::start().await;
    let stack = stack(&upstream).await;
    let mut browser = stack.browser();
    let foreign = browser
        .send(
            Method::POST,
            "/ingest/e/",
            &[("sec-fetch-site", "cross-site")],
            None,
        )
        .await;
    assert_eq!(foreign.status, 403);
    let large = browser
        .send(
            Method::POST,
            "/ingest/s/",
            &[],
            Some("x".repeat(2 * 1024 * 1024 + 1)),
        )
        .await;
    assert_eq!(large.status, 413);
    assert_eq!(upstream.requests().len(), 0);
    upstream.answer_by(|_| Some("x".repeat(256 * 1024 + 1).into_response()));
    assert_eq!(browser.get(CONFIG).await.status, 502, "nor is an answer");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_bad_gateway_and_the_product_goes_on() {
    let stack = Stack::with(&[
        ("EDGE_ANALYTICS_HOST", "http://127.0.0.1:1"),
        ("EDGE_ANALYTICS_TOKEN", "phc_test"),
    ])
    .await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    assert_eq!(browser.get(CONFIG).await.status, 502);
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
}

#[tokio::test]
async fn a_profile_names_the_project_and_a_pseudonym_that_stays() {
    let upstream = Upstream::start().await;
    let stack = stack(&upstream).await;
    let mut first = stack.browser();
    first.sign_in().await;
    let mut second = stack.browser();
    second.sign_in().await;
    let one = first.get("/api/auth/me").await;
    let other = second.get("/api/auth/me").await;
    assert_eq!(one.header("x-analytics-token"), "phc_test");
    assert_eq!(one.header("x-analytics-id"), other.header("x-analytics-id"));
    assert_eq!(one.header("x-analytics-id").len(), 22);
    assert!(!one.body.contains(one.header("x-analytics-id")));
    let stranger = stack.browser().get("/api/auth/me").await;
    assert_eq!(stranger.header("x-analytics-token"), "");
}

/// A connection from its own address.
async fn from(address: [u8; 4], stack: &Stack) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((address, 0))).unwrap();
    socket.connect(stack.address().parse().unwrap()).await.unwrap()
}

/// The status of a whole batch from an address.
async fn status_from(address: [u8; 4], stack: &Stack) -> String {
    let mut stream = from(address, stack).await;
    stream.write_all(BATCH.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    let read = tokio::time::timeout(LONGEST_WAIT, stream.read_exact(&mut head)).await;
    read.expect("an answer").unwrap();
    String::from_utf8_lossy(&head[9..]).into_owned()
}

const LONGEST_WAIT: Duration = Duration::from_secs(20);
const BATCH: &str = "POST /ingest/e/ HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_never_come_take_one_visitors_share_and_the_others_go_on() {
    let upstream = Upstream::start().await;
    let stack = stack(&upstream).await;
    let slow = [127, 0, 0, 2];
    let mut held = Vec::new();
    // The share is full as soon as a whole request is rejected.
    while status_from(slow, &stack).await == "200" {
        assert!(held.len() < 64, "the share has no end");
        let mut stream = from(slow, &stack).await;
        let begun = &BATCH.as_bytes()[..BATCH.len() - 1];
        stream.write_all(begun).await.unwrap();
        held.push(stream);
    }
    for other in 3..20 {
        assert_eq!(status_from([127, 0, 0, other], &stack).await, "200");
    }
    drop(held);
}
