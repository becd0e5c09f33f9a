//! Timestamps and durations of every request: errors name each value outside protobuf's range.

use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint};
use prost_types::{Duration, FileDescriptorSet, Timestamp};
use session_proto::error::metadata_of;
use session_proto::timestamp::LAST_SECOND;
use session_proto::v1::session_service_client::SessionServiceClient;
use session_proto::v1::{self, ErrorReason};
use session_svc::callers::Callers;
use session_svc::start::AccessPolicy;
use tonic::Code;

use super::raw::{Raw, framed, reported, request};
use super::support::*;

const TIMESTAMP: &str = ".google.protobuf.Timestamp";
const DURATION: &str = ".google.protobuf.Duration";

const ISSUER: &str = "https://issuer.example";
const UUID: &str = "3b241101-e2bb-4255-8caf-4136c566a962";

/// Timestamp and Duration fields of a request: numbers from the outermost, name, type.
fn time_fields(
    all: &FileDescriptorSet,
    message: &str,
    outer: &[u32],
    name: &str,
) -> Vec<(Vec<u32>, String, String)> {
    let mut messages = all.file.iter().flat_map(|file| {
        file.message_type
            .iter()
            .map(move |message| (file.package(), message))
    });
    let Some((_, found)) =
        messages.find(|(package, found)| format!(".{package}.{}", found.name()) == message)
    else {
        return Vec::new();
    };
    let mut fields = Vec::new();
    for field in &found.field {
        let numbers = [outer, &[field.number().cast_unsigned()]].concat();
        let name = [name, field.name()].join(".").trim_start_matches('.').to_owned();
        match field.type_name() {
            "" => {}
            TIMESTAMP | DURATION => fields.push((numbers, name, field.type_name().to_owned())),
            inner => fields.extend(time_fields(all, inner, &numbers, &name)),
        }
    }
    fields
}

/// A message as the field with these numbers.
fn nested(numbers: &[u32], message: Vec<u8>) -> Vec<u8> {
    numbers.iter().rev().fold(message, |inner, number| {
        let mut outer = Vec::new();
        encode_key(*number, WireType::LengthDelimited, &mut outer);
        encode_varint(inner.len() as u64, &mut outer);
        [outer, inner].concat()
    })
}

/// A request of this method in which only times can be invalid.
fn sound(method: &str) -> Vec<u8> {
    match method {
        "BeginSignIn" => v1::BeginSignInRequest {
            request_id: UUID.to_owned(),
            holder: UUID.to_owned(),
            ..Default::default()
        }
        .encode_to_vec(),
        "CreateSession" => new_session().encode_to_vec(),
        "EndSessions" => v1::EndSessionsRequest {
            issuer: ISSUER.to_owned(),
            subject: "alice".to_owned(),
            ..Default::default()
        }
        .encode_to_vec(),
        "RotateCookie" => v1::RotateCookieRequest {
            session_id: "0".repeat(32),
            ..Default::default()
        }
        .encode_to_vec(),
        _ => Vec::new(),
    }
}

fn new_session() -> v1::CreateSessionRequest {
    v1::CreateSessionRequest {
        issuer: ISSUER.to_owned(),
        user: r#"{"sub":"alice"}"#.to_owned(),
        ..Default::default()
    }
}

async fn plain() -> (u16, tokio_util::sync::DropGuard) {
    let callers = Callers::anyone();
    let (port, stop) = start(AccessPolicy { tls: None, callers }, memory()).await;
    (port, stop.drop_guard())
}

#[tokio::test]
async fn every_time_of_every_request_is_refused_outside_the_range_of_protobuf() {
    let (port, _stop) = plain().await;
    let mut raw = Raw::connect(port).await;
    let all = FileDescriptorSet::decode(session_proto::DESCRIPTORS).unwrap();
    let services = all.file.iter().flat_map(|file| &file.service);
    let methods = services
        .filter(|service| service.name() == "SessionService")
        .flat_map(|service| &service.method);
    let mut seen = Vec::new();
    for method in methods {
        for (numbers, field, kind) in time_fields(&all, method.input_type(), &[], "") {
            let ends: &[(i64, i32)] = match kind.as_str() {
                TIMESTAMP => &[(LAST_SECOND + 1, 0), (-62_135_596_801, 0)],
                _ => &[(315_576_000_001, 0), (-315_576_000_001, 0), (-1, 0), (0, -1)],
            };
            let of_both = [
                (i64::MAX, 0),
                (i64::MIN, 0),
                (1, -1),
                (1, 1_000_000_000),
                (1, i32::MAX),
            ];
            for (seconds, nanos) in ends.iter().copied().chain(of_both) {
                // Both types have the same fields.
                let time = nested(&numbers, Timestamp { seconds, nanos }.encode_to_vec());
                let sent = framed(&[sound(method.name()), time].concat());
                let status = raw.status(request(method.name(), sent)).await;
                let what = format!("{}: {field} {seconds} s {nanos} ns: {status:?}", method.name());
                let expected = (Code::InvalidArgument, Some(ErrorReason::ErrInvalidArgument));
                assert_eq!(reported(&status), expected, "{what}");
                assert_eq!(metadata_of(&status).get("field"), Some(&field), "{what}");
            }
            seen.push(field);
        }
    }
    for field in [
        "valid_for",
        "tokens.expires_at",
        "device.at",
        "not_after",
        "once_until",
        "told_ago",
        "grace",
    ] {
        assert!(
            seen.iter().any(|seen| seen == field),
            "{field} was not tried: {seen:?}"
        );
    }
}

#[tokio::test]
async fn the_last_instant_of_protobuf_is_accepted_and_listed() {
    let (port, _stop) = plain().await;
    let mut client = SessionServiceClient::connect(format!("http://127.0.0.1:{port}"))
        .await
        .unwrap();
    let last = Timestamp {
        seconds: LAST_SECOND,
        nanos: 999_999_999,
    };
    let tokens = v1::TokenSet {
        access_token: "token".to_owned(),
        expires_at: Some(last),
        ..Default::default()
    };
    let new = v1::CreateSessionRequest {
        tokens: Some(tokens),
        ..new_session()
    };
    client.create_session(new).await.unwrap();
    let begin = v1::BeginSignInRequest {
        request_id: UUID.to_owned(),
        holder: UUID.to_owned(),
        valid_for: Some(Duration {
            seconds: 315_576_000_000,
            nanos: 0,
        }),
        ..Default::default()
    };
    client.begin_sign_in(begin).await.unwrap();
    let list = v1::ListSessionsRequest {
        issuer: ISSUER.to_owned(),
        subject: "alice".to_owned(),
        ..Default::default()
    };
    let listed = client.list_sessions(list).await.unwrap().into_inner().sessions;
    assert_eq!(
        listed[0].access_token_expires_at.map(|at| at.seconds),
        Some(LAST_SECOND)
    );
}
