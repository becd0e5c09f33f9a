//! The rights of callers to the service for operators, and its audit records.

use serde_json::Value;
use session_proto::error::reason_of;
use session_proto::v1::operator_session_service_client::OperatorSessionServiceClient;
use session_proto::v1::session_filter::By;
use session_proto::v1::{self, ErrorReason};
use tonic::Status;
use tonic::transport::Channel;

use super::audit::{alice, by, world_of};
use super::log::log;
use super::support::*;

const ISSUER: &str = "https://issuer.example";

type Operators = OperatorSessionServiceClient<Channel>;

fn operator() -> Option<v1::Operator> {
    Some(v1::Operator {
        issuer: ISSUER.to_owned(),
        subject: "olga".to_owned(),
        handle: "1".repeat(32),
        purpose: "ticket 4711".to_owned(),
    })
}

fn filter(by: By) -> Option<v1::SessionFilter> {
    Some(v1::SessionFilter {
        issuer: ISSUER.to_owned(),
        by: Some(by),
        ..Default::default()
    })
}

fn of_subject(subject: &str) -> By {
    By::Subject(subject.to_owned())
}

async fn search(client: &mut Operators, by: By) -> Result<v1::SearchSessionsResponse, Status> {
    let request = v1::SearchSessionsRequest {
        operator: operator(),
        filter: filter(by),
        ..Default::default()
    };
    Ok(within(client.search_sessions(request)).await?.into_inner())
}

async fn end(client: &mut Operators, by: By) -> Result<v1::EndFoundSessionsResponse, Status> {
    let request = v1::EndFoundSessionsRequest {
        operator: operator(),
        filter: filter(by),
        ..Default::default()
    };
    Ok(within(client.end_found_sessions(request)).await?.into_inner())
}

fn denied<T: std::fmt::Debug>(answer: Result<T, Status>) -> ErrorReason {
    reason_of(&answer.unwrap_err()).unwrap()
}

#[tokio::test]
async fn a_star_includes_no_method_for_operators() {
    let list = [entry(EDGE, &["*"]), entry(ORDERS, &["*", "SearchSessions"])].concat();
    let world = world(Some(&list)).await;
    let mut edge = Operators::new(world.channel("edge"));
    let mut orders = Operators::new(world.channel("orders"));
    let mut unknown = Operators::new(world.channel("client"));
    let providers = v1::ListProvidersRequest {};
    let not_allowed = ErrorReason::ErrCallerNotAllowed;
    assert_eq!(denied(search(&mut edge, of_subject("ada")).await), not_allowed);
    assert_eq!(denied(end(&mut edge, of_subject("ada")).await), not_allowed);
    assert_eq!(denied(edge.list_providers(providers).await), not_allowed);
    assert_eq!(denied(end(&mut orders, of_subject("ada")).await), not_allowed);
    let watch = v1::WatchActivityRequest {
        operator: operator(),
        issuer: ISSUER.to_owned(),
    };
    assert_eq!(denied(orders.watch_activity(watch).await), not_allowed);
    let endings = v1::ListEndingsRequest {
        operator: operator(),
        issuer: ISSUER.to_owned(),
        subject: "ada".to_owned(),
    };
    assert_eq!(denied(orders.list_endings(endings).await), not_allowed);
    assert!(search(&mut orders, of_subject("ada")).await.is_ok());
    assert!(
        orders.list_providers(providers).await.is_ok(),
        "with the right to search"
    );
    let refused = search(&mut unknown, of_subject("ada")).await;
    assert_eq!(denied(refused), ErrorReason::ErrUnknownCaller);
}

