//! Logout by the provider, on the back channel and on the front channel.

use reqwest::Method;
use scripted_provider::Endpoint;
use serde_json::json;

use crate::support::{Browser, Log, Stack};

const PATH: &str = "/api/auth/backchannel-logout";

async fn send(stack: &Stack, token: &str) -> u16 {
    let answer = stack
        .browser()
        .post(PATH, &[], &format!("logout_token={token}"))
        .await;
    assert_eq!(answer.header("cache-control"), "no-store", "{answer:?}");
    if answer.status != 200 {
        assert!(answer.json()["error"].is_string());
    }
    answer.status
}

/// Sends an address's limit per minute and some more, many requests per connection.
async fn use_up_the_limit(stack: &Stack) {
    const REQUESTS: usize = 500;
    let request = format!("POST {PATH} HTTP/1.1\r\nhost: edge\r\ncontent-length: 0\r\n\r\n");
    let last = request.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
    for _connection in 0..=6_000 / REQUESTS {
        stack.raw(&(request.repeat(REQUESTS - 1) + &last)).await;
    }
}

async fn signed_in(stack: &Stack, sub: &str, sid: &str) -> Browser {
    stack.provider.script(|script| {
        script.sub = sub.to_owned();
        script.sid = Some(sid.to_owned());
    });
    let mut browser = stack.browser();
    browser.sign_in().await;
    browser
}

// conformance: A-060 B-114 B-121 B-124
#[tokio::test]
async fn a_sid_ends_its_sessions_and_a_subject_ends_all_of_a_person() {
    let stack = Stack::start().await;
    let mut one = signed_in(&stack, "bob", "sid-1").await;
    let mut two = signed_in(&stack, "bob", "sid-2").await;
    let mut eve = signed_in(&stack, "eve", "sid-3").await;
    assert_eq!(
        send(
            &stack,
            &stack.provider.logout_token(json!({"sid": "sid-1", "sub": null}))
        )
        .await,
        200
    );
    assert_eq!(
        (
            one.get("/api/auth/me").await.status,
            two.get("/api/auth/me").await.status
        ),
        (204, 200)
    );
    assert_eq!(
        send(
            &stack,
            &stack.provider.logout_token(json!({"sub": "bob", "sid": null}))
        )
        .await,
        200
    );
    assert_eq!(
        (
            two.get("/api/auth/me").await.status,
            eve.get("/api/auth/me").await.status
        ),
        (204, 200)
    );
    assert_eq!(
        send(
            &stack,
            &stack.provider.logout_token(json!({"sub": "bob", "sid": null}))
        )
        .await,
        200,
        "a token of a user without sessions"
    );
    stack.clock.advance_ms(1);
    let mut later = signed_in(&stack, "bob", "sid-1").await;
    assert_eq!(
        later.get("/api/auth/me").await.status,
        200,
        "a later sign-in with the same sid works at once"
    );
}

// conformance: A-062 A-064 A-066 B-117 B-130
#[tokio::test]
async fn a_replay_or_a_bad_token_is_400_and_ends_nothing() {
    let stack = Stack::start().await;
    let token = stack.provider.logout_token(json!({"sub": "bob", "sid": null}));
    assert_eq!(send(&stack, &token).await, 200);
    stack.clock.advance_ms(1);
    let mut bob = signed_in(&stack, "bob", "sid-1").await;
    assert_eq!(send(&stack, &token).await, 400, "a replay");
    for patch in [
        json!({"sub": "bob", "nonce": "n"}),
        json!({"sub": "bob", "jti": null}),
        json!({"sub": "bob", "events": null}),
        json!({"sub": null, "sid": null}),
        json!({"sub": "bob", "aud": "another"}),
        json!({"sub": "bob", "iss": "https://evil.example"}),
        json!({"sub": "bob", "iat": 1_000_000}),
    ] {
        assert_eq!(
            send(&stack, &stack.provider.logout_token(patch.clone())).await,
            400,
            "{patch}"
        );
    }
    assert_eq!(send(&stack, "nonsense").await, 400);
    // Clocks may differ by a minute, so an expired token is accepted that long and must be remembered.
    let short = json!({"sub": "eve", "sid": null, "exp": stack.now_secs() + 240});
    let short = stack.provider.logout_token(short);
    assert_eq!(send(&stack, &short).await, 200);
    stack.advance(270);
    assert_eq!(send(&stack, &short).await, 400, "a replay past its end");
    assert_eq!(bob.get("/api/auth/me").await.status, 200);
}

