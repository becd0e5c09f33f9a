//! Streams that the operator's tool has made: the header their pushes come with, verifications, their status, and fetching.

use std::sync::Arc;

use chassis::clock::Clock as _;
use chassis::secret::{Reloading, Secret};
use oidc::{
    NewStream, StreamDelivery, StreamStatus, Transmitter, TransmitterCredentials, TransmitterSettings,
    WantedDelivery,
};
use scripted_provider::ScriptedTransmitter;
use serde_json::{Value, json};
use session_svc::receiver::stream_record::{StreamRecord, StreamRecords};
use session_svc::vault::{KeyRing, Vault};

use super::support::*;
use crate::support::*;

const STREAM: &str = "stream-1";
const SSF: &str = "https://schemas.openid.net/secevent/ssf/event-type/";

fn vault() -> Vault {
    Vault::new(Reloading::new(
        KeyRing::parse(&[Secret::new("ab".repeat(32))]).unwrap(),
    ))
}

fn record(issuer: &str) -> StreamRecord {
    StreamRecord {
        issuer: issuer.to_owned(),
        stream_id: STREAM.to_owned(),
        audience: vec![OURS.to_owned()],
        poll_url: None,
        push_authorization: Some(Secret::new("Bearer of-the-stream".to_owned())),
        status: StreamStatus::Enabled,
        verifications: Vec::new(),
        verified_at_ms: None,
        last_event_at_ms: None,
    }
}

/// A stream with this record.
async fn recorded(world: &World, record: &StreamRecord) {
    let vault = vault();
    assert!(
        StreamRecords::new(&world.store, &vault)
            .insert("idp", record)
            .await
            .unwrap()
    );
}

async fn kept(world: &World) -> StreamRecord {
    let vault = vault();
    let kept = StreamRecords::new(&world.store, &vault)
        .load("idp")
        .await
        .unwrap();
    kept.unwrap().stream
}

async fn with_a_stream() -> Listening {
    let listening = listening().await;
    recorded(&listening.world, &record(listening.transmitter.issuer())).await;
    listening
}

fn about_stream(listening: &Listening, id: &str, name: &str, said: &Value) -> String {
    let sub_id = json!({ "format": "opaque", "id": id });
    let events = json!({ "events": { (format!("{SSF}{name}")): said } });
    listening.patched("session-revoked", &sub_id, &json!({}), &events)
}

async fn push(listening: &mut Listening, token: &str) -> String {
    pushed(&mut listening.one, token, "Bearer of-the-stream")
        .await
        .unwrap()
}

#[tokio::test]
async fn pushes_come_with_the_header_that_was_given_when_the_stream_was_created() {
    let mut listening = with_a_stream().await;
    let id = listening.alice().await;
    let token = listening.token("session-revoked", &person("alice"), &json!({}));
    assert_eq!(listening.push(&token).await.unwrap(), "authentication_failed");
    assert!(listening.is_there(&id).await);
    assert_eq!(push(&mut listening, &token).await, "");
    assert!(!listening.is_there(&id).await);
    assert_eq!(
        kept(&listening.world).await.last_event_at_ms,
        Some(listening.world.clock.now_ms())
    );
}

