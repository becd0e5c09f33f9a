//! The effect of a restart, a store failure and a failed ending on events.

use std::sync::Arc;
use std::time::Duration;

use chassis::clock::Clock;
use serde_json::json;
use session_proto::v1;

use session_svc::store::url::StoreSettings;
use session_svc::store::{KeyValueStore as _, Name, open};

use super::peer::{Peer, status};
use super::support::*;
use crate::failing_store::{FailingStore, Fails};
use crate::redis_server::RedisServer;

/// Pending events: more than one page of notes.
const COUNT: usize = 150;

#[tokio::test]
async fn a_restart_between_an_ending_and_its_delivery_loses_nothing() {
    let peer = Peer::start().await;
    peer.always(status(503));
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let url = format!("file:{}", setting.path().join("sessions.redb").display());
    let store = async |setting: &Setting| {
        let clock: Arc<dyn Clock> = Arc::new(setting.clock.clone());
        let store = open(&url.parse::<StoreSettings>().unwrap(), clock).await;
        store.unwrap()
    };
    let before = setting.replica(store(&setting).await).await;
    before.come_and_go("alice").await;
    let first = peer.wait_for(1).await;
    before.stop().await;
    peer.always(super::peer::accepts());
    let tried = peer.got().len();
    let after = setting.replica(store(&setting).await).await;
    let pushed = peer.wait_for(tried + 1).await;
    assert_eq!(subject_of(&pushed[tried].token), "alice");
    let jti = |token: &str| claims_of(token)["jti"].clone();
    assert_eq!(jti(&pushed[tried].token), jti(&first[0].token));
    until("the event is counted", async || {
        after.counted("files", "delivered") == 1
    })
    .await;
}

#[tokio::test]
async fn a_receiver_that_could_not_be_told_once_is_looked_after_as_seldom_as_others() {
    let peer = Peer::start().await;
    peer.next(status(503));
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let store = Arc::new(setting.memory());
    let replica = setting.replica(store).await;
    replica.come_and_go("alice").await;
    until("the event is counted", async || {
        replica.counted("files", "delivered") == 1
    })
    .await;
    let before = replica.lists_read();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let looks = replica.lists_read() - before;
    assert!(before > 0 && looks < 30, "{looks} looks in three seconds");
}

#[tokio::test]
async fn of_more_events_than_may_wait_the_oldest_are_dropped_and_counted() {
    let peer = Peer::start().await;
    peer.always(status(503));
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    setting.queued_max = Some(3);
    let store = Arc::new(setting.memory());
    let replica = setting.replica(store).await;
    for number in 0..5 {
        replica.come_and_go(&format!("user-{number}")).await;
        setting.clock.advance_ms(1);
    }
    until("two are dropped", async || {
        replica.counted("files", "dropped") == 2
    })
    .await;
    let tried = peer.got().len();
    peer.always(super::peer::accepts());
    until("three are told", async || {
        replica.counted("files", "delivered") == 3
    })
    .await;
    let told = &peer.got()[tried..];
    let mut subjects: Vec<String> = told.iter().map(|one| subject_of(&one.token)).collect();
    subjects.sort();
    assert_eq!(subjects, ["user-2", "user-3", "user-4"]);
}

#[tokio::test]
async fn an_ending_goes_on_where_its_event_cannot_be_noted_which_is_made_up_for() {
    let world = world().await;
    let peer = Peer::start().await;
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let failing = FailingStore::over(&world);
    let replica = setting.replica(Arc::new(failing.clone())).await;
    // Each of the writes before a removal fails in turn.
    for writes in 0..4 {
        let user = json!({"sub": format!("user-{writes}")});
        let id = replica.sign_in(user, "").await;
        failing.fails(Fails::Insert(writes));
        let ended = replica.client.clone().end_session(end(&id)).await;
        assert!(ended.unwrap().into_inner().ended, "{writes}");
        failing.fails(Fails::Nothing);
    }
    peer.wait_for(4).await;
    assert_eq!(replica.counted("files", "lost"), 0);
}

/// The users of the first events.
async fn subjects(peer: &Peer, count: usize) -> Vec<String> {
    let pushed = peer.wait_for(count).await;
    pushed.iter().map(|one| subject_of(&one.token)).collect()
}

