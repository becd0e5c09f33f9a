//! Reads over one call to each replica: who is answered, and what happens to those who are not when the call ends.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use session_proto::client::{ClientSettings, SessionClient};
use session_proto::error;
use session_proto::v1::*;
use tonic::Status;

use crate::replica::{Answer, Lines};
use crate::support::{Server, by_handle, client, loopback, within};

const LONG: Duration = Duration::from_secs(20);

fn of(handle: impl Into<String>) -> GetSessionRequest {
    GetSessionRequest {
        by: Some(get_session_request::By::Handle(handle.into())),
    }
}

async fn refusing(status: Status) -> Server {
    Server::start_with(loopback(), "old", Answer::Session, None, Lines::Refused(status)).await
}

#[tokio::test]
async fn many_reads_go_over_one_call_and_each_is_answered_with_its_own() {
    // Answered in the opposite order.
    let server = Server::start("server", Answer::Echo { together: 100 }).await;
    let client = client([server.url()], LONG);
    let reads = (0..100).map(|number| {
        let client = client.clone();
        async move {
            let read = client.get_session(of(number.to_string())).await.unwrap();
            assert_eq!(read.session.unwrap().handle, number.to_string());
        }
    });
    within(join_all(reads)).await;
    assert_eq!((server.lines_opened(), server.calls()), (1, 100));
}

#[tokio::test]
async fn a_call_that_ended_is_opened_again_and_its_open_questions_are_asked_elsewhere() {
    let hanging = Server::start("hanging", Answer::Never).await;
    let alive = Server::start("alive", Answer::Session).await;
    let client = client([hanging.url(), alive.url()], LONG);
    let reads = (0..10).map(|_| client.get_session(by_handle()));
    let ending = async {
        hanging.asked(5).await;
        hanging.lines.cut();
        hanging.open_lines(0).await;
    };
    let (reads, ()) = within(async { tokio::join!(join_all(reads), ending) }).await;
    for read in reads {
        assert_eq!(read.unwrap().session.unwrap().handle, "alive");
    }
    alive.lines.end();
    alive.open_lines(0).await;
    while alive.lines_opened() < 2 {
        within(client.get_session(by_handle())).await.unwrap();
    }
}

#[tokio::test]
async fn a_question_on_a_line_that_ends_well_becomes_a_call_of_its_own() {
    let server = Server::start("server", Answer::Session).await;
    server.lines.close();
    let client = client([server.url()], LONG);
    for _ in 0..10 {
        within(client.get_session(by_handle())).await.unwrap();
    }
    assert_eq!((server.lines_opened(), server.calls()), (10, 10));
}

#[tokio::test]
async fn a_service_that_asks_for_it_is_asked_over_another_call_and_the_open_questions_are_answered() {
    let server = Server::start("server", Answer::OnceTwoAreOpen).await;
    let client = client([server.url()], LONG);
    let after = async {
        server.asked(1).await;
        server.lines.ask_elsewhere();
        while server.lines_opened() < 2 {
            client.get_session(by_handle()).await.unwrap();
        }
    };
    let (first, ()) = within(async { tokio::join!(client.get_session(by_handle()), after) }).await;
    first.unwrap();
    // The first is closed when its last question is answered.
    server.open_lines(1).await;
}

#[tokio::test]
async fn a_replica_that_takes_no_such_call_is_asked_by_calls_of_their_own() {
    for status in [
        Status::unimplemented("an older release"),
        error::status(ErrorReason::ErrCallerNotAllowed, "not on the list", []),
    ] {
        let server = refusing(status).await;
        let client = client([server.url()], LONG);
        for _ in 0..10 {
            let read = within(client.get_session(by_handle())).await.unwrap();
            assert_eq!(read.session.unwrap().handle, "old");
        }
        // Offered once, and not each time.
        assert_eq!((server.lines_opened(), server.calls()), (1, 10));
    }
}

#[tokio::test]
async fn a_caller_that_is_not_known_is_told_so() {
    let server = refusing(error::status(ErrorReason::ErrUnknownCaller, "who are you", [])).await;
    let client = client([server.url()], LONG);
    let error = within(client.get_session(by_handle())).await.unwrap_err();
    assert_eq!(error.reason, ErrorReason::ErrUnknownCaller);
    assert_eq!(server.calls(), 0);
}

#[tokio::test]
async fn a_failure_comes_with_all_that_a_call_of_its_own_would_tell() {
    let server = Server::start("server", Answer::Invalid).await;
    let client = client([server.url()], LONG);
    let error = within(client.get_session(by_handle())).await.unwrap_err();
    assert_eq!(error.reason, ErrorReason::ErrInvalidArgument);
    assert_eq!(error.message, "handle: is malformed");
    assert_eq!(error.metadata["field"], "handle");
    // The line has outlived it.
    within(client.get_session(by_handle())).await.unwrap_err();
    assert_eq!((server.lines_opened(), server.calls()), (1, 2));
}

#[tokio::test]
async fn metadata_a_question_has_no_place_for_travels_with_a_call_of_its_own() {
    let server = Server::start("server", Answer::Session).await;
    let client = SessionClient::new(ClientSettings {
        annotate: Some(Arc::new(|metadata| {
            metadata.insert("x-tenant", "blue".parse().unwrap());
        })),
        ..ClientSettings::new([server.url()])
    })
    .unwrap();
    within(client.get_session(by_handle())).await.unwrap();
    assert_eq!((server.lines_opened(), server.calls()), (0, 1));
}

#[tokio::test]
async fn a_client_that_is_gone_leaves_no_call_behind() {
    let server = Server::start("server", Answer::Session).await;
    let client = client([server.url()], LONG);
    within(client.get_session(by_handle())).await.unwrap();
    server.open_lines(1).await;
    drop(client);
    server.open_lines(0).await;
}

#[tokio::test]
async fn a_line_that_tells_nothing_is_given_up_for_another() {
    let server = Server::start("server", Answer::Never).await;
    let client = client([server.url()], Duration::from_millis(200));
    within(async {
        while server.lines_opened() < 2 {
            client.get_session(by_handle()).await.unwrap_err();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_read_is_lost_while_calls_end_all_the_time_and_callers_run_on_many_threads() {
    let server = Server::start("server", Answer::Session).await;
    let client = client([server.url()], LONG);
    let readers = (0..8).map(|_| {
        let client = client.clone();
        tokio::spawn(async move {
            let mut lost = 0;
            for _ in 0..100 {
                // A line that ends three times under the same read is no failure of this client.
                while let Err(error) = client.get_session(by_handle()).await {
                    assert!(error.is_unavailable(), "{error}");
                    assert_ne!(error.message, "the session service did not answer in time");
                    lost += 1;
                }
            }
            lost
        })
    });
    let readers: Vec<_> = readers.collect();
    while !readers.iter().all(tokio::task::JoinHandle::is_finished) {
        server.lines.end();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for reader in readers {
        reader.await.unwrap();
    }
    assert!(server.calls() >= 800);
    assert!(server.lines_opened() > 1, "no call ended in all that time");
}
