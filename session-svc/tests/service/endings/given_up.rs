//! A service that is frozen for longer than its callers wait: it does not repeat their later work.

use std::time::Duration;

use session_proto::v1;
use session_proto::v1::session_service_client::SessionServiceClient;

use crate::operator::support::{ISSUER, NEW_KEY, Service, file_in};

/// How long the caller waits.
const GIVEN_UP_AFTER: Duration = Duration::from_millis(200);

#[tokio::test]
async fn an_ending_given_up_before_it_began_ends_nothing_when_the_service_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let service = Service::start(&file_in(directory.path()), NEW_KEY).await;
    let (_, handle) = service.create("ada", "", "").await;
    let mut caller = SessionServiceClient::connect(service.url.clone()).await.unwrap();
    let all = v1::EndSessionsRequest {
        issuer: ISSUER.to_owned(),
        subject: "ada".to_owned(),
        ..Default::default()
    };
    let one = v1::EndSessionRequest {
        by: Some(v1::end_session_request::By::Handle(handle.clone())),
        ..Default::default()
    };
    for _ in 0..10 {
        service.stand_still().await;
        let mut another = caller.clone();
        let ending =
            async { tokio::join!(another.end_sessions(all.clone()), caller.end_session(one.clone())) };
        let given_up = tokio::time::timeout(GIVEN_UP_AFTER, ending).await;
        // The cancel frames leave before the service continues.
        tokio::time::sleep(GIVEN_UP_AFTER).await;
        service.signal("CONT");
        assert!(given_up.is_err(), "{given_up:?}");
        // Both calls are recorded once they end; later rounds count as repetitions. The next round detects
        // work that a cancelled call should not have begun.
        while service.told().matches("CANCELLED").count() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(
            service.listed("ada").await.contains_key(&handle),
            "{}",
            service.told()
        );
    }
    // A call with a waiting caller is done.
    assert_eq!(
        caller.end_sessions(all).await.unwrap().into_inner().ended_count,
        1
    );
}
