//! BeginSignIn, AbandonSignIn and their effect on CreateSession.

use session_proto::timestamp;
use session_proto::v1::begin_sign_in_response::Outcome;
use session_proto::v1::session_event::Kind;
use session_proto::v1::{self, ErrorReason};

use crate::support::*;

const NAME: &str = "0123456789abcdef0123456789abcdef";
const FIRST: &str = "3b241101-e2bb-4255-8caf-4136c566a962";
const SECOND: &str = "6f1c8a52-3d0e-4b7f-9a64-0c2d5e8b7a10";

/// Longer than a sign-in may take.
const FORGOTTEN_MS: u64 = 60_000;

async fn begin(client: &mut Client, holder: &str, waiting: bool) -> v1::BeginSignInResponse {
    let request = v1::BeginSignInRequest {
        request_id: NAME.to_owned(),
        holder: holder.to_owned(),
        waiting,
        ..Default::default()
    };
    client.begin_sign_in(request).await.unwrap().into_inner()
}

fn creation(holder: &str) -> v1::CreateSessionRequest {
    v1::CreateSessionRequest {
        request_id: NAME.to_owned(),
        holder: holder.to_owned(),
        tokens_received_at: Some(timestamp::from_ms(START_MS)),
        ..alice()
    }
}

#[tokio::test]
async fn one_goes_on_and_who_asked_meanwhile_gets_its_session() {
    let mut world = world().await;
    let first = begin(&mut world.one, FIRST, false).await;
    assert_eq!(first.outcome(), Outcome::Begun);
    assert_eq!(first.now, Some(timestamp::from_ms(START_MS)));
    assert_eq!(
        begin(&mut world.two, FIRST, false).await.outcome(),
        Outcome::Begun
    );
    assert_eq!(
        begin(&mut world.two, SECOND, false).await.outcome(),
        Outcome::Pending
    );
    let stolen = world.two.create_session(creation(SECOND)).await;
    assert_eq!(reason(stolen), ErrorReason::ErrRequestIdReused);
    let created = world.create(creation(FIRST)).await;
    let again = world
        .two
        .create_session(creation(FIRST))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(again.session_id, created.session_id);
    let reported = begin(&mut world.two, SECOND, true).await;
    assert_eq!(reported.outcome(), Outcome::Created);
    assert_eq!(reported.session_id, created.session_id);
    assert_eq!(reported.session.unwrap().handle, created.session.unwrap().handle);
    let late = begin(&mut world.two, "who-did-not-ask-before", false).await;
    assert_eq!((late.outcome(), late.session_id.as_str()), (Outcome::Failed, ""));
}

#[tokio::test]
async fn a_sign_in_that_is_given_up_or_forgotten_is_used_up() {
    let mut world = world().await;
    begin(&mut world.one, FIRST, false).await;
    let abandoned = |holder: &str| v1::AbandonSignInRequest {
        request_id: NAME.to_owned(),
        holder: holder.to_owned(),
    };
    world.two.abandon_sign_in(abandoned(SECOND)).await.unwrap();
    assert_eq!(
        begin(&mut world.two, SECOND, false).await.outcome(),
        Outcome::Pending
    );
    world.clock.advance_ms(FORGOTTEN_MS);
    assert_eq!(
        begin(&mut world.two, SECOND, true).await.outcome(),
        Outcome::Failed
    );
    world.clock.set_ms(START_MS);
    world.two.abandon_sign_in(abandoned(FIRST)).await.unwrap();
    assert_eq!(
        begin(&mut world.two, SECOND, true).await.outcome(),
        Outcome::Failed
    );
    let late = world.one.create_session(creation(FIRST)).await;
    assert_eq!(reason(late), ErrorReason::ErrMissingSession);
    world.provider.wait_for_revoked("refresh-0").await;
}

/// A network may deliver a creation late, after it succeeded elsewhere and the session ended.
#[tokio::test]
async fn a_creation_that_arrives_after_its_session_has_ended_brings_it_back_for_no_moment() {
    let mut world = world().await;
    let watched = world
        .two
        .watch_sessions(v1::WatchSessionsRequest::default())
        .await;
    let mut events = watched.unwrap().into_inner();
    begin(&mut world.one, FIRST, false).await;
    let created = world.create(creation(FIRST)).await;
    world.one.end_session(end(&created.session_id)).await.unwrap();
    let late = world.two.create_session(creation(FIRST)).await;
    assert_eq!(reason(late), ErrorReason::ErrMissingSession);
    let last = world.create(alice()).await.session.unwrap().handle;
    let mut told = Vec::new();
    while told.last() != Some(&(Kind::Created, last.clone())) {
        let event = within(events.message()).await.unwrap().unwrap();
        if event.kind() != Kind::Heartbeat {
            told.push((event.kind(), event.handle));
        }
    }
    let first = created.session.unwrap().handle;
    assert_eq!(
        told,
        [
            (Kind::Created, first.clone()),
            (Kind::Ended, first),
            (Kind::Created, last)
        ]
    );
}

#[tokio::test]
async fn giving_a_sign_in_up_ends_the_session_it_came_to() {
    let mut world = world().await;
    begin(&mut world.one, FIRST, false).await;
    let created = world.create(creation(FIRST)).await;
    let abandoned = |holder: &str| v1::AbandonSignInRequest {
        request_id: NAME.to_owned(),
        holder: holder.to_owned(),
    };
    world.two.abandon_sign_in(abandoned(SECOND)).await.unwrap();
    world.two.get_session(by_id(&created.session_id)).await.unwrap();
    world.two.abandon_sign_in(abandoned(FIRST)).await.unwrap();
    let gone = world.one.get_session(by_id(&created.session_id)).await;
    assert_eq!(reason(gone), ErrorReason::ErrMissingSession);
    world.provider.wait_for_revoked("refresh-0").await;
    let again = world.one.create_session(creation(FIRST)).await;
    assert_eq!(reason(again), ErrorReason::ErrMissingSession);
}

