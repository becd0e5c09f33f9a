//! Requests that never reach a method: each answer has the canonical status and a reason.

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame};
use prost::Message as _;
use session_proto::v1::session_service_client::SessionServiceClient;
use session_proto::v1::{self, ErrorReason};
use session_svc::callers::{Callers, parse};
use session_svc::start::AccessPolicy;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;

use super::raw::{Body, Raw, call, framed, gzipped, reported, request};
use super::support::*;

async fn plain() -> (u16, CancellationToken) {
    super::log::log();
    let callers = Callers::anyone();
    start(AccessPolicy { tls: None, callers }, memory()).await
}

/// A request that names how its messages are compressed.
fn encoded(how: &str, mut request: Request<Body>) -> Request<Body> {
    let headers = request.headers_mut();
    headers.insert("grpc-encoding", how.parse().unwrap());
    request
}

#[tokio::test]
async fn every_failure_of_the_framework_has_a_reason() {
    let (port, _shutdown) = plain().await;
    let mut raw = Raw::connect(port).await;
    let malformed = (Code::InvalidArgument, Some(ErrorReason::ErrMalformedRequest));
    let wrong_flag = (Code::Internal, Some(ErrorReason::ErrMalformedRequest));
    let too_large = (Code::ResourceExhausted, Some(ErrorReason::ErrRequestTooLarge));
    let unimplemented = (Code::Unimplemented, Some(ErrorReason::ErrUnimplemented));
    let mut unfinished = framed(&[1; 40]);
    unfinished.truncate(20);
    let compressed = [&[1], &framed(b"x")[1..]].concat();
    for (name, sent, expected) in [
        (
            "no protobuf",
            request("GetSession", framed(&[0xff; 16])),
            malformed,
        ),
        (
            "a string that is no UTF-8",
            request("GetSession", framed(&[0x0a, 1, 0xff])),
            malformed,
        ),
        ("no message", request("GetSession", Vec::new()), malformed),
        ("half a message", request("GetSession", unfinished), malformed),
        (
            "an unknown flag",
            request("GetSession", vec![9, 0, 0, 0, 0]),
            wrong_flag,
        ),
        (
            "compressed without saying how",
            request("GetSession", compressed.clone()),
            wrong_flag,
        ),
        (
            "a stream compressed without saying how",
            request("FollowSessions", compressed.clone()),
            wrong_flag,
        ),
        (
            "compressed as identity",
            encoded("identity", request("GetSession", compressed)),
            wrong_flag,
        ),
        (
            "a large message",
            request("CreateSession", framed(&vec![0; 300_000])),
            too_large,
        ),
        (
            "a large watch",
            request("WatchSessions", framed(&vec![0; 300_000])),
            too_large,
        ),
        ("an unknown method", request("Fly", framed(b"")), unimplemented),
        (
            "another letter case",
            request("getsession", framed(b"")),
            unimplemented,
        ),
    ] {
        let status = raw.status(sent).await;
        assert_eq!(reported(&status), expected, "{name}: {status:?}");
    }
    for path in [
        "/session.v2.SessionService/GetSession",
        "/",
        "/session.v1.SessionService",
    ] {
        let mut other = request("GetSession", framed(b""));
        *other.uri_mut() = format!("http://127.0.0.1{path}").parse().unwrap();
        assert_eq!(reported(&raw.status(other).await), unimplemented, "{path}");
    }
    for encoding in ["deflate", "zstd", "GZIP"] {
        let compressed = encoded(encoding, request("GetSession", framed(b"")));
        let (_, headers) = raw.send(compressed).await;
        let status = tonic::Status::from_header_map(&headers).unwrap();
        assert_eq!(reported(&status), unimplemented, "{encoding}");
        assert!(status.message().contains(encoding), "{status:?}");
        assert_eq!(headers["grpc-accept-encoding"], "gzip,identity");
    }
    // The connection is still usable.
    let mut client = SessionServiceClient::connect(format!("http://127.0.0.1:{port}"))
        .await
        .unwrap();
    assert_eq!(
        may_call(&mut client, session_svc::callers::Rpc::GetSession).await,
        Ok(())
    );
}

