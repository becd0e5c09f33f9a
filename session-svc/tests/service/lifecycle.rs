//! Create, read, roll, update, list and end.

use session_proto::timestamp::{from_ms, to_ms};
use session_proto::v1::{self, ErrorReason};
use session_svc::session::Lifetime;

use crate::support::*;

fn roll(id: &str) -> v1::RollSessionRequest {
    v1::RollSessionRequest {
        session_id: id.to_owned(),
        device: None,
    }
}

fn expires_ms(session: &Option<v1::Session>) -> u64 {
    to_ms(session.as_ref().unwrap().expires_at.as_ref().unwrap())
}

fn end_all(subject: &str, sid: &str) -> v1::EndSessionsRequest {
    let (subject, provider_sid) = (subject.to_owned(), sid.to_owned());
    v1::EndSessionsRequest {
        issuer: ISSUER.to_owned(),
        subject,
        provider_sid,
        ..Default::default()
    }
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
    assert_eq!(read, session);
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
    assert_eq!(expires_ms(&rolled.session), START_MS + 60_000 + 24 * HOUR_MS);
    for _ in 0..8 {
        world.clock.advance_ms(20 * HOUR_MS);
        world.one.roll_session(roll(&id)).await.unwrap();
    }
    world.clock.set_ms(START_MS + 7 * 24 * HOUR_MS - 1);
    let last = world.one.roll_session(roll(&id)).await.unwrap().into_inner();
    assert_eq!(expires_ms(&last.session), START_MS + 7 * 24 * HOUR_MS);
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
    assert_eq!(expires_ms(&capped.session), START_MS + 1_000);
    world.clock.advance_ms(HOUR_MS);
    assert_eq!(
        reason(strict.get_session(by_id(&id)).await),
        ErrorReason::ErrMissingSession
    );
    world.one.get_session(by_id(&id)).await.unwrap();
    assert_eq!(
        reason(world.one.get_session(by_id(&capped.session_id)).await),
        ErrorReason::ErrMissingSession
    );
}

#[tokio::test]
async fn an_update_is_refused_when_the_version_is_stale_or_the_person_changes() {
    let mut world = world().await;
    let id = world.create(alice()).await.session_id;
    let user = Some(claims(serde_json::json!({"sub": "alice", "name": "A."})));
    let update = v1::UpdateSessionRequest {
        session_id: id.clone(),
        user,
        version: 1,
        ..Default::default()
    };
    let session = world
        .one
        .update_session(update.clone())
        .await
        .unwrap()
        .into_inner()
        .session
        .unwrap();
    assert_eq!(session.version, 2);
    assert_eq!(
        reason(world.two.update_session(update.clone()).await),
        ErrorReason::ErrStaleVersion
    );
    let user = Some(claims(serde_json::json!({"sub": "mallory"})));
    assert_eq!(
        field(
            world
                .one
                .update_session(v1::UpdateSessionRequest {
                    user,
                    version: 0,
                    ..update.clone()
                })
                .await
        ),
        "user.sub"
    );
    let big = Some(claims(serde_json::json!({"text": "x".repeat(5_000)})));
    let big = v1::UpdateSessionRequest {
        attributes: big,
        user: None,
        version: 0,
        ..update.clone()
    };
    assert_eq!(
        reason(world.one.update_session(big).await),
        ErrorReason::ErrSessionTooLarge
    );
    world.one.end_session(end(&id)).await.unwrap();
    assert_eq!(
        reason(world.one.update_session(update).await),
        ErrorReason::ErrMissingSession
    );
}

#[tokio::test]
async fn a_repeated_request_gives_the_same_session_until_that_has_ended() {
    let mut world = world().await;
    let request = v1::CreateSessionRequest {
        request_id: "3b241101-e2bb-4255-8caf-4136c566a962".to_owned(),
        ..alice()
    };
    let first = world.create(request.clone()).await;
    let again = world
        .two
        .create_session(request.clone())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(first.session_id, again.session_id);
    let other = v1::CreateSessionRequest {
        provider_sid: "sid-2".to_owned(),
        ..request.clone()
    };
    assert_eq!(
        reason(world.two.create_session(other).await),
        ErrorReason::ErrRequestIdReused
    );
    world.one.end_session(end(&first.session_id)).await.unwrap();
    assert_eq!(
        reason(world.two.create_session(request).await),
        ErrorReason::ErrMissingSession
    );
    assert_eq!(
        reason(world.one.get_session(by_id(&first.session_id)).await),
        ErrorReason::ErrMissingSession
    );
}

