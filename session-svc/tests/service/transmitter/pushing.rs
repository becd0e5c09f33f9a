//! Faulty receivers: which events are resent or dropped, and that other receivers notice nothing.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::peer::{Does, Peer, Pushed, refuses, status};
use super::support::*;

fn jtis(pushed: &[Pushed]) -> Vec<String> {
    pushed
        .iter()
        .map(|one| claims_of(&one.token)["jti"].to_string())
        .collect()
}

#[tokio::test]
async fn an_event_is_sent_again_under_the_same_jti_until_its_receiver_takes_it() {
    let cases = [
        status(500),
        status(429),
        Does::Answers(
            302,
            "text/plain",
            String::new(),
            "location: http://127.0.0.1:9/elsewhere",
        ),
        Does::Closes,
        refuses("invalid_key"),
        Does::Answers(400, "text/html", "<h1>no</h1>".to_owned(), "x-nothing: 1"),
        Does::Answers(
            400,
            "application/json",
            " ".repeat(1 << 20) + r#"{"err":"invalid_request"}"#,
            "x-nothing: 1",
        ),
    ];
    let (mut setting, mut peers) = (Setting::new().await, Vec::new());
    for (number, does) in cases.into_iter().enumerate() {
        let peer = Peer::start().await;
        peer.next(does);
        setting = setting.pushed(&format!("r{number}"), &peer.url, "");
        peers.push(peer);
    }
    let replica = setting.replica(Arc::new(setting.memory())).await;
    replica.come_and_go("alice").await;
    for (number, peer) in peers.iter().enumerate() {
        let jtis = jtis(&peer.wait_for(2).await);
        assert_eq!(jtis[0], jtis[1], "receiver {number}");
        let id = format!("r{number}");
        until("the event is counted", async || {
            replica.counted(&id, "delivered") == 1
        })
        .await;
        assert_eq!(replica.counted(&id, "failed"), 1);
    }
}

#[tokio::test]
async fn an_event_that_its_receiver_refuses_is_given_up_and_the_next_one_is_told() {
    let peer = Peer::start().await;
    // The reason counts under any content type.
    let refusal = r#"{"err":"invalid_request"}"#.to_owned();
    peer.next(Does::Answers(400, "text/html", refusal, "x-nothing: 1"));
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let replica = setting.replica(Arc::new(setting.memory())).await;
    replica.come_and_go("alice").await;
    until("the refusal is counted", async || {
        replica.counted("files", "refused") == 1
    })
    .await;
    replica.come_and_go("bob").await;
    let pushed = peer.wait_for(2).await;
    assert_eq!(subject_of(&pushed[1].token), "bob");
    until("the event is counted", async || {
        replica.counted("files", "delivered") == 1
    })
    .await;
}

#[tokio::test]
async fn a_receiver_that_never_answers_holds_up_neither_endings_nor_other_receivers() {
    let (hanging, well) = (Peer::start().await, Peer::start().await);
    hanging.always(Does::Hangs);
    let mut setting = Setting::new()
        .await
        .pushed("hanging", &hanging.url, "")
        .pushed("well", &well.url, "");
    let replica = setting.replica(Arc::new(setting.memory())).await;
    let began = Instant::now();
    for number in 0..40 {
        replica.come_and_go(&format!("user-{number}")).await;
    }
    well.wait_for(40).await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(hanging.got().len() <= 16, "no more than so many at once");
}

#[tokio::test]
async fn the_oldest_event_is_told_first_and_none_is_missing() {
    let peer = Peer::start().await;
    peer.next(status(503));
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let replica = setting.replica(Arc::new(setting.memory())).await;
    let mut ids = Vec::new();
    for number in 0..10 {
        ids.push(
            replica
                .sign_in(json!({"sub": format!("user-{number}")}), "")
                .await,
        );
    }
    replica.sign_out(&ids[0]).await;
    // The receiver gets a pause, in which the other sessions end.
    peer.wait_for(1).await;
    for id in &ids[1..] {
        setting.clock.advance_ms(1);
        replica.sign_out(id).await;
    }
    until("all are told", async || {
        replica.counted("files", "delivered") == 10
    })
    .await;
    let told: Vec<String> = peer.got()[1..].iter().map(|one| subject_of(&one.token)).collect();
    assert_eq!(told[0], "user-0");
    assert_eq!(told.iter().collect::<HashSet<_>>().len(), 10);
}

#[tokio::test]
async fn two_replicas_tell_each_event_once() {
    let peer = Peer::start().await;
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let store = Arc::new(setting.memory());
    let one = setting.replica(Arc::clone(&store) as _).await;
    let two = setting.replica(store).await;
    for number in 0..20 {
        let replica = if number % 2 == 0 { &one } else { &two };
        replica.come_and_go(&format!("user-{number}")).await;
    }
    let told = || one.counted("files", "delivered") + two.counted("files", "delivered");
    until("all are told", async || told() == 20).await;
    let jtis = jtis(&peer.got());
    assert_eq!(jtis.len(), 20);
    assert_eq!(jtis.iter().collect::<HashSet<_>>().len(), 20);
}
