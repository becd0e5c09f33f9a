//! Reads that arrive while another is in flight: which are batched, and what a failed batch means.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use vestibule_session_api::client::{ClientSettings, SessionClient};
use vestibule_session_api::error;
use vestibule_session_api::v1::*;

use crate::replica::{Answer, Batches};
use crate::support::{Server, client, loopback, within};

const LONG: Duration = Duration::from_secs(20);

fn of(handle: &str) -> GetSessionRequest {
    GetSessionRequest {
        by: Some(get_session_request::By::Handle(handle.to_owned())),
    }
}

async fn server(batches: Batches) -> Server {
    Server::start_with(loopback(), "server", Answer::Echo, None, batches).await
}

/// A connected client: among reads that begin together, the first is in flight for the others.
async fn connected(server: &Server) -> SessionClient {
    let client = client([server.url()], LONG);
    within(client.get_session(of("first"))).await.unwrap();
    client
}

/// The handle of the session read, or the error.
async fn read(client: &SessionClient, handle: &str) -> Result<String, ErrorReason> {
    let read = client.get_session(of(handle)).await;
    read.map(|read| read.session.unwrap().handle)
        .map_err(|error| error.reason)
}

/// Reads this many different sessions at once.
async fn read_at_once(client: &SessionClient, count: usize) {
    let reads = (0..count).map(|number| async move {
        let handle = number.to_string();
        assert_eq!(read(client, &handle).await, Ok(handle));
    });
    within(join_all(reads)).await;
}