#[tokio::test]
async fn without_the_setting_a_listed_caller_finds_and_ends_by_name_alone() {
    let (world, mut client) = world_of(
        "names",
        &["*", "SearchSessions", "EndFoundSessions", "ListEndings"],
    )
    .await;
    let mut operators = Operators::new(world.channel("mine"));
    let created = client.create_session(alice()).await.unwrap().into_inner();
    let handle = created.session.unwrap().handle;
    for name in [By::Handle(handle), of_subject("subject-of-the-audit")] {
        let found = search(&mut operators, name).await.unwrap();
        assert_eq!(found.sessions.len(), 1);
    }
    for needs_setting in [
        By::Everyone(true),
        By::Email("alice@audit.example".to_owned()),
        By::Address("192.0.2.7".to_owned()),
        By::Name("alice".to_owned()),
    ] {
        let status = search(&mut operators, needs_setting).await.unwrap_err();
        assert_eq!(reason_of(&status), Some(ErrorReason::ErrInvalidArgument));
        assert!(status.message().contains("SESSION_OPERATOR_SEARCH"), "{status:?}");
    }
    assert_eq!(
        denied(end(&mut operators, By::Everyone(true)).await),
        ErrorReason::ErrInvalidArgument
    );
    let endings = v1::ListEndingsRequest {
        operator: operator(),
        issuer: ISSUER.to_owned(),
        subject: "subject-of-the-audit".to_owned(),
    };
    assert_eq!(
        denied(operators.list_endings(endings).await),
        ErrorReason::ErrInvalidArgument
    );
    let ended = end(&mut operators, of_subject("subject-of-the-audit"))
        .await
        .unwrap();
    assert_eq!((ended.ended_count, ended.complete), (1, true));
}

#[tokio::test]
async fn a_right_that_is_withdrawn_ends_the_watch_and_denies_the_next_search() {
    let world = world(Some(&entry(EDGE, &["SearchSessions", "WatchActivity"]))).await;
    let mut operators = Operators::new(world.channel("edge"));
    assert!(search(&mut operators, of_subject("ada")).await.is_ok());
    let watch = v1::WatchActivityRequest {
        operator: operator(),
        issuer: ISSUER.to_owned(),
    };
    let mut stream = within(operators.watch_activity(watch))
        .await
        .unwrap()
        .into_inner();
    within(stream.message()).await.unwrap().unwrap();
    world.replace("callers.toml", entry(EDGE, &["GetSession"]).as_bytes());
    let status = within(async {
        loop {
            if let Err(status) = stream.message().await {
                return status;
            }
        }
    })
    .await;
    assert_eq!(reason_of(&status), Some(ErrorReason::ErrCallerNotAllowed));
    assert_eq!(
        denied(search(&mut operators, of_subject("ada")).await),
        ErrorReason::ErrCallerNotAllowed
    );
}

#[tokio::test]
async fn every_search_and_ending_is_recorded_with_operator_purpose_filter_and_count() {
    let (world, mut client) = world_of("support", &["*", "SearchSessions", "EndFoundSessions"]).await;
    let mut operators = Operators::new(world.channel("mine"));
    client.create_session(alice()).await.unwrap();
    search(&mut operators, of_subject("subject-of-the-audit"))
        .await
        .unwrap();
    search(&mut operators, of_subject("subject-of-the-audit"))
        .await
        .unwrap();
    search(&mut operators, By::Email("Eve@audit.example".to_owned()))
        .await
        .unwrap_err();
    end(&mut operators, of_subject("subject-of-the-audit"))
        .await
        .unwrap();
    let mine = by("support");
    let of_operator = |record: &Value| mine(record) && record["operator.subject"] == "olga";
    let records = log().wait_for(5, of_operator).await;
    for record in &records {
        assert_eq!(record["operator.issuer"], ISSUER);
        assert_eq!(record["operator.session"], "1".repeat(32));
        assert_eq!(record["operator.purpose"], "ticket 4711");
    }
    let calls: Vec<&Value> = records
        .iter()
        .filter(|record| record["event"] == "api.call")
        .collect();
    let facts: Vec<_> = calls
        .iter()
        .map(|record| {
            let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
            (
                text("outcome"),
                text("filter"),
                text("filter.value"),
                record["found_count"].as_u64(),
            )
        })
        .collect();
    let fact = |outcome: &str, filter: &str, value: &str, found| {
        (outcome.to_owned(), filter.to_owned(), value.to_owned(), found)
    };
    assert_eq!(
        facts,
        [
            fact("success", "subject", "subject-of-the-audit", Some(1)),
            fact("success", "subject", "subject-of-the-audit", Some(1)),
            fact("failure", "email", "eve@audit.example", None),
            fact("success", "subject", "subject-of-the-audit", None),
        ]
    );
    assert_eq!(calls[3]["ended_count"], 1);
    assert_eq!(calls[3]["cause"], "operator");
    let ended = records
        .iter()
        .find(|record| record["event"] == "session.end")
        .unwrap();
    assert_eq!(ended["actor.subject"], "subject-of-the-audit");
}
