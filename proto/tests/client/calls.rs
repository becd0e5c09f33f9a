//! The client against real servers: deadlines, retries, replicas that come and go.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use vestibule_session_api::client::{Advice, ClientSettings, SessionClient};
use vestibule_session_api::v1::*;

use crate::replica::Answer;
use crate::support::{Server, by_handle, client, within};

/// A loopback address without a listener.
async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn replicas_take_turns() {
    let (one, two) = (
        Server::start("one", Answer::Session).await,
        Server::start("two", Answer::Session).await,
    );
    let client = client([one.url(), two.url()], Duration::from_secs(5));
    // Until both connections are open, all calls go to the first.
    within(async {
        while one.calls() == 0 || two.calls() == 0 {
            client.get_session(by_handle()).await.unwrap();
        }
    })
    .await;
    let before = (one.calls(), two.calls());
    for _ in 0..20 {
        client.get_session(by_handle()).await.unwrap();
    }
    assert_eq!((one.calls() - before.0, two.calls() - before.1), (10, 10));
}

#[tokio::test]
async fn an_address_nobody_listens_on_fails_no_call() {
    let alive = Server::start("alive", Answer::Session).await;
    let client = client([nobody().await, alive.url()], Duration::from_secs(5));
    for _ in 0..20 {
        client.get_session(by_handle()).await.unwrap();
    }
    assert_eq!(alive.calls(), 20);
}

#[tokio::test]
async fn with_nobody_there_a_call_fails_as_unavailable_and_says_nothing_of_the_session() {
    let error = client([nobody().await], Duration::from_secs(5))
        .get_session(by_handle())
        .await
        .unwrap_err();
    assert_eq!(error.reason, ErrorReason::ErrSessionServiceUnavailable);
    assert!(error.is_unavailable());
}

#[tokio::test]
async fn a_name_that_cannot_be_resolved_is_unavailable() {
    let client = client(
        ["http://session-svc.invalid:50051".to_owned()],
        Duration::from_secs(5),
    );
    let error = client.get_session(by_handle()).await.unwrap_err();
    assert_eq!(error.reason, ErrorReason::ErrSessionServiceUnavailable);
}

#[tokio::test]
async fn another_replica_is_asked_for_a_record_whose_key_the_first_does_not_have() {
    let lacking = Server::start("lacking", Answer::UnknownKey).await;
    let whole = Server::start("whole", Answer::Echo).await;
    let client = client([lacking.url(), whole.url()], Duration::from_secs(5));
    within(async {
        while lacking.calls() == 0 || whole.calls() == 0 {
            assert!(client.get_session(by_handle()).await.is_ok());
        }
    })
    .await;
    // Reads that are batched, and writes that are not retried after a connection failure.
    for _ in 0..10 {
        let reads = (0..10).map(|_| client.get_session(by_handle()));
        for read in within(futures_util::future::join_all(reads)).await {
            assert!(read.is_ok(), "{read:?}");
        }
        let (before, update) = (lacking.calls(), UpdateSessionRequest::default());
        assert!(client.update_session(update).await.is_ok());
        assert!(lacking.calls() <= before + 1);
    }
}

#[tokio::test]
async fn where_no_replica_has_the_key_each_is_asked_once_and_the_caller_learns_which_key_it_is() {
    let one = Server::start("one", Answer::UnknownKey).await;
    let two = Server::start("two", Answer::UnknownKey).await;
    let client = client([one.url(), two.url()], Duration::from_secs(5));
    let error = client.get_session(by_handle()).await.unwrap_err();
    assert_eq!(error.reason, ErrorReason::ErrUnknownEncryptionKey);
    assert_eq!(error.metadata["key"], "0a1b2c3d");
    assert_eq!(error.advice(), Advice::TryAgain);
    assert_eq!((one.calls(), two.calls()), (1, 1));
}

