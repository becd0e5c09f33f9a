//! The API of streams (SSF 1.0, sections 7 and 8).

use std::sync::Arc;

use serde_json::{Value, json};

use super::peer::Peer;
use super::support::*;

const ESTABLISHED: &str = "https://schemas.openid.net/secevent/caep/event-type/session-established";

fn now() -> Value {
    json!({"returnImmediately": true})
}

async fn waiting(replica: &Replica, id: &str) -> usize {
    let answer = replica.poll(id, &now()).await;
    answer.body["sets"].as_object().unwrap().len()
}

#[tokio::test]
async fn the_metadata_says_where_everything_is() {
    let mut setting = Setting::new().await.polling("files", "");
    let replica = setting.replica(Arc::new(setting.memory())).await;
    let transmitter = oidc::Transmitter::new(oidc::TransmitterSettings::new(&setting.issuer)).unwrap();
    let metadata = transmitter.metadata().await.unwrap();
    assert_eq!(metadata.spec_version.as_deref(), Some("1_0"));
    assert_eq!(
        metadata.delivery_methods,
        ["urn:ietf:rfc:8935", "urn:ietf:rfc:8936"]
    );
    assert_eq!(metadata.authorization_schemes, ["urn:ietf:rfc:6750"]);
    assert_eq!(metadata.default_subjects, Some(oidc::DefaultSubjects::All));
    let at = |name: &str| format!("{}/{name}", setting.issuer);
    assert_eq!(
        metadata.configuration_endpoint.as_ref().unwrap().as_str(),
        at("streams")
    );
    assert_eq!(metadata.status_endpoint.as_ref().unwrap().as_str(), at("status"));
    assert_eq!(
        metadata.verification_endpoint.as_ref().unwrap().as_str(),
        at("verification")
    );
    let keys = replica.ask("GET", "/ssf/jwks.json", None, &Value::Null).await;
    assert!(keys.body["keys"][0].get("d").is_none(), "{keys:?}");
}

#[tokio::test]
async fn a_receiver_reads_and_changes_its_own_stream_alone() {
    let peer = Peer::start().await;
    let mut setting = Setting::new()
        .await
        .pushed(
            "files",
            &peer.url,
            r#"events = ["session-revoked", "session-established"]"#,
        )
        .polling("mail", "");
    let replica = setting.replica(Arc::new(setting.memory())).await;
    let (files, mail) = (replica.stream_of("files").await, replica.stream_of("mail").await);
    let path = |id: &str| format!("/ssf/streams?stream_id={id}");
    let before = replica.ask_as("files", "GET", &path(&files), &Value::Null).await;
    assert_eq!(before.headers["cache-control"], "no-store");
    let expected = json!({
        "stream_id": files,
        "iss": setting.issuer,
        "aud": "https://files.example",
        "delivery": {"method": "urn:ietf:rfc:8935", "endpoint_url": peer.url},
        "events_supported": [REVOKED, ESTABLISHED],
        "events_requested": [REVOKED, ESTABLISHED],
        "events_delivered": [REVOKED, ESTABLISHED],
        "min_verification_interval": 10,
    });
    assert_eq!(before.body, expected);
    for (method, path, body) in [
        ("GET", path(&mail), Value::Null),
        ("GET", path("nothing"), Value::Null),
        ("DELETE", path(&mail), Value::Null),
        ("DELETE", "/ssf/streams".to_owned(), Value::Null),
        (
            "PATCH",
            "/ssf/streams".to_owned(),
            json!({"stream_id": mail, "description": "x"}),
        ),
        ("PUT", "/ssf/streams".to_owned(), json!({"stream_id": mail})),
        ("GET", format!("/ssf/status?stream_id={mail}"), Value::Null),
        (
            "POST",
            "/ssf/status".to_owned(),
            json!({"stream_id": mail, "status": "paused"}),
        ),
        ("POST", "/ssf/verification".to_owned(), json!({"stream_id": mail})),
    ] {
        let answer = replica.ask_as("files", method, &path, &body).await;
        assert_eq!(answer.status, 404, "{method} {path}");
        let answer = replica.ask(method, &path, Some("a-token-of-nobody"), &body).await;
        assert_eq!(answer.status, 401, "{method} {path}");
    }
    let change =
        async |method: &str, body: Value| replica.ask_as("files", method, "/ssf/streams", &body).await;
    for wrong in [
        json!("{"),
        json!({}),
        json!({"stream_id": files, "events_requested": "all"}),
        json!({"stream_id": files, "description": 7}),
        json!({"stream_id": files, "aud": "https://other.example"}),
        json!({"stream_id": files, "events_delivered": [REVOKED]}),
        json!({"stream_id": files, "delivery": {"method": "urn:ietf:rfc:8936"}}),
        json!({"stream_id": files, "delivery": {"method": "urn:ietf:rfc:8935", "endpoint_url": "https://evil.example"}}),
    ] {
        assert_eq!(change("PATCH", wrong.clone()).await.status, 400, "{wrong}");
    }
    // What is not understood, or not allowed, is passed over.
    let unknown = "https://schemas.openid.net/secevent/risc/event-type/account-disabled";
    let wanted =
        json!({"stream_id": files, "events_requested": [ESTABLISHED, unknown], "description": "ours"});
    let patched = change("PATCH", wanted).await;
    assert_eq!(patched.status, 200);
    assert_eq!(patched.body["events_delivered"], json!([ESTABLISHED]));
    assert_eq!(patched.body["description"], "ours");
    replica.come_and_go("alice").await;
    let pushed = peer.wait_for(1).await;
    assert!(claims_of(&pushed[0].token)["events"].get(ESTABLISHED).is_some());
    let replaced = change("PUT", expected.clone()).await;
    assert_eq!(replaced.status, 400, "events_delivered is not what it is now");
    let replaced = change("PUT", json!({"stream_id": files})).await;
    assert_eq!((replaced.status, replaced.body), (200, expected));
}

