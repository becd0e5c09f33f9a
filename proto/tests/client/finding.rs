//! Replicas that come, go, hang and restart, and names that change their addresses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use vestibule_session_api::client::{ClientSettings, SessionClient};
use vestibule_session_api::v1::{CreateSessionRequest, ErrorReason, UpdateSessionRequest};

use crate::replica::Answer;
use crate::support::{Hanging, Name, Server, Silent, by_handle, client, found_by, loopback, within};

#[tokio::test]
async fn a_replica_that_hangs_costs_reads_a_share_of_their_time_and_fails_none() {
    let (hanging, alive) = (
        Hanging::start().await,
        Server::start("alive", Answer::Session).await,
    );
    let name = Name::default();
    name.leads_to(&[hanging.address, alive.address]);
    let client = SessionClient::new(ClientSettings {
        deadline: Duration::from_secs(6),
        ..found_by(&name)
    })
    .unwrap();
    for _ in 0..20 {
        client.get_session(by_handle()).await.unwrap();
    }
    assert_eq!(alive.calls(), 20);
}

#[tokio::test]
async fn a_write_to_a_replica_that_hangs_is_not_sent_to_another() {
    let (hanging, alive) = (
        Hanging::start().await,
        Server::start("alive", Answer::Session).await,
    );
    let name = Name::default();
    let client = SessionClient::new(ClientSettings {
        deadline: Duration::from_millis(300),
        ..found_by(&name)
    })
    .unwrap();
    name.leads_to(&[hanging.address]);
    // The hanging replica is the only one, so the call must choose it.
    let writing = client.update_session(UpdateSessionRequest::default());
    let (written, ()) = tokio::join!(writing, async {
        name.leads_to(&[hanging.address, alive.address])
    });
    assert_eq!(
        written.unwrap_err().reason,
        ErrorReason::ErrSessionServiceUnavailable
    );
    assert_eq!(alive.calls(), 0);
}

#[tokio::test]
async fn a_replica_that_stopped_and_whose_address_answers_nobody_keeps_no_call_waiting() {
    let (leaving, staying) = (
        Server::start("leaving", Answer::Session).await,
        Server::start("staying", Answer::Session).await,
    );
    // Shorter than a connection attempt; a write is not sent twice, so a waiting one fails.
    let client = client([leaving.url(), staying.url()], Duration::from_millis(600));
    while leaving.calls() == 0 || staying.calls() == 0 {
        client.get_session(by_handle()).await.unwrap();
    }
    let _silent = Silent::at(leaving.stop().await).await;
    for _ in 0..20 {
        client
            .create_session(CreateSessionRequest::default())
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_replica_that_is_just_back_is_used_when_the_other_one_goes() {
    let (first, second) = (
        Server::start("first", Answer::Session).await,
        Server::start("second", Answer::Session).await,
    );
    // Shorter than a connection attempt to the stopping replica.
    let client = client([first.url(), second.url()], Duration::from_millis(600));
    within(async {
        while first.calls() == 0 || second.calls() == 0 {
            client.get_session(by_handle()).await.unwrap();
        }
    })
    .await;
    let address = first.stop().await;
    // The client retries the first only after two more seconds. The second has dropped no new connection.
    let stopped = Instant::now();
    while stopped.elapsed() < Duration::from_millis(1_500) {
        client.get_session(by_handle()).await.unwrap();
    }
    let back = Server::start_at(address, "back", Answer::Session).await;
    let _silent = Silent::at(second.stop().await).await;
    client
        .create_session(CreateSessionRequest::default())
        .await
        .unwrap();
    assert_eq!(back.calls(), 1);
}

#[tokio::test]
async fn an_address_that_takes_connections_and_drops_them_fails_no_call_and_is_left_out() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&accepted);
    let dropping = tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(connection);
        }
    });
    let server = Server::start("server", Answer::Session).await;
    let client = client(
        [format!("http://{address}"), server.url()],
        Duration::from_secs(10),
    );
    for _ in 0..200 {
        client.get_session(by_handle()).await.unwrap();
    }
    // Each dropped connection doubles the time until the next attempt.
    assert!(accepted.load(Ordering::SeqCst) < 5, "{accepted:?} connections");
    dropping.abort();
}

