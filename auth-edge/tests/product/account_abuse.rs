//! A user who tries to reach other users' accounts, or to use more than a fair share.

use std::collections::BTreeSet;
use std::time::Duration;

use prost::Message;
use serde_json::json;
use session_proto::v1::*;

use crate::support::Stack;

const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The gRPC status of a call that a busy machine did not finish in time.
const UNAVAILABLE: i32 = 14;

/// The limit of watching pages per person and edge.
const PAGES_MAX: usize = 100;

/// One of our pages as a program: calls with a cookie, over HTTP/1.1.
struct Page {
    client: reqwest::Client,
    url: String,
    cookie: String,
}

/// The result of a call: its messages, and the gRPC status.
struct Reply<M> {
    messages: Vec<M>,
    status: i32,
}

impl Page {
    async fn of(stack: &Stack, subject: &str) -> Self {
        let (name, value) = stack.session_of(json!({"sub": subject}), "openid").await;
        Self {
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            url: format!("http://{}", stack.address()),
            cookie: format!("{name}={value}"),
        }
    }

    async fn open(&self, method: &str, message: &impl Message) -> reqwest::Response {
        let message = message.encode_to_vec();
        let mut body = vec![0];
        body.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
        body.extend_from_slice(&message);
        let answer = self
            .client
            .post(format!("{}/session.v1.BrowserSessionService/{method}", self.url))
            .header("content-type", "application/grpc-web+proto")
            .header("cookie", &self.cookie)
            .header("x-csrf", "1")
            .header("sec-fetch-site", "same-origin")
            .body(body)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        answer
    }

    async fn call<M: Message + Default>(&self, method: &str, message: &impl Message) -> Reply<M> {
        let answer = self.open(method, message).await;
        let in_head = status(
            answer
                .headers()
                .get("grpc-status")
                .and_then(|value| value.to_str().ok()),
        );
        let mut body = &answer.bytes().await.unwrap()[..];
        let (mut messages, mut in_body) = (Vec::new(), None);
        while let Some((flag, part, rest)) = frame(body) {
            match flag {
                0 => messages.push(M::decode(part).unwrap()),
                _ => in_body = trailer(part),
            }
            body = rest;
        }
        Reply {
            messages,
            status: in_head.or(in_body).unwrap(),
        }
    }

    async fn list(&self, page_size: i32, page_token: &str) -> Reply<ListMySessionsResponse> {
        let page_token = page_token.to_owned();
        let request = ListMySessionsRequest {
            page_size,
            page_token,
        };
        self.call("ListMySessions", &request).await
    }

    async fn ends(&self, handle: &str) -> (bool, i32) {
        let handle = handle.to_owned();
        let reply: Reply<EndMySessionResponse> =
            self.call("EndMySession", &EndMySessionRequest { handle }).await;
        (reply.messages.first().is_some_and(|one| one.ended), reply.status)
    }

    async fn is_signed_in(&self) -> bool {
        let me = self.client.get(format!("{}/api/auth/me", self.url));
        let answer = me.header("cookie", &self.cookie).send().await.unwrap();
        assert!([200, 204].contains(&answer.status().as_u16()), "{answer:?}");
        answer.status() == 200
    }
}

fn frame(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(5)?;
    let length = u32::from_be_bytes(head[1..].try_into().unwrap());
    let (part, rest) = rest.split_at_checked(usize::try_from(length).unwrap())?;
    Some((head[0], part, rest))
}

fn trailer(part: &[u8]) -> Option<i32> {
    let text = String::from_utf8_lossy(part).into_owned();
    status(text.lines().find_map(|line| line.strip_prefix("grpc-status:")))
}

fn status(text: Option<&str>) -> Option<i32> {
    text.map(|text| text.trim().parse().unwrap())
}

