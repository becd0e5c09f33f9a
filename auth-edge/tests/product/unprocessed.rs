//! HTTP/2 upstreams that did not process a request (RFC 9113, 8.7): the edge resends any method.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::http::{HeaderMap, Method, Request, Response, StatusCode};
use h2::Reason;
use h2::server::SendResponse;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};

use crate::gateway::Gateway;

/// A server that resets its next requests with these codes, and answers others with the received body.
#[derive(Clone)]
struct Resetting {
    address: SocketAddr,
    reasons: Arc<Mutex<VecDeque<Reason>>>,
    processed: Arc<Mutex<Vec<(Method, usize)>>>,
}

impl Resetting {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            reasons: Arc::default(),
            processed: Arc::default(),
        };
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream));
            }
        });
        server
    }

    async fn serve(self, stream: TcpStream) {
        let mut connection = h2::server::handshake(stream).await.unwrap();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            let reason = self.reasons.lock().unwrap().pop_front();
            match reason {
                Some(reason) => respond.send_reset(reason),
                None => _ = tokio::spawn(self.clone().answer(request, respond)),
            }
        }
    }

    async fn answer(self, request: Request<h2::RecvStream>, mut respond: SendResponse<Bytes>) {
        let (head, mut body) = request.into_parts();
        let mut read = 0;
        while let Some(Ok(piece)) = body.data().await {
            read += piece.len();
            body.flow_control().release_capacity(piece.len()).unwrap();
        }
        self.processed.lock().unwrap().push((head.method, read));
        let response = Response::builder().header("content-type", "application/grpc");
        let mut sending = respond.send_response(response.body(()).unwrap(), false).unwrap();
        sending.send_data(Bytes::from_static(b"answer"), false).unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", "0".parse().unwrap());
        sending.send_trailers(trailers).unwrap();
    }

    fn reset_next(&self, reasons: &[Reason]) {
        *self.reasons.lock().unwrap() = reasons.iter().copied().collect();
        self.processed.lock().unwrap().clear();
    }
}

async fn before(server: &Resetting) -> Gateway {
    let rule = format!(
        "[[route]]\npath = \"/own/*\"\nguard = \"none\"\nupstream = \"h2c://{}\"\n",
        server.address
    );
    Gateway::start(&rule, &[]).await
}

/// Sends a request over HTTP/2, as gRPC clients do. Returns the status and the gRPC status.
async fn send(gateway: &Gateway, method: Method, body: usize) -> (StatusCode, Option<String>) {
    let stream = TcpStream::connect(gateway.stack.address()).await.unwrap();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(format!("http://{}/own/call", gateway.stack.address()))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(Bytes::from(vec![b'x'; body])))
        .unwrap();
    let answer = sender.send_request(request).await.unwrap();
    let status = answer.status();
    let trailers = answer.into_body().collect().await.unwrap().trailers().cloned();
    let grpc = trailers.and_then(|trailers| Some(trailers.get("grpc-status")?.to_str().unwrap().to_owned()));
    (status, grpc)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_stream_is_sent_again_whatever_its_method() {
    let server = Resetting::start().await;
    let gateway = before(&server).await;
    for method in [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ] {
        for body in [0, 5, 60_000] {
            for refused in [1, 5] {
                server.reset_next(&[Reason::REFUSED_STREAM].repeat(refused));
                let answer = send(&gateway, method.clone(), body).await;
                assert_eq!(
                    answer,
                    (StatusCode::OK, Some("0".to_owned())),
                    "{method} {body} {refused}"
                );
                assert_eq!(*server.processed.lock().unwrap(), [(method.clone(), body)]);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_may_have_been_processed_or_is_refused_for_ever_gets_502() {
    let server = Resetting::start().await;
    let gateway = before(&server).await;
    for (method, reasons, status) in [
        (Method::POST, vec![Reason::INTERNAL_ERROR], 502),
        (Method::POST, vec![Reason::CANCEL], 502),
        (Method::DELETE, vec![Reason::ENHANCE_YOUR_CALM], 502),
        (Method::GET, vec![Reason::INTERNAL_ERROR], 200),
        (Method::GET, vec![Reason::INTERNAL_ERROR; 2], 502),
        (Method::POST, vec![Reason::REFUSED_STREAM; 20], 502),
    ] {
        server.reset_next(&reasons);
        let (answered, _) = send(&gateway, method.clone(), 0).await;
        assert_eq!(answered.as_u16(), status, "{method} {reasons:?}");
        let processed = server.processed.lock().unwrap().len();
        assert_eq!(processed, usize::from(status == 200), "{method} {reasons:?}");
    }
}
