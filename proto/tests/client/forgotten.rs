//! A load balancer before the session service that forgets idle connections: they carry nothing, without an
//! error on either side. It carries new ones.

use std::time::Duration;

use tokio::io::{copy, copy_bidirectional, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use vestibule_session_api::v1::*;

use crate::replica::Answer;
use crate::support::{Server, by_handle, client, loopback, within};

async fn carry(mut near: TcpStream, far: std::net::SocketAddr, mut forgotten: watch::Receiver<()>) {
    let mut far = TcpStream::connect(far).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        _ = forgotten.changed() => {
            let _ = copy(&mut near, &mut sink()).await;
        }
    }
}

#[tokio::test]
async fn calls_over_a_forgotten_connection_are_repeated_over_a_new_one() {
    let server = Server::start("one", Answer::Session).await;
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (forgotten, address) = (watch::Sender::new(()), server.address);
    let forgets = forgotten.clone();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            tokio::spawn(carry(near, address, forgets.subscribe()));
        }
    });
    // The default deadline of callers.
    let client = client([url], Duration::from_secs(5));
    within(client.get_session(by_handle())).await.unwrap();
    forgotten.send_replace(());
    within(client.get_session(by_handle())).await.unwrap();
    forgotten.send_replace(());
    // A change may be retried too if sending it twice has the same effect.
    let create = CreateSessionRequest {
        request_id: "a request".to_owned(),
        ..Default::default()
    };
    within(client.create_session(create)).await.unwrap();
    forgotten.send_replace(());
    let reads = (0..20).map(|_| client.get_session(by_handle()));
    for read in within(futures_util::future::join_all(reads)).await {
        read.unwrap();
    }
}