#[tokio::test]
async fn requests_compressed_with_gzip_are_read_up_to_the_bound_of_their_unpacked_size() {
    let (port, _shutdown) = plain().await;
    let mut raw = Raw::connect(port).await;
    let new = v1::CreateSessionRequest {
        issuer: "https://issuer.example".to_owned(),
        user: r#"{"sub":"alice"}"#.to_owned(),
        ..Default::default()
    }
    .encode_to_vec();
    let bomb = gzipped(&vec![0; 8 * 1024 * 1024]);
    assert!(bomb.len() < 256 * 1024, "small on its way: {}", bomb.len());
    let mut damaged = gzipped(&new);
    damaged[20] ^= 0xff;
    let too_large = (Code::ResourceExhausted, Some(ErrorReason::ErrRequestTooLarge));
    let malformed = (Code::InvalidArgument, Some(ErrorReason::ErrMalformedRequest));
    for (name, method, sent, expected) in [
        ("a session", "CreateSession", gzipped(&new), (Code::Ok, None)),
        (
            "not compressed after all",
            "CreateSession",
            framed(&new),
            (Code::Ok, None),
        ),
        // The service reads the message, which lacks required fields.
        (
            "a stream",
            "FollowSessions",
            gzipped(b""),
            (Code::InvalidArgument, Some(ErrorReason::ErrInvalidArgument)),
        ),
        ("a bomb", "CreateSession", bomb.clone(), too_large),
        ("a bomb in a stream", "FollowSessions", bomb.clone(), too_large),
        (
            "no gzip",
            "CreateSession",
            [&[1], &framed(&new)[1..]].concat(),
            malformed,
        ),
        ("damaged gzip", "CreateSession", damaged, malformed),
    ] {
        let status = raw.status(encoded("gzip", request(method, sent))).await;
        assert_eq!(reported(&status), expected, "{name}: {status:?}");
    }
    // Libraries also compress messages to the health and reflection services.
    let services = MessageRequest::ListServices(String::new());
    let reflect = ServerReflectionRequest {
        message_request: Some(services),
        ..Default::default()
    }
    .encode_to_vec();
    for (path, sent, expected) in [
        ("health.v1.Health/Check", gzipped(b""), Code::Ok),
        ("health.v1.Health/List", gzipped(b""), Code::Ok),
        ("health.v1.Health/Check", bomb.clone(), Code::ResourceExhausted),
        ("health.v1.Health/List", bomb, Code::ResourceExhausted),
        (
            "reflection.v1.ServerReflection/ServerReflectionInfo",
            gzipped(&reflect),
            Code::Ok,
        ),
        (
            "reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            gzipped(&reflect),
            Code::Ok,
        ),
    ] {
        let mut sent = encoded("gzip", request("", sent));
        *sent.uri_mut() = format!("http://127.0.0.1/grpc.{path}").parse().unwrap();
        let status = raw.status(sent).await;
        assert_eq!(status.code(), expected, "{path}: {status:?}");
    }
}