/// An ID token from a provider with a clock this many seconds behind ours.
fn id_token_behind(secs: i64) -> String {
    use base64::Engine as _;
    let iat = i64::try_from(START_MS / 1_000).unwrap() - secs;
    let claims = serde_json::json!({"sub": "alice", "iat": iat}).to_string();
    format!(
        "e30.{}.c2ln",
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims)
    )
}

#[tokio::test]
async fn after_an_ending_of_all_a_sign_in_works_whatever_the_provider_s_clock_says() {
    for behind_secs in [60, 30, 5, 0, -30, -60] {
        for (claimed, reported) in [(false, false), (true, false), (true, true)] {
            let mut world = world().await;
            world.create(alice()).await;
            let ended = world.one.end_sessions(end_all("alice", "")).await.unwrap();
            assert_eq!(ended.into_inner().ended_count, 1);
            world.clock.advance_ms(1);
            if claimed {
                begin(&mut world.two, FIRST, false).await;
            }
            world.clock.advance_ms(1);
            let mut request = alice();
            request.tokens.as_mut().unwrap().id_token = id_token_behind(behind_secs);
            if claimed {
                (request.request_id, request.holder) = (NAME.to_owned(), FIRST.to_owned());
            }
            request.tokens_received_at = reported.then(|| timestamp::from_ms(START_MS + 2));
            let created = world.two.create_session(request).await;
            assert!(
                created.is_ok(),
                "{behind_secs} {claimed} {reported}: {:?}",
                created.unwrap_err()
            );
        }
    }
}

#[tokio::test]
async fn a_logout_after_begin_sign_in_ends_it_also_without_a_receipt_time() {
    let mut world = world().await;
    begin(&mut world.one, FIRST, false).await;
    world.clock.advance_ms(10);
    world.two.end_sessions(end_all("alice", "")).await.unwrap();
    world.clock.advance_ms(10);
    let mut request = creation(FIRST);
    request.tokens_received_at = None;
    let created = world.one.create_session(request).await;
    assert_eq!(reason(created), ErrorReason::ErrMissingSession);
}

#[tokio::test]
async fn a_session_begins_when_its_tokens_were_received_and_ends_with_a_logout_since() {
    for (received_ms, order_age_ms, ends) in [
        (START_MS, 0, true),
        (START_MS - 50, 0, true),
        (START_MS, 1, false),
        (START_MS - 2, 1, true),
    ] {
        for by_sid in [true, false] {
            let mut world = world().await;
            let logout = v1::EndSessionsRequest {
                told_ago: std::time::Duration::from_millis(order_age_ms).try_into().ok(),
                ..if by_sid {
                    end_all("", "sid-1")
                } else {
                    end_all("alice", "")
                }
            };
            world.two.end_sessions(logout).await.unwrap();
            world.clock.advance_ms(10);
            let mut request = creation("");
            request.tokens_received_at = Some(timestamp::from_ms(received_ms));
            let created = world.one.create_session(request).await;
            let case = format!("{received_ms} {order_age_ms} {by_sid}");
            match created {
                Ok(created) => {
                    assert!(!ends, "{case}");
                    let session = created.into_inner().session.unwrap();
                    assert_eq!(session.created_at, Some(timestamp::from_ms(received_ms)));
                }
                Err(status) => {
                    assert!(ends, "{case}: {status:?}");
                    assert_eq!(reason(Err::<(), _>(status)), ErrorReason::ErrMissingSession);
                }
            }
        }
    }
}

#[tokio::test]
async fn a_logout_leaves_what_began_after_it_arrived() {
    let mut world = world().await;
    let before = world.create(alice()).await.session_id;
    world.clock.advance_ms(5_000);
    let after = world.create(alice()).await.session_id;
    let logout = v1::EndSessionsRequest {
        told_ago: std::time::Duration::from_secs(4).try_into().ok(),
        ..end_all("alice", "")
    };
    let ended = world.two.end_sessions(logout).await.unwrap().into_inner();
    assert_eq!(ended.ended_count, 1);
    world.one.get_session(by_id(&after)).await.unwrap();
    let gone = world.one.get_session(by_id(&before)).await;
    assert_eq!(reason(gone), ErrorReason::ErrMissingSession);
}

#[tokio::test]
async fn tokens_received_too_long_ago_and_malformed_claims_are_refused() {
    let mut world = world().await;
    let mut old = creation("");
    old.tokens_received_at = Some(timestamp::from_ms(START_MS - 100_001));
    let refused = world.one.create_session(old).await;
    assert_eq!(reason(refused), ErrorReason::ErrInvalidArgument);
    for (request_id, holder) in [
        ("", FIRST),
        (NAME, ""),
        ("short", FIRST),
        (NAME, "with spaces in it"),
    ] {
        let request = v1::BeginSignInRequest {
            request_id: request_id.to_owned(),
            holder: holder.to_owned(),
            ..Default::default()
        };
        let refused = world.one.begin_sign_in(request).await;
        assert_eq!(
            reason(refused),
            ErrorReason::ErrInvalidArgument,
            "{request_id} {holder}"
        );
    }
    let long = v1::EndSessionsRequest {
        told_ago: std::time::Duration::from_secs(61).try_into().ok(),
        ..end_all("alice", "")
    };
    let refused = world.one.end_sessions(long).await;
    assert_eq!(reason(refused), ErrorReason::ErrInvalidArgument);
}