/// Reads this many at once until the batches have these sizes.
async fn until(server: &Server, client: &SessionClient, count: usize, sizes: &[usize]) {
    within(async {
        loop {
            let before = server.batches().len();
            read_at_once(client, count).await;
            if server.batches()[before..] == *sizes {
                return;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn what_comes_while_a_read_is_on_its_way_goes_together_and_each_has_its_own() {
    let server = server(Batches::Answered).await;
    let client = connected(&server).await;
    // A busy machine may answer so late that they are sent separately.
    until(&server, &client, 10, &[10]).await;
}

#[tokio::test]
async fn a_lone_read_is_a_plain_call() {
    let server = server(Batches::Answered).await;
    let client = connected(&server).await;
    for _ in 0..3 {
        read_at_once(&client, 1).await;
    }
    assert_eq!((server.calls(), server.batches()), (4, vec![]));
}

#[tokio::test]
async fn no_batch_is_larger_than_the_service_takes() {
    let server = server(Batches::Answered).await;
    let client = connected(&server).await;
    until(&server, &client, 121, &[50, 50, 21]).await;
}

#[tokio::test]
async fn a_result_that_fails_is_told_to_its_caller_alone_with_its_reason() {
    let server = server(Batches::Answered).await;
    let client = connected(&server).await;
    let reads = ["a", "b", "nobody", "c"].map(|handle| client.get_session(of(handle)));
    let [a, b, nobody, c] = within(join_all(reads)).await.try_into().unwrap();
    for (read, handle) in [(a, "a"), (b, "b"), (c, "c")] {
        assert_eq!(read.unwrap().session.unwrap().handle, handle);
    }
    let error = nobody.unwrap_err();
    assert_eq!(error.reason, ErrorReason::ErrMissingSession);
    assert_eq!(
        (error.message.as_str(), error.metadata["field"].as_str()),
        ("there is no such session", "handle")
    );
}

#[tokio::test]
async fn what_finds_no_room_in_a_batch_is_read_by_itself() {
    let server = server(Batches::Answered).await;
    let client = connected(&server).await;
    let reads = ["a", "b", "large"].map(|handle| read(&client, handle));
    let answers = within(join_all(reads)).await;
    assert_eq!(answers, ["a", "b", "large"].map(|handle| Ok(handle.to_owned())));
}

#[tokio::test]
async fn a_batch_that_fails_or_is_not_answered_costs_nobody_the_answer() {
    let unavailable = error::status(ErrorReason::ErrStoreUnavailable, "part of it is away", []);
    for batches in [Batches::Refused(unavailable), Batches::Unanswered] {
        let server = server(batches).await;
        let client = connected(&server).await;
        until(&server, &client, 10, &[10]).await;
    }
}

#[tokio::test]
async fn a_slow_read_holds_up_neither_those_behind_it_nor_those_in_its_batch() {
    let server = server(Batches::Answered).await;
    let client = connected(&server).await;
    let mut slow = Box::pin(join_all(["slow", "slow"].map(|handle| read(&client, handle))));
    assert!((&mut slow).now_or_never().is_none());
    read_at_once(&client, 10).await;
    assert!((&mut slow).now_or_never().is_none());
    read_at_once(&client, 10).await;
    server.answers_slow_reads();
    assert_eq!(
        within(slow).await,
        ["slow", "slow"].map(|handle| Ok(handle.to_owned()))
    );
}

#[tokio::test]
async fn a_caller_that_hangs_up_keeps_nobody_waiting_and_is_not_read_for() {
    let server = server(Batches::Answered).await;
    let client = connected(&server).await;
    let mut reads: Vec<_> = ["slow", "a", "b", "c"]
        .into_iter()
        .map(|handle| Box::pin(read(&client, handle)))
        .collect();
    for read in &mut reads {
        assert!(read.now_or_never().is_none());
    }
    let rest = reads.split_off(2);
    while let Some(given_up) = reads.pop() {
        drop(given_up);
    }
    assert_eq!(
        within(join_all(rest)).await,
        ["b", "c"].map(|handle| Ok(handle.to_owned()))
    );
    assert!(server.batches().iter().all(|reads| *reads == 2));
}

/// Whether reads with this metadata are batched.
async fn go_together(metadata: [(&'static str, &'static str); 2]) -> bool {
    let server = server(Batches::Answered).await;
    let client = SessionClient::new(ClientSettings {
        annotate: Some(Arc::new(move |annotated| {
            for (name, value) in metadata {
                annotated.insert(name, value.parse().unwrap());
            }
        })),
        ..ClientSettings::new([server.url()])
    });
    let client = client.unwrap();
    read_at_once(&client, 1).await;
    read_at_once(&client, 10).await;
    !server.batches().is_empty()
}

#[tokio::test]
async fn a_read_with_metadata_that_others_do_not_have_is_a_call_of_its_own() {
    let recorded = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let unrecorded = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02";
    let state = ("tracestate", "vendor=told");
    assert!(go_together([("traceparent", unrecorded), state]).await);
    assert!(!go_together([("traceparent", recorded), state]).await);
    assert!(!go_together([("x-tenant", "blue"), state]).await);
}

#[tokio::test]
async fn a_batch_names_the_request_of_each_of_its_reads() {
    let server = server(Batches::Answered).await;
    let numbers = AtomicUsize::new(0);
    let client = SessionClient::new(ClientSettings {
        annotate: Some(Arc::new(move |metadata| {
            let number = numbers.fetch_add(1, Ordering::Relaxed);
            metadata.insert("x-request-id", number.to_string().parse().unwrap());
        })),
        ..ClientSettings::new([server.url()])
    })
    .unwrap();
    read_at_once(&client, 1).await;
    until(&server, &client, 10, &[10]).await;
    let mut named: Vec<usize> = server
        .request_ids()
        .last()
        .unwrap()
        .iter()
        .map(|id| id.parse().unwrap())
        .collect();
    named.sort_unstable();
    named.dedup();
    assert_eq!(named.len(), 10, "each its own: {named:?}");
}

#[tokio::test]
async fn what_is_under_way_on_a_replica_that_stops_is_answered_by_another() {
    let hanging = Server::start("hanging", Answer::Never).await;
    let alive = Server::start("alive", Answer::Session).await;
    let client = client([hanging.url(), alive.url()], Duration::from_secs(3));
    let reads = (0..10).map(|_| read(&client, "h"));
    let answers: Vec<Result<String, ErrorReason>> = within(join_all(reads)).await;
    assert_eq!(answers, vec![Ok("alive".to_owned()); 10]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_read_is_answered_with_its_own_when_callers_run_on_many_threads() {
    let server = server(Batches::Answered).await;
    let client = connected(&server).await;
    let readers = (0..8).map(|reader| {
        let client = client.clone();
        tokio::spawn(async move {
            for number in 0..100 {
                let handle = format!("{reader}-{number}");
                assert_eq!(read(&client, &handle).await, Ok(handle));
            }
        })
    });
    for reader in within(join_all(readers)).await {
        reader.unwrap();
    }
    assert!(!server.batches().is_empty());
}