#[tokio::test]
async fn what_is_no_grpc_is_told_in_http() {
    let (port, _shutdown) = plain().await;
    let mut raw = Raw::connect(port).await;
    for content_type in [
        "application/json",
        "application/grpc-web",
        "application/grpc-web+proto",
        "text/plain",
    ] {
        let mut sent = request("GetSession", framed(b""));
        sent.headers_mut()
            .insert("content-type", content_type.parse().unwrap());
        assert_eq!(
            raw.send(sent).await.0,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "{content_type}"
        );
    }
    let mut untyped = request("GetSession", framed(b""));
    untyped.headers_mut().remove("content-type");
    assert_eq!(raw.send(untyped).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    for content_type in ["application/grpc+proto", "Application/gRPC; charset=utf-8"] {
        let mut sent = request("GetSession", framed(b""));
        sent.headers_mut()
            .insert("content-type", content_type.parse().unwrap());
        assert_eq!(
            raw.status(sent).await.code(),
            Code::InvalidArgument,
            "{content_type}"
        );
    }
    let mut read = request("GetSession", Vec::new());
    *read.method_mut() = Method::GET;
    let (status, headers) = raw.send(read).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(headers["allow"], "POST");
}

#[tokio::test]
async fn a_message_that_never_ends_is_given_up_at_the_deadline() {
    let (port, _shutdown) = plain().await;
    let mut raw = Raw::connect(port).await;
    let never = futures_util::stream::pending::<Result<Frame<Bytes>, std::convert::Infallible>>();
    let sent =
        call("GetSession", &v1::GetSessionRequest::default(), 200).map(|_| StreamBody::new(never).boxed());
    let late = (Code::DeadlineExceeded, Some(ErrorReason::ErrDeadlineExceeded));
    assert_eq!(reported(&raw.status(sent).await), late);
}

#[tokio::test]
async fn a_caller_that_may_not_call_is_turned_away_before_its_message_is_there() {
    super::log::log();
    let callers = Callers::listed(parse(&entry(EDGE, &["*"])).unwrap());
    let (port, _shutdown) = start(AccessPolicy { tls: None, callers }, memory()).await;
    let mut raw = Raw::connect(port).await;
    let never = futures_util::stream::pending::<Result<Frame<Bytes>, std::convert::Infallible>>();
    let sent = request("GetSession", Vec::new()).map(|_| StreamBody::new(never).boxed());
    let unknown = (Code::Unauthenticated, Some(ErrorReason::ErrUnknownCaller));
    assert_eq!(reported(&raw.status(sent).await), unknown);
}

/// HTTP/2's frames as they travel (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

async fn read_frame(stream: &mut TcpStream) -> (u8, u8, u32, Vec<u8>) {
    let mut head = [0; 9];
    within(stream.read_exact(&mut head)).await.unwrap();
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; usize::try_from(length).unwrap()];
    within(stream.read_exact(&mut payload)).await.unwrap();
    let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    (head[3], head[4], id, payload)
}

#[tokio::test]
async fn the_stream_beyond_the_limit_of_a_connection_is_refused_and_may_be_sent_again() {
    const HEADERS: u8 = 1;
    const RST_STREAM: u8 = 3;
    const SETTINGS: u8 = 4;
    let (port, _shutdown) = plain().await;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    let (kind, _, _, settings) = read_frame(&mut stream).await;
    assert_eq!(kind, SETTINGS);
    let limit = settings
        .chunks(6)
        .find(|setting| setting[..2] == [0, 3])
        .map(|setting| u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]))
        .expect("SETTINGS_MAX_CONCURRENT_STREAMS");
    assert_eq!(limit, 1024);
    stream.write_all(&frame(SETTINGS, 1, 0, &[])).await.unwrap();
    // POST, http, path, authority, content type (RFC 7541, appendix A). Each message is still open.
    let path = b"/session.v1.SessionService/GetSession";
    let literal = |index: &[u8], value: &[u8]| [index, &[u8::try_from(value.len()).unwrap()], value].concat();
    let head = [
        vec![0x83, 0x86],
        literal(&[0x04], path),
        literal(&[0x01], b"127.0.0.1"),
        literal(&[0x0f, 0x10], b"application/grpc"),
    ]
    .concat();
    for number in 0..=limit {
        let opened = frame(HEADERS, 4, 2 * number + 1, &head);
        stream.write_all(&opened).await.unwrap();
    }
    let (id, code) = loop {
        let (kind, _, id, payload) = read_frame(&mut stream).await;
        if kind == RST_STREAM {
            break (id, payload);
        }
    };
    // REFUSED_STREAM: nothing was done (RFC 9113, section 8.7).
    assert_eq!((id, code), (2 * limit + 1, 7_u32.to_be_bytes().to_vec()));
}
