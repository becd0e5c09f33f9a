//! What an operator watches, and the providers.

use serde_json::json;
use session_proto::v1;
use session_proto::v1::activity::What;
use session_proto::v1::session_event::Kind;

use super::support::*;
use crate::support::*;

#[tokio::test]
async fn an_operator_sees_beginnings_and_ends_of_one_provider_only() {
    let (mut world, [_, mut two]) = searchable().await;
    let request = v1::WatchActivityRequest {
        operator: Some(operator()),
        issuer: ISSUER.to_owned(),
    };
    let mut stream = two.watch_activity(request).await.unwrap().into_inner();
    world
        .create(person(OTHER_ISSUER, json!({"sub": "ada"}), "", ""))
        .await;
    let id = world
        .create(person(ISSUER, json!({"sub": "bob"}), "", ""))
        .await
        .session_id;
    world.clock.advance_ms(60_000);
    world.one.roll_session(roll(&id)).await.unwrap();
    world.one.end_session(end(&id)).await.unwrap();
    let (mut seen, mut has_heartbeat) = (Vec::new(), false);
    while seen.len() < 2 {
        let activity = within(stream.message()).await.unwrap().unwrap();
        let Some(What::Event(event)) = activity.what else {
            panic!("only the edge reports failed sign-ins");
        };
        match event.kind() {
            Kind::Heartbeat => has_heartbeat = true,
            kind => seen.push((kind, event.issuer, event.subject)),
        }
    }
    let bob = |kind| (kind, ISSUER.to_owned(), "bob".to_owned());
    assert_eq!(seen, [bob(Kind::Created), bob(Kind::Ended)]);
    assert!(has_heartbeat);
}

#[tokio::test]
async fn the_configured_providers_are_listed() {
    let (_world, [mut one, _]) = searchable().await;
    let listed = one
        .list_providers(v1::ListProvidersRequest {})
        .await
        .unwrap()
        .into_inner();
    let issuers: Vec<_> = listed.providers.iter().map(|one| one.issuer.as_str()).collect();
    assert_eq!(issuers, [ISSUER]);
}