#[tokio::test]
async fn a_deleted_stream_is_told_nothing_until_it_is_created_again() {
    let mut setting = Setting::new().await.polling("files", "");
    let store = setting.memory();
    let replica = setting.replica(Arc::new(store.clone())).await;
    let stream = replica.stream_of("files").await;
    let path = format!("/ssf/streams?stream_id={stream}");
    let poll = json!({"delivery": {"method": "urn:ietf:rfc:8936"}});
    let push = json!({"delivery": {"method": "urn:ietf:rfc:8935", "endpoint_url": "https://files.example"}});
    let create = async |body: &Value| replica.ask_as("files", "POST", "/ssf/streams", body).await.status;
    assert_eq!(create(&poll).await, 409, "it is there by the file");
    replica.come_and_go("before").await;
    assert_eq!(waiting(&replica, "files").await, 1);
    let deleted = replica.ask_as("files", "DELETE", &path, &Value::Null).await;
    assert_eq!(deleted.status, 204);
    for (method, path) in [("GET", path.clone()), ("POST", format!("/ssf/poll/{stream}"))] {
        assert_eq!(replica.ask_as("files", method, &path, &now()).await.status, 404);
    }
    let list = replica.ask_as("files", "GET", "/ssf/streams", &Value::Null).await;
    assert_eq!((list.status, list.body), (200, json!([])));
    replica.come_and_go("meanwhile").await;
    // Also to a replica that was not there.
    let another = setting.replica(Arc::new(store)).await;
    let list = another.ask_as("files", "GET", "/ssf/streams", &Value::Null).await;
    assert_eq!(list.body, json!([]));
    setting.clock.advance_ms(1);
    assert_eq!(create(&push).await, 400);
    assert_eq!(create(&poll).await, 201);
    assert_eq!(waiting(&replica, "files").await, 0);
    replica.come_and_go("after").await;
    until("the event is there", async || {
        waiting(&replica, "files").await == 1
    })
    .await;
}

#[tokio::test]
async fn a_paused_stream_holds_events_and_a_disabled_one_drops_them() {
    let peer = Peer::start().await;
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let replica = setting.replica(Arc::new(setting.memory())).await;
    let stream = replica.stream_of("files").await;
    let path = format!("/ssf/status?stream_id={stream}");
    let set = async |status: &str| {
        let body = json!({"stream_id": stream, "status": status, "reason": "because"});
        replica.ask_as("files", "POST", "/ssf/status", &body).await
    };
    assert_eq!(set("gone").await.status, 400);
    let told = set("paused").await;
    let expected = json!({"stream_id": stream, "status": "paused", "reason": "because"});
    assert_eq!((told.status, told.body), (200, expected.clone()));
    let read = replica.ask_as("files", "GET", &path, &Value::Null).await;
    assert_eq!(read.body, expected);
    replica.come_and_go("held").await;
    setting.clock.advance_ms(1);
    assert_eq!(set("enabled").await.status, 200);
    assert_eq!(subject_of(&peer.wait_for(1).await[0].token), "held");
    assert_eq!(set("disabled").await.status, 200);
    replica.come_and_go("dropped").await;
    setting.clock.advance_ms(1);
    assert_eq!(set("enabled").await.status, 200);
    replica.come_and_go("after").await;
    assert_eq!(subject_of(&peer.wait_for(2).await[1].token), "after");
}

