//! GetSession and RollSession: how a session is looked up, how long it lives, what rolling keeps.

use session_proto::error;
use session_proto::timestamp::{from_ms, to_ms};
use session_proto::v1::{self, ErrorReason};
use session_svc::session::Lifetime;

use crate::support::*;

fn expires_ms(session: &v1::Session) -> u64 {
    to_ms(session.expires_at.as_ref().unwrap())
}

#[tokio::test]
async fn a_session_is_read_at_the_other_replica_by_id_and_by_handle() {
    let mut world = world().await;
    let created = world.create(alice()).await;
    let session = created.session.unwrap();
    assert_eq!((session.subject.as_str(), session.version), ("alice", 1));
    let read = world
        .two
        .get_session(by_id(&created.session_id))
        .await
        .unwrap()
        .into_inner()
        .session
        .unwrap();
    assert_eq!(*read, session);
    let by = Some(v1::get_session_request::By::Handle(session.handle.clone()));
    assert_eq!(
        world
            .two
            .get_session(v1::GetSessionRequest { by })
            .await
            .unwrap()
            .into_inner()
            .session,
        Some(read)
    );
}

#[tokio::test]
async fn a_session_ends_exactly_at_its_idle_deadline() {
    let mut world = world().await;
    let id = world.create(alice()).await.session_id;
    world.clock.advance_ms(24 * HOUR_MS - 1);
    world.one.get_session(by_id(&id)).await.unwrap();
    world.clock.advance_ms(1);
    assert_eq!(
        reason(world.one.get_session(by_id(&id)).await),
        ErrorReason::ErrMissingSession
    );
    assert_eq!(
        reason(world.one.roll_session(roll(&id)).await),
        ErrorReason::ErrMissingSession
    );
}

#[tokio::test]
async fn rolling_is_throttled_and_never_moves_the_absolute_end() {
    let mut world = world().await;
    let id = world.create(alice()).await.session_id;
    world.clock.advance_ms(59_999);
    assert!(
        !world
            .one
            .roll_session(roll(&id))
            .await
            .unwrap()
            .into_inner()
            .rolled
    );
    world.clock.advance_ms(1);
    let rolled = world.two.roll_session(roll(&id)).await.unwrap().into_inner();
    assert!(rolled.rolled);
    assert_eq!(
        expires_ms(&rolled.session.unwrap()),
        START_MS + 60_000 + 24 * HOUR_MS
    );
    for _ in 0..8 {
        world.clock.advance_ms(20 * HOUR_MS);
        world.one.roll_session(roll(&id)).await.unwrap();
    }
    world.clock.set_ms(START_MS + 7 * 24 * HOUR_MS - 1);
    let last = world.one.roll_session(roll(&id)).await.unwrap().into_inner();
    assert_eq!(expires_ms(&last.session.unwrap()), START_MS + 7 * 24 * HOUR_MS);
    world.clock.advance_ms(1);
    assert_eq!(
        reason(world.one.roll_session(roll(&id)).await),
        ErrorReason::ErrMissingSession
    );
}

#[tokio::test]
async fn a_shortened_duration_ends_old_sessions_and_a_cap_holds() {
    let mut world = world().await;
    let id = world.create(alice()).await.session_id;
    let short = Lifetime {
        rolling_ms: HOUR_MS,
        ..lifetime()
    };
    let mut strict = world.another(short, "ab").await;
    let capped = v1::CreateSessionRequest {
        not_after: Some(from_ms(START_MS + 1_000)),
        ..alice()
    };
    let capped = world.create(capped).await;
    assert_eq!(expires_ms(&capped.session.unwrap()), START_MS + 1_000);
    world.clock.advance_ms(HOUR_MS);
    assert_eq!(
        reason(strict.get_session(by_id(&id)).await),
        ErrorReason::ErrMissingSession
    );
    let listed = strict.list_sessions(list(0, "")).await.unwrap().into_inner();
    assert!(listed.sessions.is_empty(), "nor is it listed");
    world.one.get_session(by_id(&id)).await.unwrap();
    assert_eq!(
        reason(world.one.get_session(by_id(&capped.session_id)).await),
        ErrorReason::ErrMissingSession
    );
}