#[tokio::test]
async fn the_session_replaced_ends_and_the_oldest_beyond_the_limit_end() {
    let mut world = world_with(session_svc::sessions::Limits {
        max_per_subject: 2,
        ..limits()
    })
    .await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(world.create(alice()).await.session_id);
        world.clock.advance_ms(1);
    }
    assert_eq!(
        reason(world.one.get_session(by_id(&ids[0])).await),
        ErrorReason::ErrMissingSession
    );
    world.one.get_session(by_id(&ids[1])).await.unwrap();
    let request = v1::CreateSessionRequest {
        replaces_session_id: ids[2].clone(),
        ..alice()
    };
    world.create(request).await;
    assert_eq!(
        reason(world.one.get_session(by_id(&ids[2])).await),
        ErrorReason::ErrMissingSession
    );
    world.one.get_session(by_id(&ids[1])).await.unwrap();
}

#[tokio::test]
async fn ending_is_idempotent_and_the_hint_is_for_the_holder_alone() {
    let mut world = world().await;
    let (first, second) = (world.create(alice()).await, world.create(alice()).await);
    let ended = world
        .two
        .end_session(end(&first.session_id))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((ended.ended, ended.id_token_hint.as_str()), (true, "hint"));
    world.provider.wait_for_revoked("refresh-0").await;
    let again = world
        .one
        .end_session(end(&first.session_id))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((again.ended, again.id_token_hint.as_str()), (false, ""));
    let by = Some(v1::end_session_request::By::Handle(
        second.session.unwrap().handle,
    ));
    let ended = world
        .one
        .end_session(v1::EndSessionRequest {
            by,
            cause: "operator".to_owned(),
        })
        .await
        .unwrap()
        .into_inner();
    assert_eq!((ended.ended, ended.id_token_hint.as_str()), (true, ""));
}

#[tokio::test]
async fn sessions_end_by_person_by_provider_session_and_by_both() {
    let mut world = world().await;
    let (one, two) = (
        world.create(alice()).await,
        world
            .create(v1::CreateSessionRequest {
                provider_sid: "sid-2".to_owned(),
                ..alice()
            })
            .await,
    );
    assert_eq!(
        reason(world.one.end_sessions(end_all("bob", "sid-1")).await),
        ErrorReason::ErrInvalidArgument,
        "a provider session of somebody else ends nothing"
    );
    assert_eq!(
        world
            .one
            .end_sessions(end_all("alice", "sid-1"))
            .await
            .unwrap()
            .into_inner()
            .ended_count,
        1
    );
    assert_eq!(
        reason(world.one.get_session(by_id(&one.session_id)).await),
        ErrorReason::ErrMissingSession
    );
    let except = v1::EndSessionsRequest {
        except_handle: two.session.unwrap().handle,
        ..end_all("alice", "")
    };
    world.create(alice()).await;
    assert_eq!(
        world
            .one
            .end_sessions(except)
            .await
            .unwrap()
            .into_inner()
            .ended_count,
        1
    );
    world.one.get_session(by_id(&two.session_id)).await.unwrap();
    assert_eq!(
        world
            .one
            .end_sessions(end_all("", "sid-2"))
            .await
            .unwrap()
            .into_inner()
            .ended_count,
        1
    );
    let later = world
        .create(v1::CreateSessionRequest {
            provider_sid: "sid-2".to_owned(),
            ..alice()
        })
        .await;
    world
        .one
        .get_session(by_id(&later.session_id))
        .await
        .expect("a later login with the same sid works at once");
}