#[tokio::test]
async fn an_address_the_name_does_not_lead_to_any_more_is_dropped() {
    let (old, new) = (
        Server::start("old", Answer::Session).await,
        Server::start("new", Answer::Session).await,
    );
    let name = Name::default();
    name.leads_to(&[old.address]);
    let client = SessionClient::new(found_by(&name)).unwrap();
    client.get_session(by_handle()).await.unwrap();
    let mut endpoints = client.endpoints();
    name.leads_to(&[new.address]);
    within(endpoints.wait_for(|known| known.iter().all(|id| id.address() == new.address)))
        .await
        .unwrap();
    for _ in 0..10 {
        client.get_session(by_handle()).await.unwrap();
    }
    assert_eq!((old.calls(), new.calls()), (1, 10));
}

#[tokio::test]
async fn a_name_server_that_fails_or_is_silent_takes_no_address_away() {
    let server = Server::start("server", Answer::Session).await;
    let name = Name::default();
    name.leads_to(&[server.address]);
    let client = SessionClient::new(found_by(&name)).unwrap();
    client.get_session(by_handle()).await.unwrap();
    name.is_unknown();
    name.asked_again().await;
    for _ in 0..10 {
        client.get_session(by_handle()).await.unwrap();
    }
    name.is_not_answered();
    for _ in 0..10 {
        client.get_session(by_handle()).await.unwrap();
    }
    assert_eq!(server.calls(), 21);
}

#[tokio::test]
async fn a_name_server_that_is_silent_from_the_start_costs_the_deadline_and_no_more() {
    let name = Name::default();
    name.is_not_answered();
    let client = SessionClient::new(ClientSettings {
        deadline: Duration::from_millis(200),
        ..found_by(&name)
    })
    .unwrap();
    let error = within(client.get_session(by_handle())).await.unwrap_err();
    assert!(error.is_unavailable());
    // Once it answers, the same client works.
    let server = Server::start("server", Answer::Session).await;
    name.leads_to(&[server.address]);
    within(async { while client.get_session(by_handle()).await.is_err() {} }).await;
}

#[tokio::test]
async fn one_name_that_cannot_be_resolved_takes_nothing_from_the_others() {
    let server = Server::start("server", Answer::Session).await;
    let client = client(
        ["http://session-svc.invalid:50051".to_owned(), server.url()],
        Duration::from_secs(10),
    );
    for _ in 0..5 {
        client.get_session(by_handle()).await.unwrap();
    }
    assert_eq!(server.calls(), 5);
}

#[tokio::test]
async fn restarting_two_replicas_one_after_the_other_under_load_fails_no_call() {
    let mut servers = [
        Some(Server::start("one", Answer::Session).await),
        Some(Server::start("two", Answer::Session).await),
    ];
    let urls: Vec<_> = servers.iter().flatten().map(Server::url).collect();
    let client = client(urls, Duration::from_secs(20));
    let (done, called) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let load: Vec<_> = (0..8)
        .map(|worker| {
            let (client, done, called) = (client.clone(), done.clone(), called.clone());
            tokio::spawn(async move {
                while !done.load(Ordering::SeqCst) {
                    if worker % 2 == 0 {
                        client.get_session(by_handle()).await.unwrap();
                    } else {
                        let request_id = "3f2a9c1e-8f4b-4d7e-9a63-6f0d8a5b2c11".to_owned();
                        let request = CreateSessionRequest {
                            request_id,
                            ..Default::default()
                        };
                        client.create_session(request).await.unwrap();
                    }
                    called.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    for _ in 0..3 {
        for server in &mut servers {
            let before = called.load(Ordering::SeqCst);
            within(async {
                while called.load(Ordering::SeqCst) < before + 200 {
                    tokio::task::yield_now().await;
                }
            })
            .await;
            let address = server.take().unwrap().stop().await;
            *server = Some(Server::start_at(address, "again", Answer::Session).await);
            // The next server stops only once this one receives calls, as an orchestrator waits for readiness.
            let restarted = server.as_ref().unwrap();
            within(async {
                while restarted.calls() == 0 {
                    tokio::task::yield_now().await;
                }
            })
            .await;
        }
    }
    done.store(true, Ordering::SeqCst);
    for worker in load {
        worker.await.unwrap();
    }
}