#[tokio::test]
async fn rotating_keys_signs_nobody_out_and_a_key_that_a_replica_lacks_is_no_sign_out() {
    let mut world = world().await;
    let id = world.create(alice()).await.session_id;
    let mut rotated = world.another(lifetime(), "cd,ab").await;
    world.clock.advance_ms(60_000);
    assert!(rotated.roll_session(roll(&id)).await.unwrap().into_inner().rolled);
    let mut after = world.another(lifetime(), "cd").await;
    after.get_session(by_id(&id)).await.unwrap();
    let lacking = world.one.get_session(by_id(&id)).await.unwrap_err();
    assert_eq!(lacking.code(), tonic::Code::Unavailable);
    assert_eq!(
        error::reason_of(&lacking),
        Some(ErrorReason::ErrUnknownEncryptionKey)
    );
    // The fingerprint of the key of 32 bytes 0xcd.
    assert_eq!(error::metadata_of(&lacking)["key"].len(), 8);
    for failed in [
        reason(world.one.roll_session(roll(&id)).await),
        reason(world.one.get_access_token(token(&id)).await),
    ] {
        assert_eq!(failed, ErrorReason::ErrUnknownEncryptionKey);
    }
    world
        .one
        .end_session(end(&id))
        .await
        .expect("what cannot be read can still be ended");
    assert_eq!(
        reason(after.get_session(by_id(&id)).await),
        ErrorReason::ErrMissingSession
    );
}

#[tokio::test]
async fn the_device_is_kept_as_it_was_at_the_beginning_and_at_the_last_write_of_its_use() {
    let mut world = world().await;
    let device = |user_agent: &str, address: &str| {
        Some(v1::Device {
            user_agent: user_agent.to_owned(),
            address: address.to_owned(),
            at: None,
        })
    };
    let request = v1::CreateSessionRequest {
        device: device("Firefox", "192.0.2.1"),
        ..alice()
    };
    let created = world.create(request).await;
    let use_it = |device| v1::RollSessionRequest {
        device,
        ..roll(&created.session_id)
    };
    let seen = |session: &v1::Session| {
        let reported = |device: &Option<v1::Device>| {
            let device = device.clone().unwrap();
            (device.user_agent, device.address, to_ms(&device.at.unwrap()))
        };
        (reported(&session.created_on), reported(&session.last_seen_on))
    };
    let first = ("Firefox".to_owned(), "192.0.2.1".to_owned(), START_MS);
    assert_eq!(
        seen(created.session.as_ref().unwrap()),
        (first.clone(), first.clone())
    );
    world.clock.advance_ms(60_000);
    let rolled = world
        .one
        .roll_session(use_it(device("Firefox 2", "2001:db8::1")))
        .await
        .unwrap();
    let second = (
        "Firefox 2".to_owned(),
        "2001:db8::1".to_owned(),
        START_MS + 60_000,
    );
    assert_eq!(
        seen(&rolled.into_inner().session.unwrap()),
        (first.clone(), second.clone())
    );
    // No write is due, so the answer equals the stored session.
    let rolled = world
        .two
        .roll_session(use_it(device("other", "192.0.2.9")))
        .await
        .unwrap();
    assert_eq!(
        seen(&rolled.into_inner().session.unwrap()),
        (first.clone(), second)
    );
    world.clock.advance_ms(60_000);
    let rolled = world.two.roll_session(use_it(None)).await.unwrap();
    let (_, last) = seen(&rolled.into_inner().session.unwrap());
    assert_eq!(
        last,
        (
            "Firefox 2".to_owned(),
            "2001:db8::1".to_owned(),
            START_MS + 120_000
        )
    );
    let long = use_it(device(&"x".repeat(10_000), ""));
    world.clock.advance_ms(60_000);
    let rolled = world.one.roll_session(long).await.unwrap().into_inner();
    let kept = rolled.session.unwrap().last_seen_on.unwrap();
    assert!(
        kept.user_agent.len() < 1_000 && kept.address.is_empty(),
        "{}",
        kept.user_agent.len()
    );
}
