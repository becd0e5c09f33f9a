//! HTTP/2 without a gRPC library: requests that no library sends, and deadlines only the service enforces.

use std::io::Read as _;

use flate2::Compression;
use flate2::read::GzEncoder;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use session_proto::error::reason_of;
use session_proto::v1::ErrorReason;
use tokio::net::TcpStream;
use tonic::{Code, Status};

use super::support::within;

pub(crate) type Body = BoxBody<Bytes, std::convert::Infallible>;

/// A connection in plaintext.
pub(crate) struct Raw {
    sender: SendRequest<Body>,
}

impl Raw {
    pub(crate) async fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        Self { sender }
    }

    /// Sends a request. Returns the status and all headers and trailers.
    pub(crate) async fn send(&mut self, request: Request<Body>) -> (StatusCode, HeaderMap) {
        let answer: Response<Incoming> = within(self.sender.send_request(request)).await.unwrap();
        let (head, body) = answer.into_parts();
        let mut headers = head.headers;
        if let Some(trailers) = within(body.collect()).await.unwrap().trailers() {
            headers.extend(trailers.clone());
        }
        (head.status, headers)
    }

    /// Sends a request. Returns its gRPC status.
    pub(crate) async fn status(&mut self, request: Request<Body>) -> Status {
        let (http, headers) = self.send(request).await;
        assert_eq!(http, StatusCode::OK, "{headers:?}");
        Status::from_header_map(&headers).expect("a gRPC status")
    }
}

/// A call of a method, with these bytes as they are.
pub(crate) fn request(method: &str, bytes: Vec<u8>) -> Request<Body> {
    Request::post(format!("http://127.0.0.1/session.v1.SessionService/{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(Bytes::from(bytes)).boxed())
        .unwrap()
}

/// A call of a method with a message and a deadline in milliseconds.
pub(crate) fn call(method: &str, message: &impl Message, timeout_ms: u64) -> Request<Body> {
    let mut request = request(method, framed(&message.encode_to_vec()));
    let timeout = format!("{timeout_ms}m").parse().unwrap();
    request.headers_mut().insert("grpc-timeout", timeout);
    request
}

/// A message in wire format: not compressed, length, bytes (gRPC "Length-Prefixed-Message").
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], message].concat()
}

/// The same, compressed with gzip.
pub(crate) fn gzipped(message: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    GzEncoder::new(message, Compression::best())
        .read_to_end(&mut packed)
        .unwrap();
    [&[1], &framed(&packed)[1..]].concat()
}

/// The code and the reason of a status.
pub(crate) fn reported(status: &Status) -> (Code, Option<ErrorReason>) {
    (status.code(), reason_of(status))
}
