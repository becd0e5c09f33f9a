//! `BrowserSessionService` as the web app calls it.

use std::time::Duration;

use prost::Message;
use reqwest::Method;
use session_proto::v1::{
    EndMySessionRequest, GetCurrentSessionResponse, SessionEvent, WatchMySessionRequest, session_event,
};

use crate::support::{Answer, Browser, Stack};

/// An empty message in its frame.
const EMPTY: &str = "\0\0\0\0\0";

pub(crate) async fn call(browser: &mut Browser, method: &str, headers: &[(&str, &str)]) -> Answer {
    let headers: Vec<_> = [("content-type", "application/grpc-web+proto")]
        .into_iter()
        .chain(headers.iter().copied())
        .collect();
    let path = format!("/session.v1.BrowserSessionService/{method}");
    browser
        .send(Method::POST, &path, &headers, Some(EMPTY.to_owned()))
        .await
}

/// A message in its frame.
fn framed(message: &impl Message) -> Vec<u8> {
    let message = message.encode_to_vec();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], &message].concat()
}

/// A call by our own page, with a binary message and answer.
pub(crate) async fn send(
    stack: &Stack,
    cookie: &str,
    method: &str,
    message: &impl Message,
) -> reqwest::Response {
    let url = format!(
        "http://{}/session.v1.BrowserSessionService/{method}",
        stack.address()
    );
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = client
        .post(url)
        .header("content-type", "application/grpc-web+proto")
        .header("cookie", cookie)
        .header("x-csrf", "1")
        .header("sec-fetch-site", "same-origin")
        .body(framed(message))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    answer
}

