//! What the service for operators refuses, and what it refuses without its setting.

use session_proto::error::reason_of;
use session_proto::v1::operator_session_service_client::OperatorSessionServiceClient;
use session_proto::v1::session_filter::By;
use session_proto::v1::{self, ErrorReason};

use super::support::*;
use crate::support::*;

#[tokio::test]
async fn a_search_without_operator_purpose_or_filter_is_malformed() {
    let (_world, [mut one, _]) = searchable().await;
    let good = search(filter(By::Everyone(true)));
    let purpose = |purpose: &str| {
        Some(v1::Operator {
            purpose: purpose.to_owned(),
            ..operator()
        })
    };
    let by = |by: By| Some(filter(by));
    for (request, expected) in [
        (
            v1::SearchSessionsRequest {
                operator: None,
                ..good.clone()
            },
            "operator",
        ),
        (
            v1::SearchSessionsRequest {
                operator: purpose(""),
                ..good.clone()
            },
            "operator.purpose",
        ),
        (
            v1::SearchSessionsRequest {
                operator: purpose(" "),
                ..good.clone()
            },
            "operator.purpose",
        ),
        (
            v1::SearchSessionsRequest {
                operator: purpose("a\nb"),
                ..good.clone()
            },
            "operator.purpose",
        ),
        (
            v1::SearchSessionsRequest {
                operator: purpose(&"x".repeat(501)),
                ..good.clone()
            },
            "operator.purpose",
        ),
        (
            v1::SearchSessionsRequest {
                filter: None,
                ..good.clone()
            },
            "filter",
        ),
        (
            v1::SearchSessionsRequest {
                filter: by(By::Everyone(false)),
                ..good.clone()
            },
            "filter",
        ),
        (
            v1::SearchSessionsRequest {
                filter: by(By::Address("::1/129".to_owned())),
                ..good.clone()
            },
            "filter.address",
        ),
        (
            v1::SearchSessionsRequest {
                filter: by(By::Name("\r".to_owned())),
                ..good.clone()
            },
            "filter.name",
        ),
        (
            v1::SearchSessionsRequest {
                filter: by(By::Email(String::new())),
                ..good.clone()
            },
            "filter.email",
        ),
        (
            v1::SearchSessionsRequest {
                filter: by(By::Handle("x".to_owned())),
                ..good.clone()
            },
            "filter.handle",
        ),
        (
            v1::SearchSessionsRequest {
                filter: Some(v1::SessionFilter {
                    issuer: String::new(),
                    ..filter(By::Everyone(true))
                }),
                ..good.clone()
            },
            "issuer",
        ),
        (
            v1::SearchSessionsRequest {
                claims: vec![String::new()],
                ..good.clone()
            },
            "claims",
        ),
        (
            v1::SearchSessionsRequest {
                page_size: -1,
                ..good.clone()
            },
            "page_size",
        ),
        (
            v1::SearchSessionsRequest {
                page_token: "AAAA".to_owned(),
                ..good
            },
            "page_token",
        ),
    ] {
        assert_eq!(field(one.search_sessions(request).await), expected);
    }
}

#[tokio::test]
async fn an_ending_names_its_sessions_exactly() {
    let (_world, [mut one, _]) = searchable().await;
    for by in [
        By::Email("a@b.example".to_owned()),
        By::Address("192.0.2.7".to_owned()),
        By::Name("ada".to_owned()),
    ] {
        assert_eq!(field(one.end_found_sessions(end_found(by)).await), "filter");
    }
    for message in ["a\u{7}b".to_owned(), "x".repeat(501)] {
        let request = v1::EndFoundSessionsRequest {
            message_to_person: message,
            ..end_found(By::Everyone(true))
        };
        assert_eq!(field(one.end_found_sessions(request).await), "message_to_person");
    }
}

#[tokio::test]
async fn without_a_list_of_callers_the_setting_opens_the_service() {
    let world = world().await;
    let mut client = OperatorSessionServiceClient::connect(world.addresses[0].clone())
        .await
        .unwrap();
    let refused = client
        .search_sessions(search(filter(By::Subject("ada".to_owned()))))
        .await;
    let status = refused.unwrap_err();
    assert_eq!(reason_of(&status), Some(ErrorReason::ErrUnimplemented));
    assert!(status.message().contains("SESSION_OPERATOR_SEARCH"), "{status:?}");
    let refused = client.list_providers(v1::ListProvidersRequest {}).await;
    assert_eq!(reason(refused), ErrorReason::ErrUnimplemented);
    let refused = client
        .end_found_sessions(end_found(By::Subject("ada".to_owned())))
        .await;
    assert_eq!(reason(refused), ErrorReason::ErrUnimplemented);
}