#[tokio::test]
async fn a_header_in_a_file_is_the_one_the_file_has_now_whatever_was_agreed_on_before() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let write = |header: &str| std::fs::write(file.path(), header).unwrap();
    write("Bearer of-the-file\n");
    let lines = format!("authorization_file = \"{}\"", file.path().display());
    let mut listening = listening_with(&lines).await;
    let issuer = listening.transmitter.issuer().to_owned();
    recorded(&listening.world, &record(&issuer)).await;
    let token = about_stream(&listening, STREAM, "verification", &json!({}));
    for (header, answer) in [
        ("Bearer of-the-stream", "authentication_failed"),
        ("Bearer of-the-file", ""),
    ] {
        let answered = pushed(&mut listening.one, &token, header).await;
        assert_eq!(answered.unwrap(), answer, "{header}");
    }
    write("Bearer of-today\n");
    let mut is_taken_over = async || {
        let answered = pushed(&mut listening.one, &token, "Bearer of-today").await;
        answered.unwrap().is_empty()
    };
    within(async {
        while !is_taken_over().await {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
    let before = pushed(&mut listening.one, &token, "Bearer of-the-file").await;
    assert_eq!(before.unwrap(), "authentication_failed");
}

#[tokio::test]
async fn a_verification_has_to_repeat_what_was_given_and_may_come_unasked() {
    let mut listening = with_a_stream().await;
    let now_ms = listening.world.clock.now_ms();
    {
        let vault = vault();
        let records = StreamRecords::new(&listening.world.store, &vault);
        let waits =
            |stream: &mut StreamRecord| stream.await_verification(Secret::new("abc".to_owned()), now_ms);
        records.edit("idp", waits).await.unwrap().unwrap();
    }
    for (id, said, answer) in [
        (STREAM, json!({ "state": "other" }), "invalid_state"),
        ("another", json!({ "state": "abc" }), "invalid_state"),
    ] {
        let token = about_stream(&listening, id, "verification", &said);
        assert_eq!(push(&mut listening, &token).await, answer, "{id} {said}");
    }
    assert_eq!(kept(&listening.world).await.verified_at_ms, None);
    let token = about_stream(&listening, STREAM, "verification", &json!({ "state": "abc" }));
    assert_eq!(push(&mut listening, &token).await, "");
    let verified = kept(&listening.world).await;
    assert_eq!(
        (verified.verified_at_ms, verified.pending().count()),
        (Some(now_ms), 0)
    );
    // Sent again, as its answer may have been lost.
    let again = about_stream(&listening, STREAM, "verification", &json!({ "state": "abc" }));
    assert_eq!(push(&mut listening, &again).await, "");
    let unasked = about_stream(&listening, STREAM, "verification", &json!({}));
    assert_eq!(push(&mut listening, &unasked).await, "");
}

#[tokio::test]
async fn a_stream_that_its_transmitter_pauses_is_known_to_be_paused() {
    let mut listening = with_a_stream().await;
    let token = about_stream(
        &listening,
        STREAM,
        "stream-updated",
        &json!({ "status": "paused" }),
    );
    assert_eq!(push(&mut listening, &token).await, "");
    assert_eq!(kept(&listening.world).await.status, StreamStatus::Paused);
    let other = about_stream(
        &listening,
        "another",
        "stream-updated",
        &json!({ "status": "disabled" }),
    );
    assert_eq!(push(&mut listening, &other).await, "");
    assert_eq!(kept(&listening.world).await.status, StreamStatus::Paused);
}

/// What proves to the transmitter who fetches.
fn token_file() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), ScriptedTransmitter::TOKEN).unwrap();
    file
}

#[tokio::test]
async fn what_is_not_pushed_is_fetched_and_acts_before_it_is_acknowledged() {
    let mut world = world().await;
    let transmitter = ScriptedTransmitter::start();
    let now = world.clock.now_secs();
    transmitter.script(|script| script.now = Some(now));
    let mut settings = TransmitterSettings::new(transmitter.issuer());
    settings.credentials = TransmitterCredentials::bearer(ScriptedTransmitter::TOKEN).unwrap();
    let wanted = NewStream {
        audience: None,
        events_requested: &[],
        delivery: &WantedDelivery::Poll,
        description: None,
    };
    let created = Transmitter::new(settings)
        .unwrap()
        .create_stream(&wanted, now)
        .await
        .unwrap();
    let StreamDelivery::Poll { endpoint_url } = created.delivery else {
        panic!("{:?}", created.delivery);
    };
    let polled = StreamRecord {
        stream_id: created.stream_id,
        poll_url: Some(endpoint_url),
        push_authorization: None,
        ..record(transmitter.issuer())
    };
    recorded(&world, &polled).await;
    let id = world.create(alice_since(&world, 60)).await.session_id;
    let said = json!({
        "jti": "one", "aud": OURS, "sub_id": person("alice"), "events": { (event_type("session-revoked")): {} },
    });
    transmitter.offer("one", transmitter.event(&said));
    transmitter.offer(
        "other",
        transmitter.event(&json!({ "jti": "other", "aud": "https://other.example" })),
    );
    let token = token_file();
    let file = format!(
        "[[transmitter]]\nid = \"idp\"\nissuer = \"{}\"\nprovider = \"{ISSUER}\"\naudience = \"{OURS}\"\ndelivery = \"poll\"\ntoken_file = \"{}\"\n",
        transmitter.issuer(),
        token.path().display()
    );
    let _replicas = (
        world.listening(Arc::new(world.store.clone()), &file).await,
        world.listening(Arc::new(world.store.clone()), &file).await,
    );
    transmitter.wait_until_fetched().await;
    assert_eq!(transmitter.acknowledged(), ["one"]);
    let refused = transmitter.refused();
    assert_eq!(
        (refused[0].0.as_str(), refused[0].1.as_str()),
        ("other", "invalid_audience")
    );
    let gone = world.one.get_session(by_id(&id)).await.unwrap_err();
    assert_eq!(why(&gone), session_proto::v1::ErrorReason::ErrMissingSession);
}
