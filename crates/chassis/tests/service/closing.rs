//! A port that closes, seen by connecting clients.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use chassis::runtime::Workers;
use chassis::serve;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

fn router() -> Router {
    Router::new().route("/", get(|| async { "answered" }))
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = serve::bind(([127, 0, 0, 1], 0).into(), "LISTEN").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn ask(mut stream: &TcpStream) {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: here\r\n\r\n").unwrap();
}

fn is_answered(mut stream: TcpStream) -> bool {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).is_ok() && answer.ends_with("answered")
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_to_be_accepted_when_the_port_closes_is_answered() {
    let (listener, address) = listen().await;
    let waiting: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    waiting.iter().for_each(ask);
    let stop = CancellationToken::new();
    stop.cancel();
    let router = router();
    serve::serve_each(
        Workers::here(),
        listener,
        move || router.clone(),
        None,
        serve::Limits::default(),
        serve::Stopping::on(stop),
    )
    .await;
    let answered = tokio::task::spawn_blocking(|| {
        waiting
            .into_iter()
            .filter_map(|one| is_answered(one).then_some(()))
            .count()
    });
    assert_eq!(answered.await.unwrap(), 100);
}

/// Connects and asks until the port closes. Returns the outcome of the unanswered request.
fn knock(address: SocketAddr, answered: &AtomicUsize) -> Option<String> {
    loop {
        match TcpStream::connect(address) {
            Ok(mut stream) => {
                ask(&stream);
                let mut answer = String::new();
                match stream.read_to_string(&mut answer) {
                    Ok(_) if answer.ends_with("answered") => answered.fetch_add(1, Ordering::SeqCst),
                    other => return Some(format!("{other:?} after {answer:?}")),
                };
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return None,
            Err(error) => return Some(error.to_string()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_closes_under_many_connections_answers_or_refuses_and_resets_none() {
    for _ in 0..5 {
        let (listener, address) = listen().await;
        let stop = CancellationToken::new();
        // Each connection carries one request, so that the load consists of connections.
        let router = router().layer(axum::middleware::map_response(
            |mut answer: axum::response::Response| async {
                answer
                    .headers_mut()
                    .insert("connection", axum::http::HeaderValue::from_static("close"));
                answer
            },
        ));
        let serving = tokio::spawn(serve::serve_each(
            Workers::here(),
            listener,
            move || router.clone(),
            None,
            serve::Limits::default(),
            serve::Stopping::on(stop.clone()),
        ));
        let answered = Arc::new(AtomicUsize::new(0));
        let knocking: Vec<_> = (0..8)
            .map(|_| {
                let answered = Arc::clone(&answered);
                tokio::task::spawn_blocking(move || knock(address, &answered))
            })
            .collect();
        let deadline = Instant::now() + PATIENCE;
        while answered.load(Ordering::SeqCst) < 500 {
            assert!(Instant::now() < deadline, "the storm is answered");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        stop.cancel();
        for one in knocking {
            assert_eq!(one.await.unwrap(), None);
        }
        serving.await.unwrap();
    }
}
