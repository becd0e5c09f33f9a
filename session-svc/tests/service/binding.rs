//! BindSession: once, to one key, valid at every replica.

use session_proto::v1::{self, ErrorReason};
use tonic::{Response, Status};

use crate::support::*;

fn key(x: &str) -> String {
    serde_json::json!({"kty": "EC", "crv": "P-256", "x": x, "y": "BB"}).to_string()
}

fn bind(session_id: &str, jwk: String) -> v1::BindSessionRequest {
    v1::BindSessionRequest {
        session_id: session_id.to_owned(),
        jwk,
    }
}

fn bound(answer: Result<Response<v1::BindSessionResponse>, Status>) -> v1::Session {
    answer.unwrap().into_inner().session.unwrap()
}

#[tokio::test]
async fn a_session_is_bound_once_and_shows_it_wherever_it_is_read() {
    let mut world = world().await;
    let created = world.create(alice()).await;
    let (id, before) = (created.session_id, created.session.unwrap());
    assert_eq!(before.device_binding, None);

    let session = bound(world.one.bind_session(bind(&id, key("AA"))).await);
    let binding = session.device_binding.clone().unwrap();
    assert_eq!((binding.jwk, session.version), (key("AA"), 2));
    assert!(binding.bound_at.is_some());

    let again = bound(world.two.bind_session(bind(&id, key("AA"))).await);
    assert_eq!(again, session, "the same key again changes nothing");
    assert_eq!(
        reason(world.two.bind_session(bind(&id, key("CC"))).await),
        ErrorReason::ErrBoundToAnotherKey
    );

    let read = world.two.get_session(by_id(&id)).await.unwrap().into_inner();
    assert_eq!(read.session.unwrap().device_binding, session.device_binding);
    let list = v1::ListSessionsRequest {
        issuer: session.issuer.clone(),
        subject: session.subject.clone(),
        ..Default::default()
    };
    let listed = world.one.list_sessions(list).await.unwrap().into_inner().sessions;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].device_binding, session.device_binding);

    let update = v1::UpdateSessionRequest {
        session_id: id.clone(),
        attributes: claims(serde_json::json!({"theme": "dark"})),
        ..Default::default()
    };
    let updated = world.one.update_session(update).await.unwrap().into_inner();
    assert_eq!(updated.session.unwrap().device_binding, session.device_binding);

    world.one.end_session(end(&id)).await.unwrap();
    assert_eq!(
        reason(world.one.bind_session(bind(&id, key("AA"))).await),
        ErrorReason::ErrMissingSession
    );
}

#[tokio::test]
async fn of_two_keys_at_once_one_is_bound() {
    let mut world = world().await;
    let id = world.create(alice()).await.session_id;
    let (mut one, mut two) = (world.one.clone(), world.two.clone());
    let (first, second) = tokio::join!(
        one.bind_session(bind(&id, key("AA"))),
        two.bind_session(bind(&id, key("CC")))
    );
    let (won, lost, jwk) = match (first, second) {
        (Ok(won), lost) => (won, lost, key("AA")),
        (lost, Ok(won)) => (won, lost, key("CC")),
        (Err(one), Err(two)) => panic!("nobody won: {one:?}, {two:?}"),
    };
    assert_eq!(reason(lost), ErrorReason::ErrBoundToAnotherKey);
    let read = world.one.get_session(by_id(&id)).await.unwrap().into_inner();
    for session in [won.into_inner().session, read.session.map(|session| *session)] {
        assert_eq!(session.unwrap().device_binding.unwrap().jwk, jwk);
    }
}

#[tokio::test]
async fn what_is_no_public_key_of_a_device_is_refused_and_binds_nothing() {
    let mut world = world().await;
    let id = world.create(alice()).await.session_id;
    let private =
        serde_json::json!({"kty": "EC", "crv": "P-256", "x": "AA", "y": "BB", "d": "DD"}).to_string();
    for jwk in [String::new(), "{}".to_owned(), private] {
        assert_eq!(field(world.one.bind_session(bind(&id, jwk)).await), "jwk");
    }
    let read = world.one.get_session(by_id(&id)).await.unwrap().into_inner();
    assert_eq!(read.session.unwrap().device_binding, None);
}
