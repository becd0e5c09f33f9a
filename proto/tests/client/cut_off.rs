//! Replicas that are cut off: their connections stay open without data, and new ones are accepted or not.

use std::time::Duration;

use tokio::io::copy;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use vestibule_session_api::client::SessionClient;
use vestibule_session_api::v1::*;

use crate::replica::Answer;
use crate::support::{Server, by_handle, client, loopback, within};

/// Longer than any test: a call that waits for its deadline fails it.
const AGES: Duration = Duration::from_secs(300);

/// A connection to a server that the test can cut: then nothing gets through, is refused or reset.
struct Way {
    url: String,
    cut: watch::Sender<bool>,
    _server: Server,
}

impl Way {
    async fn to(server: Server) -> Self {
        let listener = TcpListener::bind(loopback()).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (cut, address) = (watch::Sender::new(false), server.address);
        let state = cut.subscribe();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(carry(near, address, state.clone()));
            }
        });
        Self {
            url,
            cut,
            _server: server,
        }
    }

    async fn to_new(name: &str) -> Self {
        Self::to(Server::start(name, Answer::Session).await).await
    }

    fn cut(&self) {
        self.cut.send_replace(true);
    }

    fn mend(&self) {
        self.cut.send_replace(false);
    }
}

/// Carries bytes both ways, except while cut.
async fn carry(near: TcpStream, address: std::net::SocketAddr, mut cut: watch::Receiver<bool>) {
    let _ = cut.wait_for(|cut| !cut).await;
    let far = TcpStream::connect(address).await.unwrap();
    let ((mut near_in, mut near_out), (mut far_in, mut far_out)) = (near.into_split(), far.into_split());
    loop {
        tokio::select! {
            biased;
            changed = cut.wait_for(|cut| *cut) => if changed.is_err() { return },
            _ = copy(&mut near_in, &mut far_out) => return,
            _ = copy(&mut far_in, &mut near_out) => return,
        }
        if cut.wait_for(|cut| !cut).await.is_err() {
            return;
        }
    }
}

async fn reads(client: &SessionClient) -> Result<String, ErrorReason> {
    let answer = within(client.get_session(by_handle())).await;
    answer
        .map(|answer| answer.session.unwrap().handle)
        .map_err(|error| error.reason)
}

/// Reads until the replica answers.
async fn answers(client: &SessionClient, name: &str) {
    within(async { while reads(client).await != Ok(name.to_owned()) {} }).await;
}

#[tokio::test]
async fn one_of_two_replicas_cut_off_fails_no_read_and_is_used_again_when_it_is_back() {
    let (one, two) = (Way::to_new("one").await, Way::to_new("two").await);
    let client = client([one.url.clone(), two.url.clone()], AGES);
    answers(&client, "one").await;
    answers(&client, "two").await;
    one.cut();
    for _ in 0..50 {
        assert_eq!(reads(&client).await, Ok("two".to_owned()));
    }
    one.mend();
    answers(&client, "one").await;
}

#[tokio::test]
async fn two_of_three_replicas_cut_off_fail_no_read() {
    let ways = [
        Way::to_new("one").await,
        Way::to_new("two").await,
        Way::to_new("three").await,
    ];
    let client = client(ways.iter().map(|way| way.url.clone()), AGES);
    for name in ["one", "two", "three"] {
        answers(&client, name).await;
    }
    ways[0].cut();
    ways[1].cut();
    for _ in 0..50 {
        assert_eq!(reads(&client).await, Ok("three".to_owned()));
    }
}

#[tokio::test]
async fn with_all_replicas_cut_off_calls_fail_as_unavailable_before_their_deadline() {
    let (one, two) = (Way::to_new("one").await, Way::to_new("two").await);
    let client = client([one.url.clone(), two.url.clone()], AGES);
    answers(&client, "one").await;
    answers(&client, "two").await;
    one.cut();
    two.cut();
    // The first calls detect it; later ones have no replica to connect to.
    for _ in 0..2 {
        assert_eq!(
            reads(&client).await,
            Err(ErrorReason::ErrSessionServiceUnavailable)
        );
    }
    two.mend();
    answers(&client, "two").await;
}

#[tokio::test]
async fn a_replica_that_is_slow_and_not_cut_off_is_waited_for() {
    let server = Server::start("slow", Answer::Echo).await;
    let client = client([server.url()], AGES);
    let request = GetSessionRequest {
        by: Some(get_session_request::By::Handle("slow".into())),
    };
    let mut read = Box::pin(client.get_session(request));
    // Longer than the allowed silence: its connection answers pings.
    let early = tokio::time::timeout(Duration::from_secs(5), &mut read).await;
    assert!(early.is_err(), "{early:?}");
    server.answers_slow_reads();
    assert_eq!(within(read).await.unwrap().session.unwrap().handle, "slow");
}