#[tokio::test]
async fn a_list_is_newest_first_and_its_pages_belong_to_one_person() {
    let mut world = world().await;
    let mut handles = Vec::new();
    for _ in 0..5 {
        handles.push(world.create(alice()).await.session.unwrap().handle);
        world.clock.advance_ms(10);
    }
    handles.reverse();
    let ask = |page_token: String| v1::ListSessionsRequest {
        issuer: ISSUER.to_owned(),
        subject: "alice".to_owned(),
        page_size: 2,
        page_token,
    };
    let (mut listed, mut page_token) = (Vec::new(), String::new());
    loop {
        let page = world
            .two
            .list_sessions(ask(page_token))
            .await
            .unwrap()
            .into_inner();
        listed.extend(page.sessions.into_iter().map(|session| session.handle));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
        let other = v1::ListSessionsRequest {
            subject: "bob".to_owned(),
            ..ask(page_token.clone())
        };
        assert_eq!(field(world.one.list_sessions(other).await), "page_token");
    }
    assert_eq!(listed, handles);
}

#[tokio::test]
async fn every_malformed_field_is_named() {
    let mut world = world().await;
    assert_eq!(
        field(world.one.get_session(v1::GetSessionRequest { by: None }).await),
        "session_id"
    );
    assert_eq!(
        field(world.one.get_session(by_id(&"A".repeat(32))).await),
        "session_id"
    );
    assert_eq!(
        field(
            world
                .one
                .create_session(v1::CreateSessionRequest {
                    issuer: String::new(),
                    ..alice()
                })
                .await
        ),
        "issuer"
    );
    assert_eq!(
        field(
            world
                .one
                .create_session(v1::CreateSessionRequest {
                    user: None,
                    ..alice()
                })
                .await
        ),
        "user.sub"
    );
    assert_eq!(
        field(
            world
                .one
                .create_session(v1::CreateSessionRequest {
                    request_id: "x".to_owned(),
                    ..alice()
                })
                .await
        ),
        "request_id"
    );
    assert_eq!(
        field(
            world
                .one
                .create_session(v1::CreateSessionRequest {
                    not_after: Some(from_ms(1)),
                    ..alice()
                })
                .await
        ),
        "not_after"
    );
    let mut odd = alice();
    odd.tokens.as_mut().unwrap().token_type = "mac".to_owned();
    assert_eq!(field(world.one.create_session(odd).await), "tokens.token_type");
    assert_eq!(field(world.one.end_sessions(end_all("", "")).await), "subject");
    let cause = v1::EndSessionsRequest {
        cause: "Not OK".to_owned(),
        ..end_all("alice", "")
    };
    assert_eq!(field(world.one.end_sessions(cause).await), "cause");
}

#[tokio::test]
async fn keys_are_rotated_without_signing_anyone_out_and_a_lost_key_is_a_fault_not_a_sign_out() {
    let mut world = world().await;
    let id = world.create(alice()).await.session_id;
    let mut rotated = world.another(lifetime(), "cd,ab").await;
    world.clock.advance_ms(60_000);
    assert!(rotated.roll_session(roll(&id)).await.unwrap().into_inner().rolled);
    let mut after = world.another(lifetime(), "cd").await;
    after.get_session(by_id(&id)).await.unwrap();
    assert_eq!(
        reason(world.one.get_session(by_id(&id)).await),
        ErrorReason::ErrInternal
    );
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
async fn a_session_larger_than_the_bound_is_refused() {
    let mut world = world().await;
    let user = Some(claims(
        serde_json::json!({"sub": "alice", "groups": "g".repeat(5_000)}),
    ));
    assert_eq!(
        reason(
            world
                .one
                .create_session(v1::CreateSessionRequest { user, ..alice() })
                .await
        ),
        ErrorReason::ErrSessionTooLarge
    );
}

#[tokio::test]
async fn a_logout_that_came_before_its_session_still_ends_it_and_no_later_login() {
    use base64::Engine as _;
    let mut world = world().await;
    let issued_at = |secs: u64| {
        let body = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(format!("{{\"iat\":{secs}}}"));
        let mut request = alice();
        request.tokens.as_mut().unwrap().id_token = format!("e30.{body}.c2ln");
        request
    };
    world.one.end_sessions(end_all("", "sid-1")).await.unwrap();
    let late = world.two.create_session(issued_at(START_MS / 1000 - 1)).await;
    assert_eq!(reason(late), ErrorReason::ErrMissingSession);
    world.create(issued_at(START_MS / 1000)).await;
    world.clock.advance_ms(120_000);
    world.create(issued_at(START_MS / 1000 - 1)).await;
}
