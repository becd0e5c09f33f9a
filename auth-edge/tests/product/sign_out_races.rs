//! A session ends while its tokens are refreshed, with two edges and two session services. Afterwards no
//! caller gets its token, the session is not written, and the provider revokes the new refresh token.

use std::time::{Duration, Instant};

use reqwest::Method;
use scripted_provider::Endpoint;
use serde_json::json;
use session_proto::client::{ClientSettings, SessionClient};
use session_proto::v1::ListSessionsRequest;

use crate::support::{Answer, Browser, Stack};

const LONGEST_WAIT: Duration = Duration::from_secs(20);

const OURS: [(&str, &str); 2] = [("x-csrf", "1"), ("sec-fetch-site", "same-origin")];

/// The way the session ends.
#[derive(Clone, Copy, Debug)]
enum Ending {
    SignOut,
    BackChannel,
    OtherDevice,
}

async fn token(browser: &mut Browser) -> Answer {
    browser.get_with("/api/auth/access-token", &OURS).await
}

/// A user signs in; the provider's session has this name.
async fn signed_in(stack: &Stack, sid: &str) -> Browser {
    stack.provider.script(|script| script.sid = Some(sid.to_owned()));
    let mut browser = stack.browser();
    browser.sign_in().await;
    browser
}

/// Ends the session of `there` at its edge; it returns once the ending is acknowledged.
async fn end(stack: &Stack, ending: Ending, there: &mut Browser, other: &mut Browser) {
    let answer = match ending {
        Ending::SignOut => {
            let answer = there.visit("/api/auth/logout").await;
            assert_eq!(answer.status, 302, "{answer:?}");
            return;
        }
        Ending::BackChannel => {
            let token = stack
                .provider
                .logout_token(json!({"sub": "alice", "sid": "sid-here"}));
            let form = format!("logout_token={token}");
            other.post("/api/auth/backchannel-logout", &[], &form).await
        }
        Ending::OtherDevice => {
            let path = "/session.v1.BrowserSessionService/EndMyOtherSessions";
            let headers = [OURS[0], OURS[1], ("content-type", "application/grpc-web+proto")];
            let empty = Some("\0\0\0\0\0".to_owned());
            other.send(Method::POST, path, &headers, empty).await
        }
    };
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Asks until there is no token.
async fn until_refused(browser: &mut Browser) {
    let deadline = Instant::now() + LONGEST_WAIT;
    loop {
        let answer = token(browser).await;
        if answer.status == 401 {
            return;
        }
        assert!(Instant::now() < deadline, "{answer:?}");
    }
}

/// The handles at one session service.
async fn sessions(url: String, issuer: &str) -> usize {
    let client = SessionClient::new(ClientSettings::new([url])).unwrap();
    let request = ListSessionsRequest {
        issuer: issuer.to_owned(),
        subject: "alice".to_owned(),
        ..ListSessionsRequest::default()
    };
    client.list_sessions(request).await.unwrap().sessions.len()
}

/// The provider holds the refresh before it acts, or after it rotated the token.
async fn race(ending: Ending, is_rotated: bool) {
    let stack = Stack::with(&[
        ("EDGE_SESSION_CACHE_SECS", "60"),
        ("EDGE_ACCESS_TOKEN_ENDPOINT", "true"),
    ])
    .await;
    let second = stack.sessions.beside().await;
    let mut here = signed_in(&stack, "sid-here").await;
    let mut other = stack.beside_at(&second).await;
    other.jar = signed_in(&stack, "sid-other").await.jar;
    let mut there = stack.beside_at(&second).await;
    there.jar = here.jar.clone();
    for browser in [&mut here, &mut there] {
        assert_eq!(browser.get("/api/auth/me").await.status, 200);
        assert_eq!(token(browser).await.status, 200, "both edges remember it");
    }
    stack.advance(3_600);
    let gate = if is_rotated {
        stack.provider.hold_answers(Endpoint::Token)
    } else {
        stack.provider.hold(Endpoint::Token)
    };
    let requests = [here.clone(), there.clone()].map(|mut browser| {
        tokio::spawn(async move {
            let answer = token(&mut browser).await;
            (answer, browser.jar)
        })
    });
    stack.provider.wait_for_held(Endpoint::Token, 1).await;

    let mut late = there.clone();
    end(&stack, ending, &mut there, &mut other).await;
    if matches!(ending, Ending::SignOut) {
        let answer = token(&mut late).await;
        assert_eq!(answer.status, 401, "at the edge that said so: {answer:?}");
    }
    for browser in [&mut here, &mut late] {
        until_refused(browser).await;
    }
    gate.release();
    for request in requests {
        let (answer, _) = request.await.unwrap();
        assert_eq!(answer.status, 401, "{ending:?}: {answer:?}");
        assert!(answer.set_cookies().is_empty(), "{answer:?}");
    }
    for browser in [&mut here, &mut late] {
        assert_eq!(token(browser).await.status, 401);
        assert_eq!(browser.get("/api/auth/me").await.status, 204);
    }
    for url in [stack.sessions.url(), second.url()] {
        let left = sessions(url, stack.provider.issuer()).await;
        assert_eq!(left, 1, "{ending:?}: the other device's alone");
    }
    let deadline = Instant::now() + LONGEST_WAIT;
    while stack.provider.refresh_tokens() > 1 {
        assert!(
            Instant::now() < deadline,
            "{ending:?}: a refresh token of the ended session still works"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(stack.provider.reuses(), 0);
    assert_eq!(
        token(&mut other).await.status,
        200,
        "{ending:?}: the other device goes on"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_while_the_provider_thinks_is_over() {
    for ending in [Ending::SignOut, Ending::BackChannel, Ending::OtherDevice] {
        race(ending, false).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_while_new_tokens_come_is_over_and_they_are_revoked() {
    for ending in [Ending::SignOut, Ending::BackChannel, Ending::OtherDevice] {
        race(ending, true).await;
    }
}
