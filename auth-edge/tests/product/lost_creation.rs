//! A created session without an answer: the edge answers 503, and no browser has the session.

use std::time::{Duration, Instant};

use scripted_provider::Endpoint;
use session_proto::v1::ListSessionsRequest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::support::Stack;

/// Nothing here takes this long.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A TCP relay to `target` whose answers can be held back.
async fn relay(target: String, open: watch::Receiver<bool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(target.trim_start_matches("http://"))
                .await
                .unwrap();
            let ((mut from_client, mut to_client), (mut from_target, mut to_target)) =
                (near.into_split(), far.into_split());
            tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_target).await });
            let mut open = open.clone();
            tokio::spawn(async move {
                let mut bytes = [0; 16_384];
                while let Ok(count @ 1..) = from_target.read(&mut bytes).await {
                    open.wait_for(|open| *open).await.unwrap();
                    if to_client.write_all(&bytes[..count]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

/// The number of the person's sessions.
async fn sessions(stack: &Stack) -> usize {
    let request = ListSessionsRequest {
        issuer: stack.provider.issuer().to_owned(),
        subject: "alice".to_owned(),
        ..Default::default()
    };
    let listed = stack.sessions.client().list_sessions(request).await;
    listed.unwrap().sessions.len()
}

async fn wait_for_sessions(stack: &Stack, count: usize) {
    let deadline = Instant::now() + LONGEST_WAIT;
    while sessions(stack).await != count {
        assert!(Instant::now() < deadline, "never {count} sessions");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_that_was_answered_503_leaves_no_session_that_nobody_has() {
    let stack = Stack::start().await;
    let mut before = stack.browser();
    before.sign_in().await;
    let (gate, open) = watch::channel(true);
    let url = relay(stack.sessions.url(), open).await;
    let mut browser = stack
        .beside_with_settings(|settings| settings.session_service.addresses = vec![url])
        .await;
    let callback = browser.until_callback("/api/auth/login").await;
    let tokens = stack.provider.hold(Endpoint::Token);
    let held = tokio::spawn(async move { (browser.visit(&callback).await, browser, callback) });
    stack.provider.wait_for_held(Endpoint::Token, 1).await;
    gate.send_replace(false);
    tokens.release();
    wait_for_sessions(&stack, 2).await;
    let (answer, mut browser, callback) = held.await.unwrap();
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.set_cookie("session").is_none(), "{answer:?}");
    gate.send_replace(true);
    wait_for_sessions(&stack, 1).await;
    assert_eq!(
        before.get("/api/auth/me").await.status,
        200,
        "nobody else's ended"
    );
    let again = browser.visit(&callback).await;
    assert_eq!(again.status, 400, "{again:?}");
    browser.sign_in().await;
    assert_eq!(browser.get("/api/auth/me").await.status, 200);
}
