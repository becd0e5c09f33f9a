//! Traffic that streams: events, gRPC, sockets, uploads; and what happens on a disconnect.

use std::sync::Arc;
use std::time::Duration;

use auth_edge::gateway::ext_authz::api::CheckRequest;
use auth_edge::gateway::ext_authz::api::authorization_client::AuthorizationClient;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::routing::any;
use chassis::tls::{ServerTls, TlsFiles};
use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};
use tonic::service::Routes;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::{ServerReflectionRequest, server_reflection_response::MessageResponse};

use crate::gateway::Gateway;
use crate::support::{Certificates, Upstream};

const LONGEST_WAIT: Duration = Duration::from_secs(20);

fn rule(path: &str, upstream: &str) -> String {
    format!("[[route]]\npath = \"{path}/*\"\nguard = \"none\"\nupstream = \"{upstream}\"\n")
}

/// Reports when it is dropped.
struct Gone(mpsc::UnboundedSender<&'static str>);

impl Drop for Gone {
    fn drop(&mut self) {
        let _ = self.0.send("gone");
    }
}

async fn told(told: &mut mpsc::UnboundedReceiver<&'static str>) -> &'static str {
    tokio::time::timeout(LONGEST_WAIT, told.recv())
        .await
        .expect("in time")
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_reaches_the_browser_before_the_next_one_is_made() {
    let (events, made) = mpsc::unbounded_channel::<Bytes>();
    let made = Arc::new(Mutex::new(made));
    let handler = move || {
        let made = Arc::clone(&made);
        async move {
            let body = stream::unfold(made, |made| async {
                let event = made.lock().await.recv().await?;
                Some((Ok::<_, std::io::Error>(event), made))
            });
            ([("content-type", "text/event-stream")], Body::from_stream(body))
        }
    };
    let upstream = Upstream::of(Router::new().route("/own/events", any(handler)), None).await;
    let gateway = Gateway::start(&rule("/own", &upstream.url()), &[]).await;
    let url = format!("http://{}/own/events", gateway.stack.address());
    let mut answer = reqwest::get(url).await.unwrap();
    for event in ["data: 1\n\n", "data: 2\n\n"] {
        events.send(Bytes::from_static(event.as_bytes())).unwrap();
        let chunk = tokio::time::timeout(LONGEST_WAIT, answer.chunk())
            .await
            .expect("it is not held back");
        assert_eq!(chunk.unwrap().unwrap(), event);
    }
}

fn list_services() -> ServerReflectionRequest {
    ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_streams_both_ways_at_once_and_ends_with_its_status() {
    let reflection = tonic_reflection::server::Builder::configure().build_v1().unwrap();
    let upstream = Upstream::of(Routes::new(reflection).into_axum_router(), None).await;
    let h2c = upstream.url().replace("http://", "h2c://");
    let gateway = Gateway::start(&rule("/grpc.reflection.v1.ServerReflection", &h2c), &[]).await;
    let channel = tonic::transport::Endpoint::new(format!("http://{}", gateway.stack.address()))
        .unwrap()
        .connect_lazy();
    let mut client = ServerReflectionClient::new(channel);
    let (sender, receiver) = mpsc::unbounded_channel();
    let questions = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|question| (question, receiver))
    });
    sender.send(list_services()).unwrap();
    let mut answers = client
        .server_reflection_info(questions)
        .await
        .unwrap()
        .into_inner();
    for _ in 0..3 {
        let answer = tokio::time::timeout(LONGEST_WAIT, answers.message())
            .await
            .expect("each is answered");
        let answer = answer.unwrap().unwrap().message_response.unwrap();
        assert!(
            matches!(answer, MessageResponse::ListServicesResponse(_)),
            "{answer:?}"
        );
        sender.send(list_services()).unwrap();
    }
    drop(sender);
    while answers.message().await.unwrap().is_some() {}
    assert!(
        answers.trailers().await.unwrap().is_some(),
        "the status came in trailers"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_is_told_its_errors() {
    let reflection = tonic_reflection::server::Builder::configure().build_v1().unwrap();
    let upstream = Upstream::of(Routes::new(reflection).into_axum_router(), None).await;
    let h2c = upstream.url().replace("http://", "h2c://");
    let more = rule("/envoy.service.auth.v3.Authorization", &h2c);
    let gateway = Gateway::start(&more, &[]).await;
    let channel = tonic::transport::Endpoint::new(format!("http://{}", gateway.stack.address()))
        .unwrap()
        .connect_lazy();
    let mut client = AuthorizationClient::new(channel);
    let error = client.check(CheckRequest::default()).await.unwrap_err();
    assert_eq!(
        error.code(),
        tonic::Code::Unimplemented,
        "the upstream's own words"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_with_a_private_authority_is_believed_by_setting_alone() {
    let made = Certificates::make();
    let files = TlsFiles {
        certificate: made.path("server.pem"),
        key: made.path("server.key"),
        client_ca: None,
    };
    let tls = ServerTls::load(&files).unwrap();
    let version = |request: Request| async move {
        let host = request
            .headers()
            .get("host")
            .map(|host| host.to_str().unwrap().to_owned());
        format!("{:?} {}", request.version(), host.unwrap_or_default())
    };
    let upstream = Upstream::of(Router::new().fallback(any(version)), Some(tls)).await;
    let url = upstream.url().replace("http://", "https://");
    let table = rule("/own", &url) + &rule("/kept", &url) + "preserve_host = true\n";
    let believed = Gateway::start(&table, &[("EDGE_UPSTREAM_CA_FILE", &made.text("ca.pem"))]).await;
    let answer = believed.stack.browser().get("/own/a").await;
    assert_eq!((answer.status, answer.body.trim()), (200, "HTTP/2.0"));
    let kept = believed.stack.browser().get("/kept/a").await;
    assert_eq!(
        (kept.status, kept.body),
        (200, format!("HTTP/1.1 {}", believed.stack.address())),
        "over HTTP/2 the host is part of the address"
    );
    let stranger = Gateway::start(&table, &[]).await;
    assert_eq!(stranger.stack.browser().get("/own/a").await.status, 502);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_frees_the_upstream_wherever_it_was() {
    let (tell, mut heard) = mpsc::unbounded_channel();
    let (thinking, speaking, listening) = (tell.clone(), tell.clone(), tell);
    let router = Router::new()
        .route(
            "/own/thinking",
            any(move || {
                let gone = Gone(thinking.clone());
                async move {
                    let _ = gone.0.send("began");
                    std::future::pending::<()>().await;
                    drop(gone);
                }
            }),
        )
        .route(
            "/own/speaking",
            any(move || {
                let gone = Gone(speaking.clone());
                async move {
                    let _ = gone.0.send("began");
                    Body::from_stream(stream::repeat_with(move || {
                        let _ = &gone;
                        Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 16_384]))
                    }))
                }
            }),
        )
        .route(
            "/own/listening",
            any(move |body: Body| {
                let gone = Gone(listening.clone());
                async move {
                    let _ = gone.0.send("began");
                    let mut pieces = body.into_data_stream();
                    while let Some(Ok(_)) = pieces.next().await {}
                }
            }),
        );
    let upstream = Upstream::of(router, None).await;
    let gateway = Gateway::start(&rule("/own", &upstream.url()), &[]).await;
    for (path, more) in [
        ("thinking", ""),
        ("speaking", ""),
        ("listening", "Content-Length: 1000\r\nExpect: 100-continue\r\n"),
    ] {
        let mut stream = TcpStream::connect(gateway.stack.address()).await.unwrap();
        let request = format!("POST /own/{path} HTTP/1.1\r\nHost: a\r\n{more}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        assert_eq!(told(&mut heard).await, "began", "{path}");
        if path == "speaking" {
            stream.read_u8().await.unwrap();
        }
        drop(stream);
        assert_eq!(told(&mut heard).await, "gone", "{path}");
    }
}
