//! The client against real servers: deadlines, retries, replicas that come and go.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use session_proto::client::{ClientSettings, SessionClient};
use session_proto::error;
use session_proto::v1::session_service_server::{SessionService, SessionServiceServer};
use session_proto::v1::*;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// Answers every read with a session whose handle is the server's name, and counts the calls.
#[derive(Clone)]
struct Replica {
    name: String,
    calls: Arc<AtomicUsize>,
    answer: Answer,
}

#[derive(Clone, Copy)]
enum Answer {
    Session,
    Missing,
    Never,
}

#[tonic::async_trait]
impl SessionService for Replica {
    async fn get_session(
        &self,
        request: Request<GetSessionRequest>,
    ) -> Result<Response<GetSessionResponse>, Status> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        assert!(
            request.metadata().contains_key("grpc-timeout"),
            "every call carries its deadline"
        );
        match self.answer {
            Answer::Session => {
                let session = Session {
                    handle: self.name.clone(),
                    ..Default::default()
                };
                Ok(Response::new(GetSessionResponse {
                    session: Some(session),
                }))
            }
            Answer::Missing => Err(error::status(
                ErrorReason::ErrMissingSession,
                "there is no such session",
                [],
            )),
            Answer::Never => std::future::pending().await,
        }
    }
    async fn create_session(
        &self,
        _: Request<CreateSessionRequest>,
    ) -> Result<Response<CreateSessionResponse>, Status> {
        unanswered()
    }
    async fn roll_session(
        &self,
        _: Request<RollSessionRequest>,
    ) -> Result<Response<RollSessionResponse>, Status> {
        unanswered()
    }
    async fn update_session(
        &self,
        _: Request<UpdateSessionRequest>,
    ) -> Result<Response<UpdateSessionResponse>, Status> {
        // Something between client and service failed after the request was sent.
        self.calls.fetch_add(1, Ordering::SeqCst);
        Err(Status::unavailable("connection reset"))
    }
    async fn get_access_token(
        &self,
        _: Request<GetAccessTokenRequest>,
    ) -> Result<Response<GetAccessTokenResponse>, Status> {
        unanswered()
    }
    async fn end_session(
        &self,
        _: Request<EndSessionRequest>,
    ) -> Result<Response<EndSessionResponse>, Status> {
        unanswered()
    }
    async fn end_sessions(
        &self,
        _: Request<EndSessionsRequest>,
    ) -> Result<Response<EndSessionsResponse>, Status> {
        unanswered()
    }
    async fn list_sessions(
        &self,
        _: Request<ListSessionsRequest>,
    ) -> Result<Response<ListSessionsResponse>, Status> {
        unanswered()
    }
    type WatchSessionsStream = tokio_stream::Empty<Result<SessionEvent, Status>>;
    async fn watch_sessions(
        &self,
        _: Request<WatchSessionsRequest>,
    ) -> Result<Response<Self::WatchSessionsStream>, Status> {
        unanswered()
    }
}

fn unanswered<T>() -> Result<T, Status> {
    Err(Status::unimplemented("not asked for in these tests"))
}

/// A server that runs until it is stopped or dropped.
struct Server {
    address: SocketAddr,
    calls: Arc<AtomicUsize>,
    stop: Option<oneshot::Sender<()>>,
    ended: tokio::task::JoinHandle<()>,
}

impl Server {
    async fn start(name: &str, answer: Answer) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), name, answer).await
    }

    async fn start_at(address: SocketAddr, name: &str, answer: Answer) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let calls = Arc::new(AtomicUsize::new(0));
        let replica = Replica {
            name: name.to_owned(),
            calls: calls.clone(),
            answer,
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let ended = tokio::spawn(async move {
            tonic::transport::Server::builder()
                .add_service(SessionServiceServer::new(replica))
                .serve_with_incoming_shutdown(TcpListenerStream::new(listener), async {
                    let _ = stopped.await;
                })
                .await
                .unwrap();
        });
        Self {
            address,
            calls,
            stop: Some(stop),
            ended,
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    async fn stop(mut self) -> SocketAddr {
        drop(self.stop.take());
        self.ended.await.unwrap();
        self.address
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

fn client(addresses: impl IntoIterator<Item = String>, deadline: Duration) -> SessionClient {
    SessionClient::new(ClientSettings {
        deadline,
        ..ClientSettings::new(addresses)
    })
    .unwrap()
}

fn by_handle() -> GetSessionRequest {
    GetSessionRequest {
        by: Some(get_session_request::By::Handle("h".into())),
    }
}

/// A loopback address nothing listens on.
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
    for _ in 0..20 {
        client.get_session(by_handle()).await.unwrap();
    }
    assert_eq!((one.calls(), two.calls()), (10, 10));
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
