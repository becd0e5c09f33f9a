//! What a restart, a store that fails and an ending that fails do to events.

use std::sync::Arc;

use chassis::clock::Clock;
use serde_json::json;
use session_svc::store::open;
use session_svc::store::url::StoreSettings;

use super::peer::{Peer, status};
use super::support::*;
use crate::failing_store::{FailingStore, Fails};

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
async fn an_ending_goes_on_where_its_event_cannot_be_noted() {
    let world = world().await;
    let peer = Peer::start().await;
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let failing = FailingStore::over(&world);
    let replica = setting.replica(Arc::new(failing.clone())).await;
    // Whichever of the writes before a removal fails.
    for writes in 0..4 {
        let user = json!({"sub": format!("user-{writes}")});
        let id = replica.sign_in(user, "").await;
        failing.fails(Fails::Insert(writes));
        let ended = replica.client.clone().end_session(end(&id)).await;
        assert!(ended.unwrap().into_inner().ended, "{writes}");
        failing.fails(Fails::Nothing);
    }
    assert_eq!(replica.counted("files", "lost"), 1);
    peer.wait_for(3).await;
}

#[tokio::test]
async fn an_ending_that_failed_is_told_to_nobody_and_the_next_one_is() {
    let world = world().await;
    let mut setting = Setting::new().await.polling("files", "");
    let failing = FailingStore::over(&world);
    let replica = setting.replica(Arc::new(failing.clone())).await;
    let now = json!({"returnImmediately": true});
    let fetched = async || {
        replica.poll("files", &now).await.body["sets"]
            .as_object()
            .unwrap()
            .len()
    };
    let id = replica.sign_in(json!({"sub": "alice"}), "").await;
    failing.refuses_removals(true);
    replica.client.clone().end_session(end(&id)).await.unwrap_err();
    assert_eq!(fetched().await, 0);
    // Long after the call.
    failing.refuses_removals(false);
    world.clock.advance_ms(130_000);
    assert_eq!(fetched().await, 0);
    replica.sign_out(&id).await;
    assert_eq!(fetched().await, 1);
}
