//! Refreshing while other callers ask, disconnect, update or end the session.

use session_proto::v1::{self, ErrorReason};

use crate::support::*;

#[tokio::test]
async fn two_hundred_callers_at_two_replicas_cost_one_grant() {
    let (world, id) = signed_in().await;
    world.clock.advance_ms(EXPIRED_MS);
    world.provider.open(false);
    let callers: Vec<_> = (0..200)
        .map(|at| {
            let (mut client, id) = (
                if at % 2 == 0 {
                    world.one.clone()
                } else {
                    world.two.clone()
                },
                id.clone(),
            );
            tokio::spawn(async move { client.get_access_token(token(&id)).await })
        })
        .collect();
    world.provider.wait_for_grants(1).await;
    world.provider.open(true);
    for caller in callers {
        assert_eq!(
            within(caller).await.unwrap().unwrap().into_inner().access_token,
            "access-1"
        );
    }
    assert_eq!((world.provider.grants(), world.provider.reused()), (1, 0));
}

// conformance: A-049 A-087 B-108
#[tokio::test]
async fn the_session_refreshes_again_with_the_rotated_token() {
    let (mut world, id) = signed_in().await;
    for number in 1..4 {
        world.clock.advance_ms(HOUR_MS);
        let answer = world.two.get_access_token(token(&id)).await.unwrap().into_inner();
        assert_eq!(answer.access_token, format!("access-{number}"));
    }
    assert_eq!((world.provider.grants(), world.provider.reused()), (3, 0));
}

#[tokio::test]
async fn a_caller_that_hangs_up_loses_nothing() {
    let (mut world, id) = signed_in().await;
    world.clock.advance_ms(EXPIRED_MS);
    world.provider.open(false);
    let (mut client, request) = (world.one.clone(), token(&id));
    let caller = tokio::spawn(async move { client.get_access_token(request).await });
    world.provider.wait_for_grants(1).await;
    caller.abort();
    world.provider.open(true);
    let answer = within(world.two.get_access_token(token(&id)))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (answer.access_token.as_str(), world.provider.grants()),
        ("access-1", 1)
    );
}

// conformance: B-112
#[tokio::test]
async fn a_session_that_ends_during_a_refresh_stays_ended_and_its_token_is_revoked() {
    let (mut world, id) = signed_in().await;
    world.provider.open(false);
    let (mut client, request) = (world.one.clone(), forced(&id));
    let caller = tokio::spawn(async move { client.get_access_token(request).await });
    world.provider.wait_for_grants(1).await;
    assert!(world.two.end_session(end(&id)).await.unwrap().into_inner().ended);
    world.provider.open(true);
    assert_eq!(
        reason(within(caller).await.unwrap()),
        ErrorReason::ErrMissingSession
    );
    assert_eq!(
        reason(world.one.get_session(by_id(&id)).await),
        ErrorReason::ErrMissingSession
    );
    world.provider.wait_for_revoked("refresh-1").await;
    assert_eq!(world.provider.grants(), 1);
}

#[tokio::test]
async fn an_update_during_a_refresh_and_the_refresh_are_both_kept() {
    let (mut world, id) = signed_in().await;
    world.provider.open(false);
    let (mut client, request) = (world.one.clone(), forced(&id));
    let caller = tokio::spawn(async move { client.get_access_token(request).await });
    world.provider.wait_for_grants(1).await;
    let attributes = claims(serde_json::json!({"theme": "dark"}));
    let update = v1::UpdateSessionRequest {
        session_id: id.clone(),
        attributes: attributes.clone(),
        ..Default::default()
    };
    world.two.update_session(update).await.unwrap();
    world.provider.open(true);
    assert_eq!(
        within(caller).await.unwrap().unwrap().into_inner().access_token,
        "access-1"
    );
    let session = world
        .one
        .get_session(by_id(&id))
        .await
        .unwrap()
        .into_inner()
        .session
        .unwrap();
    assert_eq!((session.attributes, session.version), (attributes, 3));
}

#[tokio::test]
async fn a_caller_whose_time_is_over_leaves_the_refresh_going() {
    let (world, id) = signed_in().await;
    world.clock.advance_ms(EXPIRED_MS);
    world.provider.open(false);
    let mut hasty = tonic::Request::new(token(&id));
    hasty.set_timeout(std::time::Duration::from_millis(200));
    let mut client = world.one.clone();
    let status = within(client.get_access_token(hasty)).await.unwrap_err();
    // The client's own clock may report it first.
    assert!(
        matches!(
            status.code(),
            tonic::Code::DeadlineExceeded | tonic::Code::Cancelled
        ),
        "{status:?}"
    );
    assert_eq!(world.provider.grants(), 1);
    world.provider.open(true);
    let mut other = world.two.clone();
    let answer = within(other.get_access_token(token(&id)))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (answer.access_token.as_str(), world.provider.grants()),
        ("access-1", 1)
    );
}