/// The next event of a page's stream, or the status it ended with.
async fn next(answer: &mut reqwest::Response, read: &mut Vec<u8>) -> Result<SessionEvent, i32> {
    loop {
        if let Some((flag, part, rest)) = frame(read) {
            let reply = match flag {
                0 => Ok(SessionEvent::decode(part).unwrap()),
                _ => Err(trailer(part).unwrap()),
            };
            *read = rest.to_vec();
            return reply;
        }
        let chunk = tokio::time::timeout(LONGEST_WAIT, answer.chunk()).await;
        let chunk = chunk.expect("a part of the answer").unwrap();
        read.extend_from_slice(&chunk.expect("the stream says how it ends"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn handles_and_tokens_of_somebody_else_open_nothing() {
    let stack = Stack::start().await;
    let (victim, mallory) = (
        Page::of(&stack, "victim").await,
        Page::of(&stack, "mallory").await,
    );
    let second = Page::of(&stack, "victim").await;
    let first_page = victim.list(1, "").await.messages.remove(0);
    assert!(!first_page.next_page_token.is_empty());
    let handles = victim.list(0, "").await.messages.remove(0).sessions;
    assert_eq!(handles.len(), 2);

    // Another person's handle gets the same answer as an unknown one.
    for handle in handles.iter().map(|session| session.handle.as_str()) {
        assert_eq!(mallory.ends(handle).await, (false, 0));
    }
    for guess in 0..200_u128 {
        assert_eq!(mallory.ends(&format!("{guess:032x}")).await, (false, 0));
    }
    for odd in ["", "*", "../x", &"0".repeat(31), &"F".repeat(32), "0\u{0}"] {
        let (ended, status) = mallory.ends(odd).await;
        assert!(!ended && status == 3, "{odd:?}: {status}");
    }
    let reply = mallory.list(10, &first_page.next_page_token).await;
    assert_eq!(
        (reply.messages.len(), reply.status),
        (0, 3),
        "a page token is its person's"
    );
    let reply: Reply<EndMyOtherSessionsResponse> = mallory
        .call("EndMyOtherSessions", &EndMyOtherSessionsRequest {})
        .await;
    assert_eq!(reply.messages[0].ended_count, 0);
    assert!(victim.is_signed_in().await && second.is_signed_in().await);

    // A stream position is not secret, and shows only the reader's own events.
    let watch = |token: &str| WatchMySessionRequest {
        resume_token: token.to_owned(),
    };
    let mut theirs = victim.open("WatchMySession", &watch("")).await;
    let position = next(&mut theirs, &mut Vec::new()).await.unwrap().resume_token;
    assert!(!position.is_empty());
    for _ in 0..3 {
        Page::of(&stack, "victim").await;
    }
    Page::of(&stack, "mallory").await;
    let (mut stream, mut read) = (
        mallory.open("WatchMySession", &watch(&position)).await,
        Vec::new(),
    );
    let event = loop {
        let event = next(&mut stream, &mut read).await.unwrap();
        if event.kind() != session_event::Kind::Heartbeat {
            break event;
        }
    };
    assert_eq!(
        (event.kind(), event.subject.as_str()),
        (session_event::Kind::Created, "mallory")
    );
    for odd in ["x".repeat(2_000), "\u{0}".to_owned(), "ü".to_owned()] {
        let reply: Reply<SessionEvent> = mallory.call("WatchMySession", &watch(&odd)).await;
        assert_eq!((reply.messages.len(), reply.status), (0, 3), "{odd:?}");
    }
    for unknown in ["0-0", "99999999999999-0", "$", "+", "-", "a-18446744073709551615"] {
        let mut stream = mallory.open("WatchMySession", &watch(unknown)).await;
        let first = next(&mut stream, &mut Vec::new()).await;
        assert!(first.is_err() || first.unwrap().handle.is_empty(), "{unknown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_cannot_be_read_is_shown_to_its_person_and_ended_by_nobody_else() {
    let stack = Stack::start().await;
    let before = Page::of(&stack, "victim").await;
    let handle = before.list(0, "").await.messages[0].sessions[0].handle.clone();
    stack.sessions.forget_keys();
    let (victim, mallory) = (
        Page::of(&stack, "victim").await,
        Page::of(&stack, "mallory").await,
    );
    let shown = |reply: &Reply<ListMySessionsResponse>| {
        let sessions = reply.messages[0].sessions.iter();
        let mut shown: Vec<_> = sessions.map(|one| (one.state(), one.current)).collect();
        shown.sort_unstable();
        shown
    };
    let (readable, unreadable) = (
        (session::State::Active, true),
        (session::State::Unreadable, false),
    );
    assert_eq!(shown(&victim.list(0, "").await), [readable, unreadable]);
    assert_eq!(mallory.ends(&handle).await, (false, 0));
    assert_eq!(shown(&mallory.list(0, "").await), [readable]);
    assert_eq!(shown(&victim.list(0, "").await), [readable, unreadable]);
    assert_eq!(victim.ends(&handle).await.1, 0);
    assert_eq!(shown(&victim.list(0, "").await), [readable]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_listens_without_end_has_its_share_and_the_others_theirs() {
    let stack = Stack::start().await;
    let (mallory, other) = (Page::of(&stack, "mallory").await, Page::of(&stack, "other").await);
    let watch = WatchMySessionRequest::default();
    let mut open = Vec::new();
    for number in 0..PAGES_MAX {
        let mut stream = mallory.open("WatchMySession", &watch).await;
        let first = next(&mut stream, &mut Vec::new()).await;
        assert!(first.is_ok(), "{number}: {first:?}");
        open.push(stream);
    }
    for _ in 0..10 {
        let reply: Reply<SessionEvent> = mallory.call("WatchMySession", &watch).await;
        assert_eq!((reply.messages.len(), reply.status), (0, 8), "RESOURCE_EXHAUSTED");
    }
    let mut stream = other.open("WatchMySession", &watch).await;
    assert!(next(&mut stream, &mut Vec::new()).await.is_ok());
    assert!(other.is_signed_in().await && mallory.is_signed_in().await);
    open.clear();
    let deadline = tokio::time::Instant::now() + LONGEST_WAIT;
    loop {
        let mut stream = mallory.open("WatchMySession", &watch).await;
        if next(&mut stream, &mut Vec::new()).await.is_ok() {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "permits are given back");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_listens_for_longer_than_their_session_lasts() {
    let stack = Stack::start().await;
    let page = Page::of(&stack, "mallory").await;
    let watch = WatchMySessionRequest::default();
    let (mut stream, mut read) = (page.open("WatchMySession", &watch).await, Vec::new());
    assert!(next(&mut stream, &mut read).await.is_ok());
    stack.advance(86_400);
    let over = loop {
        if let Err(status) = next(&mut stream, &mut read).await {
            break status;
        }
    };
    assert_eq!(over, 5, "NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_sessions_of_one_account_are_listed_in_pages_and_ended_at_once() {
    const SESSIONS: usize = 3_000;
    let stack = Stack::start().await;
    let client = stack.sessions.client();
    let page = Page::of(&stack, "mallory").await;
    let user = json!({"sub": "mallory"});
    let request = CreateSessionRequest {
        issuer: stack.provider.issuer().to_owned(),
        user: user.to_string(),
        tokens: Some(TokenSet {
            access_token: "access".to_owned(),
            ..TokenSet::default()
        }),
        ..CreateSessionRequest::default()
    };
    for _ in 0..SESSIONS / 100 {
        let creating = (0..100).map(|_| client.create_session(request.clone()));
        for made in futures_util::future::join_all(creating).await {
            made.unwrap();
        }
    }
    let (mut seen, mut token) = (BTreeSet::new(), String::new());
    loop {
        let reply = page.list(1_000, &token).await.messages.remove(0);
        assert!(reply.sessions.len() <= 200, "{}", reply.sessions.len());
        for session in reply.sessions {
            assert!(seen.insert(session.handle));
        }
        token = reply.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen.len(), SESSIONS + 1);
    // Like a user who retries because one call could not end all sessions in time.
    for attempt in 1.. {
        let reply: Reply<EndMyOtherSessionsResponse> = page
            .call("EndMyOtherSessions", &EndMyOtherSessionsRequest {})
            .await;
        match reply.status {
            0 if reply.messages[0].ended_count == 0 => break,
            0 | UNAVAILABLE => assert!(attempt < 50, "sessions are left"),
            status => panic!("status {status}"),
        }
    }
    assert!(page.is_signed_in().await);
    assert_eq!(page.list(0, "").await.messages[0].sessions.len(), 1);
}

#[tokio::test]
async fn what_a_browser_calls_itself_is_kept_short_and_shows_as_it_is() {
    let stack = Stack::start().await;
    let mut browser = stack.browser();
    browser.sign_in().await;
    let cookie = format!("session={}", browser.jar["session"]);
    let page = Page {
        client: reqwest::Client::builder().no_proxy().build().unwrap(),
        url: format!("http://{}", stack.address()),
        cookie: cookie.clone(),
    };
    let long = "\u{202e}<script>\u{200b}ü".repeat(2_000);
    for agent in ["<b>a</b>", "\u{202e}evil\u{2066}\u{feff}", long.as_str()] {
        // Use is recorded once a minute.
        stack.advance(120);
        let host = stack.address();
        let request = format!(
            "GET /api/auth/me HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nCookie: {cookie}\r\nUser-Agent: {agent}\r\n\r\n"
        );
        let answer = stack.raw(&request).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let listed = page.list(0, "").await.messages.remove(0).sessions.remove(0);
        let kept = listed.last_seen_on.unwrap().user_agent;
        assert!(kept.len() <= 512, "{}", kept.len());
        assert!(
            !kept.is_empty() && !kept.contains(['\u{202e}', '\u{200b}', '\u{2066}', '\u{feff}']),
            "{kept:?}"
        );
    }
}