/// A message in its frame, compressed with gzip.
fn gzipped(message: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut encoder = flate2::read::GzEncoder::new(message, flate2::Compression::best());
    std::io::Read::read_to_end(&mut encoder, &mut packed).unwrap();
    let length = u32::try_from(packed.len()).unwrap().to_be_bytes();
    [&[1], &length[..], &packed].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_compressed_with_gzip_is_read_up_to_the_bound_of_its_unpacked_size() {
    let stack = Stack::start().await;
    let (name, value) = stack.session_cookie().await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let message = EndMySessionRequest {
        handle: "0".repeat(32),
    }
    .encode_to_vec();
    // 4 MiB of zeros compress to 4 KiB.
    for (sent, expected) in [
        (gzipped(&message), "grpc-status:0"),
        (gzipped(&vec![0; 4 * 1024 * 1024]), "8"),
    ] {
        let answer = client
            .post(format!(
                "http://{}/session.v1.BrowserSessionService/EndMySession",
                stack.address()
            ))
            .header("content-type", "application/grpc-web+proto")
            .header("grpc-encoding", "gzip")
            .header("cookie", format!("{name}={value}"))
            .header("x-csrf", "1")
            .header("sec-fetch-site", "same-origin")
            .body(sent)
            .send()
            .await
            .unwrap();
        let head = answer.headers().get("grpc-status").cloned();
        let body = answer.bytes().await.unwrap();
        let told = head.map_or_else(
            || String::from_utf8_lossy(&body).into_owned(),
            |status| status.to_str().unwrap().to_owned(),
        );
        assert!(told.contains(expected), "{told}");
    }
}

async fn signed_in(stack: &Stack) -> Browser {
    let mut browser = stack.browser();
    let (name, value) = stack.session_cookie().await;
    browser.jar.insert(name, value);
    browser
}

// conformance: B-041
#[tokio::test(flavor = "multi_thread")]
async fn the_current_session_is_told_without_rolling_and_without_a_token() {
    let stack = Stack::start().await;
    let mut browser = signed_in(&stack).await;
    stack.clock.advance_ms(120_000);
    let ours = [("x-csrf", "1"), ("sec-fetch-site", "same-origin")];
    for method in ["GetCurrentSession", "ListMySessions", "EndMyOtherSessions"] {
        let answer = call(&mut browser, method, &ours).await;
        assert_eq!(answer.status, 200, "{method}");
        assert!(answer.body.contains("grpc-status:0"), "{method}: {answer:?}");
        assert_eq!(answer.header("cache-control"), "no-store", "{method}");
        assert!(answer.set_cookies().is_empty(), "{method} does not roll");
        assert!(!answer.body.contains("token-of-person-1"), "{method}");
    }
    let rolled = call(&mut browser, "RollCurrentSession", &ours).await;
    assert!(
        rolled.body.contains("person-1") && rolled.set_cookie("session").is_some(),
        "{rolled:?}"
    );
}

// conformance: B-046 B-049
#[tokio::test(flavor = "multi_thread")]
async fn a_call_from_elsewhere_is_403_and_touches_nothing() {
    let stack = Stack::start().await;
    let mut browser = signed_in(&stack).await;
    let before = stack.sessions.calls();
    for headers in [
        &[("x-csrf", "1")][..],
        &[("sec-fetch-site", "same-origin")],
        &[("x-csrf", "1"), ("sec-fetch-site", "same-site")],
        &[("x-csrf", "1"), ("origin", "null")],
        &[
            ("x-csrf", "1"),
            ("origin", "https://evil.example"),
            ("sec-fetch-site", "same-origin"),
        ],
    ] {
        let answer = call(&mut browser, "EndMyOtherSessions", headers).await;
        assert_eq!(
            (answer.status, answer.header("grpc-status")),
            (403, "7"),
            "{headers:?}"
        );
    }
    assert_eq!(stack.sessions.calls(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_session_every_call_says_so() {
    let stack = Stack::start().await;
    let answer = call(
        &mut stack.browser(),
        "GetCurrentSession",
        &[("x-csrf", "1"), ("sec-fetch-site", "same-origin")],
    )
    .await;
    assert_eq!(
        (answer.status, answer.header("grpc-status")),
        (200, "5"),
        "{answer:?}"
    );
    assert_eq!(answer.header("cache-control"), "no-store");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_learns_neither_of_a_refresh_token_nor_of_the_providers_session() {
    let stack = Stack::start().await;
    stack
        .provider
        .script(|script| script.sid = Some("sid-1".to_owned()));
    let mut browser = stack.browser();
    browser.sign_in().await;
    let cookie = format!("session={}", browser.jar["session"]);
    let answer = send(&stack, &cookie, "GetCurrentSession", &()).await;
    let body = answer.bytes().await.unwrap();
    let length = u32::from_be_bytes(body[1..5].try_into().unwrap());
    let message = &body[5..][..usize::try_from(length).unwrap()];
    let shown = GetCurrentSessionResponse::decode(message).unwrap();
    let session = shown.session.unwrap();
    assert_eq!(session.subject, "alice");
    assert_eq!(
        (session.has_refresh_token, session.provider_sid.as_str()),
        (false, "")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_carries_a_handle_and_not_much_more() {
    let stack = Stack::start().await;
    let browser = signed_in(&stack).await;
    let cookie = format!("session={}", browser.jar["session"]);
    let large = EndMySessionRequest {
        handle: "a".repeat(20_000),
    };
    let refused = send(&stack, &cookie, "EndMySession", &large).await;
    assert_eq!(refused.headers()["grpc-status"], "11");
}

/// Opens the page's stream with a session cookie, after `resume_token` if there is one.
async fn watch(stack: &Stack, cookie: &str, resume_token: &str) -> reqwest::Response {
    let request = WatchMySessionRequest {
        resume_token: resume_token.to_owned(),
    };
    send(stack, cookie, "WatchMySession", &request).await
}

/// Reads on until the stream reports a session of this person.
async fn told_of_a_session(answer: &mut reqwest::Response) {
    let mut received = String::new();
    while !received.contains("person-1") {
        let chunk = tokio::time::timeout(Duration::from_secs(60), answer.chunk()).await;
        let chunk = chunk
            .expect("in time")
            .unwrap()
            .expect("the stream has not ended");
        received.push_str(&String::from_utf8_lossy(&chunk));
        assert!(!received.contains("grpc-status"), "it has ended: {received:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_was_cut_off_at_once_comes_back_for_what_it_missed() {
    let stack = Stack::start().await;
    let (name, value) = stack.session_cookie().await;
    let cookie = format!("{name}={value}");
    let mut first = watch(&stack, &cookie, "").await;
    let beat = first.chunk().await.unwrap().expect("the first beat");
    let length = u32::from_be_bytes(beat[1..5].try_into().unwrap());
    let beat = SessionEvent::decode(&beat[5..][..usize::try_from(length).unwrap()]).unwrap();
    assert_eq!(beat.kind(), session_event::Kind::Heartbeat);
    drop(first);
    stack.session_cookie().await;
    told_of_a_session(&mut watch(&stack, &cookie, &beat.resume_token).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_ends_with_its_session() {
    let stack = Stack::start().await;
    let mut browser = signed_in(&stack).await;
    let cookie = format!("session={}", browser.jar["session"]);
    let mut answer = watch(&stack, &cookie, "").await;
    answer.chunk().await.unwrap().expect("the first beat");
    assert_eq!(browser.visit("/api/auth/logout").await.status, 302);
    let to_the_end = async { while answer.chunk().await.unwrap().is_some() {} };
    let ended = tokio::time::timeout(Duration::from_secs(10), to_the_end).await;
    assert!(ended.is_ok(), "it tells of a person who has signed out");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_when_the_session_service_was_away_for_a_moment() {
    let stack = Stack::start().await;
    let (name, value) = stack.session_cookie().await;
    let mut answer = watch(&stack, &format!("{name}={value}"), "").await;
    answer.chunk().await.unwrap().expect("the first beat");
    stack.sessions.stop().await;
    stack.sessions.start_again().await;
    // The same person signs in with another browser.
    stack.session_cookie().await;
    told_of_a_session(&mut answer).await;
}
