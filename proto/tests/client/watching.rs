//! Watches that resume after the last event, and always report possible gaps.

use std::time::Duration;

use tokio_stream::{Stream, StreamExt as _};
use tonic::Status;
use vestibule_session_api::client::{ClientSettings, EndpointId, SessionClient, WatchItem};
use vestibule_session_api::v1::session_event::Kind;
use vestibule_session_api::v1::{ErrorReason, WatchSessionsRequest};

use crate::replica::Answer;
use crate::support::{Name, Server, by_handle, client, event, found_by, within};

const DEADLINE: Duration = Duration::from_secs(5);

fn all() -> WatchSessionsRequest {
    WatchSessionsRequest::default()
}

/// The next item that is neither a heartbeat nor about one.
async fn next(stream: &mut (impl Stream<Item = WatchItem> + Unpin)) -> WatchItem {
    loop {
        let item = within(stream.next()).await.unwrap();
        if !is_beat(&item) {
            return item;
        }
    }
}

/// The next item of any replica that is no heartbeat.
async fn next_of(
    stream: &mut (impl Stream<Item = (EndpointId, WatchItem)> + Unpin),
) -> (std::net::SocketAddr, WatchItem) {
    loop {
        let (id, item) = within(stream.next()).await.unwrap();
        if !is_beat(&item) {
            return (id.address(), item);
        }
    }
}

fn is_beat(item: &WatchItem) -> bool {
    match item {
        WatchItem::Event(event) => event.kind() == Kind::Heartbeat,
        WatchItem::Current(_) => true,
        _ => false,
    }
}

fn is_lost(item: &WatchItem) -> bool {
    matches!(item, WatchItem::Lost(error) if error.is_unavailable())
}

#[tokio::test]
async fn a_watch_that_ended_goes_on_after_the_last_event() {
    let server = Server::start("server", Answer::Session).await;
    let mut watch = client([server.url()], DEADLINE).watch(all());
    assert_eq!(next(&mut watch).await, WatchItem::Connected);
    server.sends(event(Kind::Created, "1"));
    server.sends(event(Kind::Ended, "2"));
    server.ends_watches();
    assert_eq!(
        next(&mut watch).await,
        WatchItem::Event(event(Kind::Created, "1"))
    );
    assert_eq!(next(&mut watch).await, WatchItem::Event(event(Kind::Ended, "2")));
    assert!(is_lost(&next(&mut watch).await));
    assert_eq!(next(&mut watch).await, WatchItem::Connected);
    assert_eq!(server.watches(2).await, ["", "2"]);
}

#[tokio::test]
async fn as_many_watches_as_there_are_leave_room_for_calls() {
    let server = Server::start("server", Answer::Session).await;
    let client = client([server.url()], DEADLINE);
    let mut watches = Vec::new();
    for _ in 0..350 {
        let mut watch = client.watch(all());
        assert_eq!(next(&mut watch).await, WatchItem::Connected);
        watches.push(watch);
    }
    client.get_session(by_handle()).await.unwrap();
}

#[tokio::test]
async fn what_happened_in_between_is_told_before_connected() {
    let server = Server::start("server", Answer::Session).await;
    let mut watch = client([server.url()], DEADLINE).watch(all());
    assert_eq!(next(&mut watch).await, WatchItem::Connected);
    server.greets_with([event(Kind::Ended, "7"), event(Kind::Heartbeat, "7")]);
    server.sends(event(Kind::Created, "6"));
    server.fails_watches(Status::unavailable("connection reset"));
    assert_eq!(
        next(&mut watch).await,
        WatchItem::Event(event(Kind::Created, "6"))
    );
    assert!(is_lost(&next(&mut watch).await));
    assert_eq!(next(&mut watch).await, WatchItem::Event(event(Kind::Ended, "7")));
    assert_eq!(next(&mut watch).await, WatchItem::Connected);
}

#[tokio::test]
async fn without_a_position_to_go_on_from_something_may_be_missing() {
    let server = Server::start("server", Answer::Session).await;
    let mut watch = client([server.url()], DEADLINE).watch(all());
    assert_eq!(next(&mut watch).await, WatchItem::Connected);
    server.ends_watches();
    assert!(is_lost(&next(&mut watch).await));
    assert_eq!(next(&mut watch).await, WatchItem::Missed);
    assert_eq!(next(&mut watch).await, WatchItem::Connected);
}

#[tokio::test]
async fn a_heartbeat_with_a_position_is_enough_to_go_on_from() {
    let server = Server::start("server", Answer::Session).await;
    server.greets_with([event(Kind::Heartbeat, "5")]);
    let mut watch = client([server.url()], DEADLINE).watch(all());
    assert_eq!(next(&mut watch).await, WatchItem::Connected);
    server.ends_watches();
    assert!(is_lost(&next(&mut watch).await));
    assert_eq!(next(&mut watch).await, WatchItem::Connected);
    assert_eq!(server.watches(2).await, ["", "5"]);
}