#[tokio::test]
async fn a_server_that_never_answers_costs_the_deadline_and_no_more() {
    let silent = Server::start("silent", Answer::Never).await;
    let started = Instant::now();
    let error = client([silent.url()], Duration::from_millis(200))
        .get_session(by_handle())
        .await
        .unwrap_err();
    assert!(error.is_unavailable());
    // Without the outer deadline the call would never end; a minute would be as wrong as an hour.
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn what_the_service_says_is_not_repeated() {
    let server = Server::start("server", Answer::Missing).await;
    let error = client([server.url()], Duration::from_secs(5))
        .get_session(by_handle())
        .await
        .unwrap_err();
    assert_eq!(error.reason, ErrorReason::ErrMissingSession);
    assert!(!error.is_unavailable());
    assert_eq!(server.calls(), 1);
}

#[tokio::test]
async fn a_call_that_may_have_had_an_effect_is_not_repeated() {
    let server = Server::start("server", Answer::Session).await;
    let client = client([server.url()], Duration::from_secs(5));
    let error = client
        .update_session(UpdateSessionRequest::default())
        .await
        .unwrap_err();
    assert!(error.is_unavailable());
    assert_eq!(server.calls(), 1);
}

#[tokio::test]
async fn a_server_that_comes_back_is_used_again_without_a_new_client() {
    let first = Server::start("first", Answer::Session).await;
    let client = client([first.url()], Duration::from_secs(5));
    client.get_session(by_handle()).await.unwrap();
    let address = first.stop().await;
    assert!(client.get_session(by_handle()).await.is_err());
    let _second = Server::start_at(address, "second", Answer::Session).await;
    let session = client.get_session(by_handle()).await.unwrap().session.unwrap();
    assert_eq!(session.handle, "second");
}

#[tokio::test]
async fn stopping_one_of_two_replicas_under_load_fails_no_read() {
    let (one, two) = (
        Server::start("one", Answer::Session).await,
        Server::start("two", Answer::Session).await,
    );
    let client = client([one.url(), two.url()], Duration::from_secs(5));
    let load = tokio::spawn({
        let client = client.clone();
        async move {
            let mut failed = 0;
            for _ in 0..2_000 {
                failed += usize::from(client.get_session(by_handle()).await.is_err());
            }
            failed
        }
    });
    while one.calls() < 100 {
        tokio::task::yield_now().await;
    }
    one.stop().await;
    assert_eq!(load.await.unwrap(), 0);
}

#[tokio::test]
async fn a_request_the_service_would_not_read_is_not_sent() {
    let server = Server::start("server", Answer::Session).await;
    let client = client([server.url()], Duration::from_secs(5));
    let request = CreateSessionRequest {
        issuer: "x".repeat(300 * 1024),
        ..Default::default()
    };
    let error = client.create_session(request).await.unwrap_err();
    assert_eq!(error.reason, ErrorReason::ErrRequestTooLarge);
    assert_eq!(error.advice(), Advice::Mistake);
    assert_eq!(server.calls(), 0);
}

#[tokio::test]
async fn calls_carry_the_metadata_of_the_caller_s_trace() {
    let server = Server::start("server", Answer::Session).await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let client = SessionClient::new(ClientSettings {
        annotate: Some(Arc::new(move |metadata| {
            metadata.insert("traceparent", trace.parse().unwrap());
        })),
        ..ClientSettings::new([server.url()])
    })
    .unwrap();
    client.get_session(by_handle()).await.unwrap();
    assert_eq!(server.traces(), [trace]);
}

#[test]
fn an_address_that_is_none_is_refused_when_the_client_is_built() {
    for address in [
        "",
        "session-svc:50051",
        "ftp://session-svc",
        "http://",
        "http://user:pass@host:1",
        "http://host:1/path",
    ] {
        assert!(
            SessionClient::new(ClientSettings::new([address])).is_err(),
            "{address:?}"
        );
    }
    assert!(SessionClient::new(ClientSettings::new(Vec::<String>::new())).is_err());
}
