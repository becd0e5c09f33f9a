//! Calls of operators: what reaches the session service, and what comes back.

use serde_json::json;
use session_proto::error::reason_of;
use session_proto::v1::session_filter::By;
use session_proto::v1::{
    EndFoundSessionsRequest, EndFoundSessionsResponse, ErrorReason, GetSessionRequest, ListProvidersRequest,
    ListProvidersResponse, Operator, SearchSessionsRequest, Session, get_session_request,
};
use tonic::Code;

use super::{Console, ISSUER_OF_B, Page, RULE, filter, operator, search, subject};
use crate::support::Stack;

/// The session of a page.
async fn session(console: &Console, page: &Page) -> Session {
    let id = page.cookie.split(['=', '.']).nth(1).unwrap().to_owned();
    let by = Some(get_session_request::By::SessionId(id));
    let client = console.stack.sessions.client();
    *client
        .get_session(GetSessionRequest { by })
        .await
        .unwrap()
        .session
        .unwrap()
}

#[tokio::test]
async fn the_operator_and_the_claims_come_from_the_edge_and_only_the_purpose_from_the_page() {
    let console = Console::start(&format!("{RULE}show = [\"department\"]\n")).await;
    let olga = console.operator().await;
    let forged = SearchSessionsRequest {
        operator: Some(Operator {
            issuer: ISSUER_OF_B.to_owned(),
            subject: "root".to_owned(),
            handle: "0".repeat(32),
            purpose: "ticket 7".to_owned(),
        }),
        claims: vec!["phone_number".to_owned()],
        ..console.search(subject("person-1"))
    };
    let own = session(&console, &olga).await;
    console.service.find(&["other", &own.handle]);
    let page = olga.search(&forged).await.unwrap();
    let expected = Operator {
        issuer: console.issuer().to_owned(),
        subject: "olga".to_owned(),
        handle: own.handle.clone(),
        purpose: "ticket 7".to_owned(),
    };
    assert_eq!(console.service.operators(), [expected]);
    assert_eq!(
        console.service.claims(),
        ["name", "email", "preferred_username", "department"]
    );
    let current: Vec<bool> = page.sessions.iter().map(|session| session.current).collect();
    assert_eq!(
        current,
        [false, true],
        "the page marks the operator's own session"
    );
}

#[tokio::test]
async fn a_rule_with_providers_lists_them_the_own_one_first() {
    for (providers, expected) in [
        ("", &["a"][..]),
        ("providers = [\"*\"]", &["a", "b"]),
        ("providers = [\"b\"]", &["b"]),
    ] {
        let console = Console::start(&format!("{RULE}{providers}\n")).await;
        let olga = console.operator().await;
        let listed: ListProvidersResponse = olga
            .call("ListProviders", &ListProvidersRequest {})
            .await
            .unwrap();
        let names: Vec<_> = listed
            .providers
            .iter()
            .map(|provider| provider.name.as_str())
            .collect();
        let expected: Vec<_> = expected.iter().map(|id| format!("Provider {id}")).collect();
        assert_eq!(names, expected, "{providers}");
        for issuer in [console.issuer(), ISSUER_OF_B] {
            let is_listed = listed.providers.iter().any(|provider| provider.issuer == issuer);
            let found = olga.search(&search(issuer, subject("person-1"))).await;
            assert_eq!(found.is_ok(), is_listed, "{providers} {issuer}");
        }
    }
}

#[tokio::test]
async fn operators_look_at_others_without_extending_their_own_session() {
    let console = Console::start(RULE).await;
    let olga = console.operator().await;
    let before = session(&console, &olga).await.expires_at;
    console.stack.clock.advance_ms(120_000);
    assert!(olga.search(&console.search(subject("person-1"))).await.is_ok());
    assert_eq!(session(&console, &olga).await.expires_at, before);
}

#[tokio::test]
async fn an_operator_who_ends_the_own_session_is_signed_out_at_once() {
    let console = Console::with(RULE, &[("EDGE_SESSION_CACHE_SECS", "15")]).await;
    let olga = console.operator().await;
    assert!(olga.search(&console.search(subject("person-1"))).await.is_ok());
    let mut watch = olga.watch(&console.watch()).await;
    let end = EndFoundSessionsRequest {
        operator: operator("ticket 7"),
        filter: filter(
            console.issuer(),
            By::Handle(session(&console, &olga).await.handle),
        ),
        ..EndFoundSessionsRequest::default()
    };
    let ended: EndFoundSessionsResponse = olga.call("EndFoundSessions", &end).await.unwrap();
    assert_eq!((ended.ended_count, ended.complete), (1, true));
    let next = olga
        .search(&console.search(subject("person-1")))
        .await
        .unwrap_err();
    assert_eq!(reason_of(&next), Some(ErrorReason::ErrMissingSession));
    assert_eq!(
        reason_of(&watch.end().await),
        Some(ErrorReason::ErrMissingSession)
    );
}

#[tokio::test]
async fn a_session_service_without_operators_is_named_and_one_that_is_away_too() {
    let routes = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(routes.path(), RULE).unwrap();
    let stack = Stack::with(&[("EDGE_ROUTES", routes.path().to_str().unwrap())]).await;
    let user = json!({ "sub": "olga", "groups": ["support"] });
    let (name, value) = stack.session_of(user, "openid").await;
    let olga = Page::of(stack.address(), format!("{name}={value}"));
    let search = search(stack.provider.issuer(), subject("person-1"));
    let status = olga.search(&search).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented, "{status:?}");
    assert!(
        status.message().contains("does not serve operators"),
        "{status:?}"
    );
    stack.sessions.stop().await;
    let status = olga.search(&search).await.unwrap_err();
    assert_eq!(
        reason_of(&status),
        Some(ErrorReason::ErrSessionServiceUnavailable)
    );
}