#[tokio::test]
async fn what_the_service_calls_missed_is_missed() {
    let server = Server::start("server", Answer::Session).await;
    server.greets_with([event(Kind::Missed, "9"), event(Kind::Heartbeat, "9")]);
    let request = WatchSessionsRequest {
        resume_token: "1".to_owned(),
        ..all()
    };
    let mut watch = client([server.url()], DEADLINE).watch(request);
    assert_eq!(next(&mut watch).await, WatchItem::Missed);
    assert_eq!(next(&mut watch).await, WatchItem::Connected);
    assert_eq!(server.watches(1).await, ["1"]);
}

#[tokio::test]
async fn silence_is_loss_and_another_replica_goes_on() {
    let (mute, lively) = (
        Server::start("mute", Answer::Session).await,
        Server::start("lively", Answer::Session).await,
    );
    for server in [&mute, &lively] {
        server.greets_with([event(Kind::Heartbeat, "5")]);
    }
    let mut watch = SessionClient::new(ClientSettings {
        watch_silence: Duration::from_millis(200),
        ..ClientSettings::new([mute.url(), lively.url()])
    })
    .unwrap()
    .watch(all());
    assert_eq!(next(&mut watch).await, WatchItem::Connected);
    // Without another heartbeat the stream is lost, and a replica in rotation takes over.
    assert!(is_lost(&next(&mut watch).await));
    assert_eq!(next(&mut watch).await, WatchItem::Connected);
    assert_eq!(mute.watches(1).await.len() + lively.watches(1).await.len(), 2);
}

#[tokio::test]
async fn a_watch_waits_for_a_service_that_is_not_there_yet_and_says_so_once() {
    let address = Server::start("before", Answer::Session).await.stop().await;
    let mut watch = client([format!("http://{address}")], DEADLINE).watch(all());
    assert!(is_lost(&next(&mut watch).await));
    let _server = Server::start_at(address, "after", Answer::Session).await;
    assert_eq!(next(&mut watch).await, WatchItem::Connected);
}

#[tokio::test]
async fn a_malformed_request_is_not_sent_again() {
    let server = Server::start("server", Answer::Session).await;
    let request = WatchSessionsRequest {
        resume_token: "malformed".to_owned(),
        ..all()
    };
    let mut watch = client([server.url()], DEADLINE).watch(request);
    let WatchItem::Lost(error) = next(&mut watch).await else {
        panic!("not lost");
    };
    assert_eq!(error.reason, ErrorReason::ErrInvalidArgument);
    assert_eq!(within(watch.next()).await, None);
}

#[tokio::test]
async fn each_replica_is_watched_and_told_apart() {
    let (one, two) = (
        Server::start("one", Answer::Session).await,
        Server::start("two", Answer::Session).await,
    );
    let name = Name::default();
    name.leads_to(&[one.address, two.address]);
    let mut watch = SessionClient::new(found_by(&name)).unwrap().watch_each(all());
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(next_of(&mut watch).await);
    }
    for server in [&one, &two] {
        let of: Vec<_> = seen.iter().filter(|(at, _)| *at == server.address).collect();
        assert_eq!((&of[0].1, &of[1].1), (&WatchItem::Found, &WatchItem::Connected));
    }
    two.sends(event(Kind::Ended, "1"));
    let ended = WatchItem::Event(event(Kind::Ended, "1"));
    assert_eq!(next_of(&mut watch).await, (two.address, ended));
    one.ends_watches();
    let (at, item) = next_of(&mut watch).await;
    assert!(at == one.address && is_lost(&item));
    assert_eq!(next_of(&mut watch).await, (one.address, WatchItem::Missed));
    assert_eq!(next_of(&mut watch).await, (one.address, WatchItem::Connected));
}

#[tokio::test]
async fn replicas_that_come_and_go_are_found_and_gone() {
    let (one, two) = (
        Server::start("one", Answer::Session).await,
        Server::start("two", Answer::Session).await,
    );
    let name = Name::default();
    let client = SessionClient::new(found_by(&name)).unwrap();
    let mut endpoints = client.endpoints();
    let mut watch = client.watch_each(all());
    name.leads_to(&[one.address]);
    assert_eq!(next_of(&mut watch).await, (one.address, WatchItem::Found));
    assert_eq!(next_of(&mut watch).await, (one.address, WatchItem::Connected));
    name.leads_to(&[two.address]);
    assert_eq!(next_of(&mut watch).await, (one.address, WatchItem::Gone));
    assert_eq!(next_of(&mut watch).await, (two.address, WatchItem::Found));
    assert_eq!(next_of(&mut watch).await, (two.address, WatchItem::Connected));
    within(one.unwatched()).await;
    let known = within(endpoints.wait_for(|known| known.iter().any(|id| id.address() == two.address)))
        .await
        .unwrap()
        .clone();
    assert_eq!(known.len(), 1);
    assert_eq!(known[0].origin(), "http://session-svc:50051");
}

#[tokio::test]
async fn a_replica_that_does_not_answer_is_found_and_lost_and_delays_no_other() {
    let alive = Server::start("alive", Answer::Session).await;
    let dead = Server::start("dead", Answer::Session).await.stop().await;
    let name = Name::default();
    name.leads_to(&[alive.address, dead]);
    let mut watch = SessionClient::new(found_by(&name)).unwrap().watch_each(all());
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(next_of(&mut watch).await);
    }
    assert!(seen.contains(&(alive.address, WatchItem::Connected)));
    assert!(seen.iter().any(|(at, item)| *at == dead && is_lost(item)));
}