#[tokio::test]
async fn an_ending_that_failed_is_not_reported_and_the_next_one_is() {
    let world = world().await;
    let peer = Peer::start().await;
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let failing = FailingStore::over(&world);
    let replica = setting.replica(Arc::new(failing.clone())).await;
    let id = replica.sign_in(json!({"sub": "alice"}), "").await;
    failing.refuses_removals(true);
    replica.client.clone().end_session(end(&id)).await.unwrap_err();
    failing.refuses_removals(false);
    replica.come_and_go("bob").await;
    assert_eq!(subjects(&peer, 1).await, ["bob"]);
    // Long after the call.
    world.clock.advance_ms(130_000);
    replica.come_and_go("carol").await;
    assert_eq!(subjects(&peer, 2).await, ["bob", "carol"]);
    replica.sign_out(&id).await;
    assert_eq!(subjects(&peer, 3).await, ["bob", "carol", "alice"]);
}

#[tokio::test]
async fn the_note_of_an_ending_that_failed_is_not_dropped_under_the_next_one() {
    let world = world().await;
    let peer = Peer::start().await;
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let failing = FailingStore::over(&world);
    let replica = setting.replica(Arc::new(failing.clone())).await;
    let created = replica.client.clone().create_session(alice()).await.unwrap();
    let created = created.into_inner();
    failing.refuses_removals(true);
    let ended = replica.client.clone().end_session(end(&created.session_id)).await;
    ended.unwrap_err();
    world.clock.advance_ms(130_000);
    // The second ending is in progress.
    let ended = replica.client.clone().end_session(end(&created.session_id)).await;
    ended.unwrap_err();
    failing.refuses_removals(false);
    replica.come_and_go("bob").await;
    assert_eq!(subjects(&peer, 1).await, ["bob"]);
    let name = Name::parse(&created.session.unwrap().handle).unwrap();
    world.store.remove(name, Vec::new()).await.unwrap().unwrap();
    assert_eq!(subjects(&peer, 2).await, ["bob", "alice"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_redis_what_waited_for_a_receiver_is_delivered_once_when_it_is_back() {
    let server = RedisServer::start(&[]);
    let peer = Peer::start().await;
    peer.always(status(503));
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let url = format!("redis://127.0.0.1:{}", server.port);
    let settings: StoreSettings = url.parse().unwrap();
    let clock: Arc<dyn Clock> = Arc::new(setting.clock.clone());
    let one = setting
        .replica(open(&settings, Arc::clone(&clock)).await.unwrap())
        .await;
    let two = setting.replica(open(&settings, clock).await.unwrap()).await;
    let mut ending = tokio::task::JoinSet::new();
    for lane in 0..10 {
        let client = two.client.clone();
        ending.spawn(async move {
            for number in 0..COUNT / 10 {
                let subject = format!("user-{lane}-{number}");
                let request = v1::CreateSessionRequest {
                    user: claims(json!({"sub": subject})),
                    ..alice()
                };
                let created = client.clone().create_session(request).await.unwrap().into_inner();
                client
                    .clone()
                    .end_session(end(&created.session_id))
                    .await
                    .unwrap();
            }
        });
    }
    ending.join_all().await;
    peer.always(super::peer::accepts());
    let told = || (one.counted("files", "delivered") + two.counted("files", "delivered")) as usize;
    until("all are told", async || told() == COUNT).await;
    let mut subjects: Vec<String> = peer.got().iter().map(|one| subject_of(&one.token)).collect();
    subjects.sort();
    subjects.dedup();
    assert_eq!(subjects.len(), COUNT);
}

#[tokio::test]
async fn when_the_replica_that_tells_stops_another_goes_on() {
    let peer = Peer::start().await;
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let store = Arc::new(setting.memory());
    let one = setting.replica(Arc::clone(&store) as _).await;
    one.come_and_go("alice").await;
    until("the event is counted", async || {
        one.counted("files", "delivered") == 1
    })
    .await;
    let two = setting.replica(store).await;
    one.stop().await;
    two.come_and_go("bob").await;
    assert_eq!(subject_of(&peer.wait_for(2).await[1].token), "bob");
}
