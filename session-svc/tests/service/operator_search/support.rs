//! Two services whose sessions operators search, and their requests.

use std::sync::Arc;

use chassis::clock::Clock as _;
use chassis::secret::{Reloading, Secret};
use session_proto::v1;
use session_proto::v1::operator_session_service_client::OperatorSessionServiceClient;
use session_proto::v1::session_filter::By;
use session_svc::session::{Claims, Handle, Session, SessionValues};
use session_svc::session_store::SessionStore;
use session_svc::sessions::SessionLimits;
use session_svc::vault::{KeyRing, Vault};
use tonic::transport::Channel;

use crate::support::*;

pub(super) const OTHER_ISSUER: &str = "https://other.example";

pub(super) type Operators = OperatorSessionServiceClient<Channel>;

/// A world whose sessions operators search, and a client of each service.
pub(super) async fn searchable() -> (World, [Operators; 2]) {
    let world = world_with(SessionLimits {
        operator_search: true,
        ..limits()
    })
    .await;
    let connect = |address: &String| OperatorSessionServiceClient::connect(address.clone());
    let one = connect(&world.addresses[0]).await.unwrap();
    let two = connect(&world.addresses[1]).await.unwrap();
    (world, [one, two])
}

pub(super) fn operator() -> v1::Operator {
    v1::Operator {
        issuer: ISSUER.to_owned(),
        subject: "olga".to_owned(),
        handle: "0".repeat(32),
        purpose: "ticket 4711".to_owned(),
    }
}

pub(super) fn filter(by: By) -> v1::SessionFilter {
    v1::SessionFilter {
        issuer: ISSUER.to_owned(),
        by: Some(by),
        ..Default::default()
    }
}

pub(super) fn search(filter: v1::SessionFilter) -> v1::SearchSessionsRequest {
    v1::SearchSessionsRequest {
        operator: Some(operator()),
        filter: Some(filter),
        ..Default::default()
    }
}

pub(super) fn end_found(by: By) -> v1::EndFoundSessionsRequest {
    v1::EndFoundSessionsRequest {
        operator: Some(operator()),
        filter: Some(filter(by)),
        ..Default::default()
    }
}

/// The handles of all pages, the number of pages, and the most sessions that one of them examined.
pub(super) async fn all_pages(
    client: &mut Operators,
    mut request: v1::SearchSessionsRequest,
) -> (Vec<String>, usize, u32) {
    let (mut handles, mut pages, mut most) = (Vec::new(), 0, 0);
    loop {
        let page = within(client.search_sessions(request.clone())).await;
        let page = page.unwrap().into_inner();
        pages += 1;
        most = most.max(page.examined_count);
        handles.extend(page.sessions.into_iter().map(|session| session.handle));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            return (handles, pages, most);
        }
    }
}

pub(super) async fn handles(client: &mut Operators, filter: v1::SessionFilter) -> Vec<String> {
    all_pages(client, search(filter)).await.0
}

/// A sign-in with these claims, from this address.
pub(super) fn person(
    issuer: &str,
    claims: serde_json::Value,
    sid: &str,
    address: &str,
) -> v1::CreateSessionRequest {
    v1::CreateSessionRequest {
        issuer: issuer.to_owned(),
        user: claims.to_string(),
        provider_sid: sid.to_owned(),
        device: Some(v1::Device {
            user_agent: "curl/8".to_owned(),
            address: address.to_owned(),
            at: None,
        }),
        ..alice()
    }
}

/// Stores sessions without calls: thousands of calls would take a debug build too long.
pub(super) async fn fill(world: &World, issuer: &str, count: u32) -> Vec<String> {
    let keys = KeyRing::parse(&[Secret::new("ab".repeat(32))]).unwrap();
    let vault = Arc::new(Vault::new(Reloading::new(keys)));
    let store = SessionStore::new(Arc::new(world.store.clone()), vault, lifetime()).searchable(true);
    let now_ms = world.clock.now_ms();
    let mut handles = Vec::new();
    for number in 0..count {
        let subject = format!("person-{number}");
        let values = SessionValues {
            issuer: issuer.to_owned(),
            user: Claims::parse(serde_json::json!({ "sub": subject }).to_string()).unwrap(),
            subject,
            created_at_ms: now_ms,
            rolled_at_ms: now_ms,
            ..Default::default()
        };
        let mut name = [0x5a; 16];
        name[..4].copy_from_slice(&number.to_be_bytes());
        let session = Session::new(Handle::from_bytes(name), values);
        store.insert(&session, 4_096, false).await.unwrap();
        handles.push(session.handle.to_string());
    }
    handles
}