#[tokio::test]
async fn a_verification_carries_its_state_and_is_not_asked_for_too_often() {
    let peer = Peer::start().await;
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let replica = setting.replica(Arc::new(setting.memory())).await;
    let stream = replica.stream_of("files").await;
    let ask = async |body: Value| replica.ask_as("files", "POST", "/ssf/verification", &body).await;
    assert_eq!(ask(json!({"stream_id": stream, "state": 7})).await.status, 400);
    let body = json!({"stream_id": stream, "state": "a state"});
    assert_eq!(ask(body.clone()).await.status, 204);
    let too_early = ask(body).await;
    assert_eq!(too_early.status, 429);
    assert_eq!(too_early.headers["retry-after"], "10");
    let pushed = peer.wait_for(1).await;
    let token = setting.verified("files", &pushed[0].token).await;
    assert_eq!(token.stream_id(), Some(stream.as_str()));
    let events = claims_of(&pushed[0].token)["events"].clone();
    let verification = "https://schemas.openid.net/secevent/ssf/event-type/verification";
    assert_eq!(events, json!({verification: {"state": "a state"}}));
    setting.clock.advance_ms(10_000);
    assert_eq!(ask(json!({"stream_id": stream})).await.status, 204);
    let pushed = peer.wait_for(2).await;
    assert_eq!(claims_of(&pushed[1].token)["events"], json!({verification: {}}));
}

#[tokio::test]
async fn of_more_than_a_stream_may_hold_the_oldest_go_first_and_are_counted() {
    let mut setting = Setting::new().await.polling("files", "");
    setting.queued_max = Some(3);
    let replica = setting.replica(Arc::new(setting.memory())).await;
    let stream = replica.stream_of("files").await;
    let set = async |status: &str| {
        let body = json!({"stream_id": stream, "status": status});
        replica.ask_as("files", "POST", "/ssf/status", &body).await.status
    };
    assert_eq!(set("paused").await, 200);
    for number in 0..5 {
        replica.come_and_go(&format!("user-{number}")).await;
        setting.clock.advance_ms(1);
    }
    until("two are dropped", async || {
        replica.counted("files", "dropped") == 2
    })
    .await;
    assert_eq!(waiting(&replica, "files").await, 0);
    assert_eq!(set("enabled").await, 200);
    let answer = replica.poll("files", &now()).await;
    let sets = answer.body["sets"].as_object().unwrap();
    let mut subjects: Vec<String> = sets
        .values()
        .map(|token| subject_of(token.as_str().unwrap()))
        .collect();
    subjects.sort();
    assert_eq!(subjects, ["user-2", "user-3", "user-4"]);
}

#[tokio::test]
async fn a_stream_whose_key_was_removed_is_told_as_the_file_says_and_can_be_changed() {
    let peer = Peer::start().await;
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let store = setting.memory();
    let before = setting.replica(Arc::new(store.clone())).await;
    let stream = before.stream_of("files").await;
    let change = json!({"stream_id": stream, "description": "ours"});
    let changed = before.ask_as("files", "PATCH", "/ssf/streams", &change).await;
    assert_eq!(changed.status, 200);
    before.stop().await;
    setting.key = "cd";
    let after = setting.replica(Arc::new(store)).await;
    after.come_and_go("alice").await;
    assert_eq!(subject_of(&peer.wait_for(1).await[0].token), "alice");
    let read = after.ask_as("files", "GET", "/ssf/streams", &Value::Null).await;
    assert_eq!((read.status, &read.body[0]["description"]), (200, &Value::Null));
    let changed = after.ask_as("files", "PATCH", "/ssf/streams", &change).await;
    assert_eq!(
        (changed.status, &changed.body["description"]),
        (200, &json!("ours"))
    );
}