#[tokio::test]
async fn the_same_token_many_times_at_once_over_two_edges_is_acted_on_once() {
    let stack = Stack::start().await;
    let mut bob = signed_in(&stack, "bob", "sid-1").await;
    let form = format!(
        "logout_token={}",
        stack.provider.logout_token(json!({"sub": "bob", "sid": null}))
    );
    let edges = [stack.browser(), stack.beside().await];
    let posts: Vec<_> = (0..16)
        .map(|number| {
            let (mut machine, form) = (edges[number % 2].clone(), form.clone());
            tokio::spawn(async move { machine.post(PATH, &[], &form).await })
        })
        .collect();
    let mut statuses = Vec::new();
    for post in posts {
        statuses.push(post.await.unwrap().status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses[0], 200, "{statuses:?}");
    assert!(
        statuses[1..].iter().all(|status| *status == 400),
        "replays: {statuses:?}"
    );
    assert_eq!(bob.get("/api/auth/me").await.status, 204);
}

#[tokio::test]
async fn a_sid_and_a_subject_that_do_not_belong_together_end_nothing() {
    let stack = Stack::start().await;
    let mut bob = signed_in(&stack, "bob", "sid-1").await;
    assert_eq!(
        send(
            &stack,
            &stack.provider.logout_token(json!({"sub": "eve", "sid": "sid-1"}))
        )
        .await,
        400
    );
    assert_eq!(bob.get("/api/auth/me").await.status, 200);
    assert_eq!(
        send(
            &stack,
            &stack.provider.logout_token(json!({"sub": "bob", "sid": "sid-1"}))
        )
        .await,
        200
    );
    assert_eq!(bob.get("/api/auth/me").await.status, 204);
}

// conformance: B-113
#[tokio::test]
async fn a_wrong_body_is_415_413_or_400() {
    let stack = Stack::start().await;
    let mut machine = stack.browser();
    let json = machine
        .post(PATH, &[("content-type", "application/json")], "{}")
        .await;
    assert_eq!(
        (json.status, json.header("accept")),
        (415, "application/x-www-form-urlencoded")
    );
    assert_eq!(
        machine
            .post(PATH, &[], &format!("logout_token={}", "a".repeat(70_000)))
            .await
            .status,
        413
    );
    assert_eq!(machine.post(PATH, &[], "").await.status, 400);
    let good = stack.provider.logout_token(json!({"sub": "bob", "sid": null}));
    let twice = format!("logout_token={good}&logout_token={good}");
    assert_eq!(machine.post(PATH, &[], &twice).await.status, 400);
    assert_eq!(machine.send(Method::GET, PATH, &[], None).await.status, 405);
    use_up_the_limit(&stack).await;
    let flooding = machine.post(PATH, &[], &twice).await;
    assert_eq!((flooding.status, flooding.header("retry-after")), (429, "1"));
}

// conformance: B-128
#[tokio::test]
async fn while_the_store_is_down_the_provider_is_told_to_come_again_and_may() {
    let stack = Stack::start().await;
    let mut bob = signed_in(&stack, "bob", "sid-1").await;
    let token = stack.provider.logout_token(json!({"sub": "bob", "sid": null}));
    stack.sessions.stop().await;
    assert_eq!(send(&stack, &token).await, 503);
    stack.sessions.start_again().await;
    assert_eq!(
        send(&stack, &token).await,
        200,
        "the same token, since it has ended nothing yet"
    );
    assert_eq!(bob.get("/api/auth/me").await.status, 204);
}

// conformance: A-067 B-139 B-141
#[tokio::test]
async fn the_front_channel_needs_issuer_and_sid_and_may_be_framed_by_the_provider_alone() {
    let stack = Stack::with(&[("EDGE_FRONTCHANNEL_LOGOUT", "true")]).await;
    let mut bob = signed_in(&stack, "bob", "sid-1").await;
    let path = "/api/auth/frontchannel-logout";
    let issuer = stack.provider.issuer().to_owned();
    for query in [
        "",
        "?sid=sid-1",
        "?iss=https://evil.example&sid=sid-1",
        &format!("?iss={issuer}"),
        &format!("?iss={issuer}&sid="),
    ] {
        let answer = stack.browser().get(&format!("{path}{query}")).await;
        assert_eq!(
            (answer.status, answer.header("cache-control")),
            (200, "no-store"),
            "{query}"
        );
    }
    assert_eq!(bob.get("/api/auth/me").await.status, 200);
    let answer = stack
        .browser()
        .get(&format!("{path}?iss={issuer}&sid=sid-1"))
        .await;
    assert!(
        answer
            .header("content-security-policy")
            .contains(&format!("frame-ancestors {issuer}"))
    );
    assert!(answer.header("x-frame-options").is_empty());
    assert_eq!(bob.get("/api/auth/me").await.status, 204);
}

const FRAME: &str = "/api/auth/frontchannel-logout";

#[tokio::test]
async fn the_front_channel_leaves_offline_tokens_good_at_the_provider() {
    let settings = [
        ("EDGE_FRONTCHANNEL_LOGOUT", "true"),
        ("OIDC_SCOPE", "openid profile email offline_access"),
    ];
    let stack = Stack::with(&settings).await;
    let mut bob = signed_in(&stack, "bob", "sid-1").await;
    let issuer = stack.provider.issuer().to_owned();
    let frame = format!("{FRAME}?iss={issuer}&sid=sid-1");
    assert_eq!(stack.browser().get(&frame).await.status, 200);
    assert_eq!(bob.get("/api/auth/me").await.status, 204);
    // A later sign-out by the user revokes that session's token; the first one would be revoked by then.
    let mut eve = signed_in(&stack, "eve", "sid-2").await;
    eve.visit("/api/auth/logout").await;
    stack.provider.wait_for_calls(Endpoint::Revocation, 1).await;
    assert_eq!(stack.provider.calls(Endpoint::Revocation), 1);
    let evens = stack.provider.last_request(Endpoint::Revocation);
    // The provider counts a call before it acts on it. The time limit of tests ends the loop.
    while stack.provider.knows_refresh_token(evens.param("token").unwrap()) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn the_front_channel_asked_too_often_is_429_for_that_address_alone() {
    let settings = [
        ("EDGE_FRONTCHANNEL_LOGOUT", "true"),
        ("EDGE_RATE_LIMIT_LOGIN", "5"),
        ("EDGE_TRUSTED_PROXIES", "127.0.0.1"),
    ];
    let stack = Stack::with(&settings).await;
    let issuer = stack.provider.issuer().to_owned();
    let mut guessing = stack.browser();
    let calls = stack.sessions.calls();
    for number in 0..20 {
        let frame = format!("{FRAME}?iss={issuer}&sid=guess-{number}");
        let answer = guessing
            .get_with(&frame, &[("x-forwarded-for", "192.0.2.1")])
            .await;
        let expected = if number < 5 { (200, "") } else { (429, "12") };
        assert_eq!(
            (answer.status, answer.header("retry-after")),
            expected,
            "{number}"
        );
    }
    assert_eq!(stack.sessions.calls() - calls, 5);
    let frame = format!("{FRAME}?iss={issuer}&sid=guess");
    let other = [("x-forwarded-for", "192.0.2.2")];
    assert_eq!(stack.browser().get_with(&frame, &other).await.status, 200);
    // Sign-ins have a separate limit.
    let same = [("x-forwarded-for", "192.0.2.1")];
    assert_eq!(
        stack.browser().get_with("/api/auth/login", &same).await.status,
        302
    );
}

#[tokio::test]
async fn a_stranger_that_repeats_bad_requests_writes_one_record_a_minute_that_says_how_many() {
    let log = Log::begin();
    let stack = Stack::start().await;
    let records = |reason: &str| {
        let text = log.text();
        let is_record = |line: &&str| line.contains("outcome=\"failure\"") && line.contains(reason);
        text.lines()
            .filter(is_record)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let mut stranger = stack.browser();
    for _ in 0..200 {
        assert_eq!(stranger.post(PATH, &[], "logout_token=none").await.status, 400);
        // Similar requests: a callback without its transaction, and one without parameters.
        assert_eq!(
            stranger.get("/api/auth/callback?code=a&state=b").await.status,
            400
        );
    }
    let malformed = records("event=\"provider_logout\"");
    assert_eq!(malformed.len(), 1, "{malformed:?}");
    let callbacks = records("event=\"sign_in\"");
    assert_eq!(callbacks.len(), 1, "{callbacks:?}");
    stack.clock.advance_ms(60_000);
    assert_eq!(stranger.post(PATH, &[], "logout_token=none").await.status, 400);
    let malformed = records("event=\"provider_logout\"");
    assert!(
        malformed.len() == 2 && malformed[1].contains("count=200"),
        "{malformed:?}"
    );
    // Another reason is recorded again.
    assert_eq!(stranger.post(PATH, &[], "").await.status, 400);
    assert_eq!(records("event=\"provider_logout\"").len(), 3);
}
