//! Callers' deadlines, with a real Redis that is frozen.

use std::sync::Arc;

use chassis::clock::SystemClock;
use session_proto::v1::session_service_client::SessionServiceClient;
use session_proto::v1::{self, ErrorReason};
use session_svc::callers::{Callers, Rpc};
use session_svc::start::AccessPolicy;
use session_svc::store::KeyValueStore;
use session_svc::store::url::StoreSettings;
use tokio_util::sync::CancellationToken;
use tonic::Code;

use super::raw::{Raw, call, reported};
use super::support::*;
use crate::redis_server::RedisServer;

const ISSUER: &str = "https://issuer.example";
pub(crate) const LATE: (Code, Option<ErrorReason>) =
    (Code::DeadlineExceeded, Some(ErrorReason::ErrDeadlineExceeded));

pub(crate) struct OnRedis {
    pub(crate) redis: RedisServer,
    pub(crate) client: Client,
    pub(crate) raw: Raw,
    _shutdown: CancellationToken,
}

pub(crate) async fn redis() -> (RedisServer, Arc<dyn KeyValueStore>) {
    let redis = tokio::task::spawn_blocking(|| RedisServer::start(&[]))
        .await
        .unwrap();
    let url: StoreSettings = format!("redis://127.0.0.1:{}/0", redis.port).parse().unwrap();
    let store = session_svc::store::open(&url, Arc::new(SystemClock))
        .await
        .unwrap();
    (redis, store)
}

pub(crate) async fn on_redis() -> OnRedis {
    super::log::log();
    let (redis, store) = redis().await;
    let callers = Callers::anyone();
    let (port, shutdown) = start(AccessPolicy { tls: None, callers }, store).await;
    let client = SessionServiceClient::connect(format!("http://127.0.0.1:{port}"))
        .await
        .unwrap();
    OnRedis {
        redis,
        client,
        raw: Raw::connect(port).await,
        _shutdown: shutdown,
    }
}

pub(crate) fn alice() -> v1::CreateSessionRequest {
    let user = serde_json::json!({"sub": "alice"});
    v1::CreateSessionRequest {
        issuer: ISSUER.to_owned(),
        user: user.to_string(),
        ..Default::default()
    }
}

pub(crate) fn get(id: &str) -> v1::GetSessionRequest {
    v1::GetSessionRequest {
        by: Some(v1::get_session_request::By::SessionId(id.to_owned())),
    }
}

#[tokio::test]
async fn a_read_is_given_up_when_the_caller_s_time_is_over() {
    let mut world = on_redis().await;
    let id = world
        .client
        .create_session(alice())
        .await
        .unwrap()
        .into_inner()
        .session_id;
    world.redis.signal("STOP");
    let status = world.raw.status(call("GetSession", &get(&id), 150)).await;
    assert_eq!(reported(&status), LATE);
    world.redis.signal("CONT");
    let read = within(world.client.get_session(get(&id))).await.unwrap();
    assert_eq!(read.into_inner().session.unwrap().subject, "alice");
}

#[tokio::test]
async fn a_write_whose_caller_runs_out_of_time_is_done_to_its_end() {
    let mut world = on_redis().await;
    let old = world
        .client
        .create_session(alice())
        .await
        .unwrap()
        .into_inner()
        .session_id;
    let replacing = v1::CreateSessionRequest {
        replaces_session_id: old.clone(),
        ..alice()
    };
    world.redis.signal("STOP");
    let status = world.raw.status(call("CreateSession", &replacing, 150)).await;
    assert_eq!(reported(&status), LATE);
    world.redis.signal("CONT");
    // The last step of that call ends the replaced session.
    within(async {
        while world.client.get_session(get(&old)).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let list = v1::ListSessionsRequest {
        issuer: ISSUER.to_owned(),
        subject: "alice".to_owned(),
        ..Default::default()
    };
    let left = world
        .client
        .list_sessions(list)
        .await
        .unwrap()
        .into_inner()
        .sessions;
    assert_eq!(left.len(), 1, "the new session is there");
}

#[tokio::test]
async fn a_watch_ends_when_its_caller_s_time_is_over() {
    let mut world = on_redis().await;
    let status = world
        .raw
        .status(call("WatchSessions", &v1::WatchSessionsRequest::default(), 500))
        .await;
    assert_eq!(reported(&status), LATE);
}

#[tokio::test]
async fn a_caller_that_hangs_up_ends_its_read_and_is_recorded() {
    let mut world = on_redis().await;
    let created = world.client.create_session(alice()).await.unwrap().into_inner();
    let (id, handle) = (created.session_id, created.session.unwrap().handle);
    world.redis.signal("STOP");
    let mut client = world.client.clone();
    let pending_call = tokio::spawn(async move { client.get_session(get(&id)).await });
    // A call that needs no store follows on the same connection.
    tokio::task::yield_now().await;
    assert_eq!(within(may_call(&mut world.client, Rpc::GetSession)).await, Ok(()));
    pending_call.abort();
    let cancelled = |record: &serde_json::Value| {
        record["session"] == handle.as_str() && record["rpc.response.status_code"] == "CANCELLED"
    };
    let records = super::log::log().wait_for(1, cancelled).await;
    assert_eq!(records[0]["rpc.method"], Rpc::GetSession.name());
    world.redis.signal("CONT");
}
