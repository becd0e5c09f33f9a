//! Endings that a Redis replica has to acknowledge, as callers see them.

use session_proto::v1::{EndSessionRequest, EndSessionsRequest, ErrorReason, end_session_request::By};

use crate::operator::support::{ISSUER, NEW_KEY, Service};
use crate::redis_server::RedisServer;
use crate::rotation::used;
use session_proto::client::SessionError;

fn end(id: &str) -> EndSessionRequest {
    EndSessionRequest {
        by: Some(By::SessionId(id.to_owned())),
        ..EndSessionRequest::default()
    }
}

fn end_all(subject: &str) -> EndSessionsRequest {
    EndSessionsRequest {
        issuer: ISSUER.to_owned(),
        subject: subject.to_owned(),
        ..EndSessionsRequest::default()
    }
}

fn is_unavailable<T>(answer: Result<T, SessionError>) -> bool {
    answer.is_err_and(|error| error.reason == ErrorReason::ErrStoreUnavailable)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ending_without_a_replica_is_done_and_answered_as_unavailable_until_one_has_it() {
    let master = RedisServer::start(&["--repl-diskless-sync-delay", "0"]);
    let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &master.port.to_string()]);
    let url = format!("redis://127.0.0.1:{}", master.port);
    master.wait_until_copied();
    master.ask("CONFIG SET min-replicas-to-write 1");
    let service = Service::start(&url, NEW_KEY).await;
    let (ada, _) = service.create("ada", "sid", "").await;
    let (grace, _) = service.create("grace", "sid-2", "").await;
    master.wait_until_copied();
    assert!(service.client.end_session(end(&ada)).await.unwrap().ended);

    replica.signal("STOP");
    let (ada, _) = service.create("ada", "sid", "").await;
    assert!(is_unavailable(service.client.end_session(end(&ada)).await));
    assert!(is_unavailable(
        service.client.end_sessions(end_all("grace")).await
    ));
    // A copy of a cookie ends the session: it has a generation that was never issued.
    let (mary, _) = service.create("mary", "sid-3", "").await;
    let copy = used(&mary, 9, 8);
    assert!(is_unavailable(service.client.rotate_cookie(copy).await));
    for (subject, id) in [("ada", &ada), ("grace", &grace), ("mary", &mary)] {
        assert!(service.listed(subject).await.is_empty(), "{subject} is signed in");
        // A repetition finds nothing to end, and must not return success.
        assert!(is_unavailable(service.client.end_session(end(id)).await));
        assert!(is_unavailable(
            service.client.end_sessions(end_all(subject)).await
        ));
    }

    replica.signal("CONT");
    assert!(!service.client.end_session(end(&ada)).await.unwrap().ended);
    let none = service.client.end_sessions(end_all("grace")).await.unwrap();
    assert_eq!(none.ended_count, 0);
}
