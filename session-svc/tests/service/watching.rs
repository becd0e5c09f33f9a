//! WatchSessions: which events each watcher gets, in order, and that no gap goes unreported.

use session_proto::v1::session_event::Kind;
use session_proto::v1::{self, SessionEvent};
use tonic::Streaming;

use crate::support::*;

async fn next(stream: &mut Streaming<SessionEvent>) -> SessionEvent {
    loop {
        let event = within(stream.message()).await.unwrap().unwrap();
        if event.kind() != Kind::Heartbeat {
            return event;
        }
    }
}

#[tokio::test]
async fn a_session_s_life_is_told_in_order_across_replicas() {
    let mut world = world().await;
    let mut stream = world
        .two
        .watch_sessions(v1::WatchSessionsRequest::default())
        .await
        .unwrap()
        .into_inner();
    let first = within(stream.message()).await.unwrap().unwrap();
    assert_eq!(first.kind(), Kind::Heartbeat);
    let interval = first.heartbeat_interval.map(|interval| interval.nanos);
    assert_eq!(interval, Some(20_000_000), "of the harness");
    let created = world.create(alice()).await;
    let id = created.session_id;
    world.clock.advance_ms(60_000);
    world
        .one
        .roll_session(v1::RollSessionRequest {
            session_id: id.clone(),
            device: None,
        })
        .await
        .unwrap();
    world.one.get_access_token(forced(&id)).await.unwrap();
    world.one.end_session(end(&id)).await.unwrap();
    for kind in [Kind::Created, Kind::Rolled, Kind::Refreshed, Kind::Ended] {
        let event = next(&mut stream).await;
        assert_eq!((event.kind(), event.subject.as_str()), (kind, "alice"));
        assert_eq!(event.handle, created.session.as_ref().unwrap().handle);
        if kind == Kind::Ended {
            assert_eq!(event.cause(), v1::Cause::Logout);
        }
    }
}

#[tokio::test]
async fn why_a_session_ended_is_told_and_a_later_releases_word_is_other() {
    const UNKNOWN: i32 = 4_711;
    let mut world = world().await;
    let everything = v1::WatchSessionsRequest::default();
    let mut stream = world.two.watch_sessions(everything).await.unwrap().into_inner();
    for (cause, one, all) in [
        (0, v1::Cause::Logout, v1::Cause::Operator),
        (
            v1::Cause::OtherDevice.into(),
            v1::Cause::OtherDevice,
            v1::Cause::OtherDevice,
        ),
        (UNKNOWN, v1::Cause::Other, v1::Cause::Other),
    ] {
        let id = world.create(alice()).await.session_id;
        let request = v1::EndSessionRequest { cause, ..end(&id) };
        assert!(world.one.end_session(request).await.unwrap().into_inner().ended);
        world.create(alice()).await;
        let request = v1::EndSessionsRequest {
            cause,
            ..end_all("alice", "")
        };
        let ended = world.one.end_sessions(request).await.unwrap().into_inner();
        assert_eq!(ended.ended_count, 1);
        for expected in [one, all] {
            assert_eq!(
                next(&mut stream).await.cause(),
                v1::Cause::Unspecified,
                "it began"
            );
            let event = next(&mut stream).await;
            assert_eq!((event.kind(), event.cause()), (Kind::Ended, expected), "{cause}");
        }
    }
}

#[tokio::test]
async fn a_watch_of_a_person_is_told_of_nobody_else_and_goes_on_where_it_left() {
    let mut world = world().await;
    let bob = v1::WatchSessionsRequest {
        issuer: ISSUER.to_owned(),
        subject: "bob".to_owned(),
        ..Default::default()
    };
    let mut stream = world.one.watch_sessions(bob.clone()).await.unwrap().into_inner();
    assert_eq!(
        within(stream.message()).await.unwrap().unwrap().kind(),
        Kind::Heartbeat
    );
    world.create(alice()).await;
    let request = || v1::CreateSessionRequest {
        user: claims(serde_json::json!({"sub": "bob"})),
        ..alice()
    };
    let first = world.create(request()).await;
    let event = next(&mut stream).await;
    assert_eq!(
        (event.kind(), event.handle),
        (Kind::Created, first.session.unwrap().handle)
    );
    drop(stream);
    world.one.end_session(end(&first.session_id)).await.unwrap();
    let resumed = v1::WatchSessionsRequest {
        resume_token: event.resume_token,
        ..bob
    };
    let mut stream = world.two.watch_sessions(resumed).await.unwrap().into_inner();
    assert_eq!(next(&mut stream).await.kind(), Kind::Ended);
}

#[tokio::test]
async fn a_watch_of_a_session_is_told_of_no_other() {
    let mut world = world().await;
    let (one, other) = (world.create(alice()).await, world.create(alice()).await);
    let handle = other.session.unwrap().handle;
    let request = v1::WatchSessionsRequest {
        handle: handle.clone(),
        ..Default::default()
    };
    let mut stream = world.two.watch_sessions(request).await.unwrap().into_inner();
    within(stream.message()).await.unwrap().unwrap();
    world.one.end_session(end(&one.session_id)).await.unwrap();
    world.one.end_session(end(&other.session_id)).await.unwrap();
    let event = next(&mut stream).await;
    assert_eq!((event.kind(), event.handle), (Kind::Ended, handle));
}

#[tokio::test]
async fn a_change_that_cannot_be_read_is_told_as_missed() {
    let mut world = world().await;
    let mut without_the_key = world.another(lifetime(), "cd").await;
    let request = v1::WatchSessionsRequest::default();
    let mut stream = without_the_key
        .watch_sessions(request)
        .await
        .unwrap()
        .into_inner();
    within(stream.message()).await.unwrap().unwrap();
    world.create(alice()).await;
    assert_eq!(within(next(&mut stream)).await.kind(), Kind::Missed);
}

#[tokio::test]
async fn a_position_that_is_not_known_is_told_as_missed() {
    let mut world = world().await;
    let request = v1::WatchSessionsRequest {
        resume_token: "long-ago".to_owned(),
        ..Default::default()
    };
    let mut stream = world.one.watch_sessions(request).await.unwrap().into_inner();
    assert_eq!(next(&mut stream).await.kind(), Kind::Missed);
}

#[tokio::test]
async fn a_watch_that_mixes_a_handle_with_a_person_is_refused() {
    let mut world = world().await;
    let handle = "0".repeat(32);
    let request = v1::WatchSessionsRequest {
        handle,
        issuer: ISSUER.to_owned(),
        ..Default::default()
    };
    assert_eq!(
        field(world.one.watch_sessions(request).await.map(|_| ())),
        "handle"
    );
}

#[tokio::test]
async fn a_watch_that_was_told_nothing_can_be_resumed() {
    let mut world = world().await;
    let mut stream = world
        .one
        .watch_sessions(v1::WatchSessionsRequest::default())
        .await
        .unwrap()
        .into_inner();
    let beat = within(stream.message()).await.unwrap().unwrap();
    assert_eq!(beat.kind(), Kind::Heartbeat);
    drop(stream);
    let created = world.create(alice()).await;
    let request = v1::WatchSessionsRequest {
        resume_token: beat.resume_token,
        ..Default::default()
    };
    let mut stream = world.two.watch_sessions(request).await.unwrap().into_inner();
    let event = next(&mut stream).await;
    assert_eq!(event.kind(), Kind::Created);
    assert_eq!(event.handle, created.session.unwrap().handle);
}
