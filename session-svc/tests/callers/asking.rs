//! Questions over one call: each is judged and timed as the call it stands for.

use std::convert::Infallible;

use futures_util::StreamExt as _;
use http::Request;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use prost::Message as _;
use serde_json::Value;
use session_proto::v1::session_service_client::SessionServiceClient;
use session_proto::v1::{self, ErrorReason};
use session_svc::callers::{Callers, Rpc};
use session_svc::start::AccessPolicy;
use tokio_util::sync::CancellationToken;
use tonic::Code;

use crate::audit::{by, world_of};
use crate::deadlines::{LATE, alice, get, on_redis, redis};
use crate::log::log;
use crate::questions::*;
use crate::raw::{Body, Raw, call as timed, framed, request, told};
use crate::reload::until_in;
use crate::support::*;

pub(crate) const NOBODY: &str = "00000000000000000000000000000000";

pub(crate) fn roll(id: &str) -> v1::RollSessionRequest {
    v1::RollSessionRequest {
        session_id: id.to_owned(),
        device: None,
    }
}

async fn created(client: &mut Client) -> String {
    let answer = within(client.create_session(alice())).await.unwrap();
    answer.into_inner().session_id
}

/// Asks for a session that is not there until the answer is this one.
async fn until_told(questions: &mut Questions, question: &v1::ReadSessionsRequest, expected: ErrorReason) {
    within(async {
        while why(questions.answer_to(question.clone()).await) != expected {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn each_question_is_judged_by_its_own_method() {
    let list = [
        entry(EDGE, &["*"]),
        entry(ORDERS, &["ReadSessions", "GetSession"]),
        entry("dns:asks.internal", &["ReadSessions"]),
    ]
    .concat();
    let world = world(Some(&list)).await;
    world
        .certificates
        .issue("ca", "asks", "subjectAltName=DNS:asks.internal");
    let id = created(&mut world.client("edge")).await;
    let not_allowed = ErrorReason::ErrCallerNotAllowed;
    let mut of_orders = Questions::open(&mut world.client("orders")).await;
    assert_eq!(why(of_orders.answer_to(of_roll(1, roll(&id))).await), not_allowed);
    let read = session(of_orders.answer_to(of_get(2, get(&id))).await);
    assert_eq!(read.subject, "alice");
    let mut of_edge = Questions::open(&mut world.client("edge")).await;
    session(of_edge.answer_to(of_roll(1, roll(&id))).await);
    let mut of_asks = Questions::open(&mut world.client("asks")).await;
    for question in [of_get(1, get(&id)), of_roll(2, roll(&id))] {
        assert_eq!(why(of_asks.answer_to(question).await), not_allowed);
    }
}

#[tokio::test]
async fn who_may_not_ask_is_refused_the_call() {
    let list = [entry(EDGE, &["*"]), entry(ORDERS, &["GetSession", "RollSession"])].concat();
    let world = world(Some(&list)).await;
    for (certificate, code, reason) in [
        ("orders", Code::PermissionDenied, ErrorReason::ErrCallerNotAllowed),
        ("client", Code::Unauthenticated, ErrorReason::ErrUnknownCaller),
    ] {
        let mut client = world.client(certificate);
        let status = within(call(&mut client, Rpc::ReadSessions)).await.unwrap_err();
        assert_eq!(told(&status), (code, Some(reason)), "{certificate}");
    }
}

#[tokio::test]
async fn a_changed_list_counts_from_the_next_question_on() {
    let listed = |rpcs: &[&str]| [entry(EDGE, &["*"]), entry(ORDERS, rpcs)].concat();
    let world = world(Some(&listed(&["ReadSessions", "GetSession"]))).await;
    let mut questions = Questions::open(&mut world.client("orders")).await;
    let (read, rolled) = (of_get(1, get(NOBODY)), of_roll(2, roll(NOBODY)));
    let missing = ErrorReason::ErrMissingSession;
    assert_eq!(why(questions.answer_to(read.clone()).await), missing);
    world.replace(
        "callers.toml",
        listed(&["ReadSessions", "RollSession"]).as_bytes(),
    );
    until_told(&mut questions, &read, ErrorReason::ErrCallerNotAllowed).await;
    assert_eq!(why(questions.answer_to(rolled.clone()).await), missing);
    world.replace("callers.toml", entry(EDGE, &["*"]).as_bytes());
    until_told(&mut questions, &rolled, ErrorReason::ErrUnknownCaller).await;
}

#[tokio::test]
async fn whom_a_new_authority_does_not_know_is_sent_away_and_others_go_on() {
    let world = world(None).await;
    world.certificates.authority("next");
    world
        .certificates
        .issue("next", "newcomer", "subjectAltName=DNS:new.internal");
    let both = [world.read("ca.pem"), world.read("next.pem")].concat();
    world.replace("clients.pem", &both);
    until_in(&world, "newcomer", "ca", true).await;
    let mut leaving = Questions::open(&mut world.client("orders")).await;
    let mut staying = Questions::open(&mut world.client("newcomer")).await;
    for questions in [&mut leaving, &mut staying] {
        let answer = questions.answer_to(of_get(1, get(NOBODY))).await;
        assert_eq!(why(answer), ErrorReason::ErrMissingSession);
    }
    world.replace("clients.pem", &world.read("next.pem"));
    leaving.is_sent_away().await;
    assert_eq!(leaving.next().await.unwrap(), None);
    let answer = staying.answer_to(of_get(2, get(NOBODY))).await;
    assert_eq!(why(answer), ErrorReason::ErrMissingSession);
}

#[tokio::test]
async fn what_a_caller_asked_before_its_authority_went_is_answered() {
    let (redis, store) = redis().await;
    let world = world_on(None, store).await;
    world.certificates.authority("next");
    let mut client = world.client("orders");
    let id = created(&mut client).await;
    let mut questions = Questions::open(&mut client).await;
    redis.signal("STOP");
    questions.ask(of_get(1, get(&id)));
    // Needs no store, and is taken after it.
    failure(questions.answer_to(unknown(2)).await);
    world.replace("clients.pem", &world.read("next.pem"));
    questions.is_sent_away().await;
    redis.signal("CONT");
    let taken = questions.answer().await;
    assert_eq!((taken.number, session(taken).subject.as_str()), (1, "alice"));
    assert_eq!(questions.next().await.unwrap(), None);
}

pub(crate) async fn plain() -> (u16, CancellationToken) {
    log();
    let callers = Callers::anyone();
    start(AccessPolicy { tls: None, callers }, memory()).await
}

pub(crate) async fn plain_client(port: u16) -> Client {
    let address = format!("http://127.0.0.1:{port}");
    SessionServiceClient::connect(address).await.unwrap()
}

/// A question for which its caller waits this long.
fn brief(question: v1::ReadSessionsRequest, timeout_ms: u32) -> v1::ReadSessionsRequest {
    v1::ReadSessionsRequest {
        timeout_ms,
        ..question
    }
}

#[tokio::test]
async fn a_question_is_given_up_when_its_own_time_is_over_and_the_call_goes_on() {
    let mut world = on_redis().await;
    let id = created(&mut world.client).await;
    let mut questions = Questions::open(&mut world.client).await;
    world.redis.signal("STOP");
    for question in [of_get(1, get(&id)), of_roll(2, roll(&id))] {
        let answer = questions.answer_to(brief(question, 150)).await;
        assert_eq!(why(answer), ErrorReason::ErrDeadlineExceeded);
    }
    world.redis.signal("CONT");
    let read = session(questions.answer_to(of_get(3, get(&id))).await);
    assert_eq!(read.subject, "alice");
}

#[tokio::test]
async fn a_question_whose_caller_hangs_up_is_given_up_and_recorded() {
    let mut world = on_redis().await;
    let made = world.client.create_session(alice()).await.unwrap().into_inner();
    let (id, handle) = (made.session_id, made.session.unwrap().handle);
    let mut questions = Questions::open(&mut world.client).await;
    world.redis.signal("STOP");
    questions.ask(of_get(1, get(&id)));
    // Needs no store, and is taken after it.
    failure(questions.answer_to(unknown(2)).await);
    drop(questions);
    let about_it = |record: &Value| {
        let method = Rpc::GetSession.full_name();
        record["message"] == "call" && record["session"] == handle.as_str() && record["rpc.method"] == method
    };
    let records = log().wait_for(1, about_it).await;
    world.redis.signal("CONT");
    assert_eq!(records[0]["rpc.response.status_code"], "CANCELLED");
}

#[tokio::test]
async fn what_is_asked_is_done_also_while_the_caller_does_not_read_its_answers() {
    // More than a stream carries unread.
    const ASKED: u64 = 300;
    let (_world, mut client) = world_of("unread", &["CreateSession", "ReadSessions", "GetSession"]).await;
    let user = serde_json::json!({"sub": "alice", "about": "a".repeat(2_000)});
    let request = v1::CreateSessionRequest {
        user: user.to_string(),
        ..alice()
    };
    let id = within(client.create_session(request))
        .await
        .unwrap()
        .into_inner()
        .session_id;
    let mut questions = Questions::open(&mut client).await;
    for number in 1..=ASKED {
        questions.ask(of_get(number, get(&id)));
    }
    questions.end();
    log().wait_for(301, by("unread")).await;
    for _ in 0..ASKED {
        session(questions.answer().await);
    }
    assert_eq!(questions.next().await.unwrap(), None);
}

/// A call with these questions and a deadline, whose caller says nothing more and does not hang up.
fn open_call(questions: &[v1::ReadSessionsRequest], timeout_ms: u64) -> Request<Body> {
    let bytes: Vec<u8> = questions
        .iter()
        .flat_map(|question| framed(&question.encode_to_vec()))
        .collect();
    let sent = futures_util::stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(bytes)))]);
    let never = futures_util::stream::pending();
    let opened = timed("ReadSessions", &v1::ReadSessionsRequest::default(), timeout_ms);
    opened.map(|_| BodyExt::boxed(StreamBody::new(sent.chain(never))))
}

#[tokio::test]
async fn a_call_for_questions_ends_when_its_caller_s_time_is_over() {
    let mut world = on_redis().await;
    let id = created(&mut world.client).await;
    let idle = world.raw.status(open_call(&[], 200)).await;
    assert_eq!(told(&idle), LATE, "nothing was asked");
    let asked = world.raw.status(open_call(&[of_get(1, get(&id))], 500)).await;
    assert_eq!(told(&asked), LATE, "what was asked is answered");
    world.redis.signal("STOP");
    let open = world.raw.status(open_call(&[of_get(1, get(&id))], 200)).await;
    assert_eq!(told(&open), LATE, "a question is open");
    world.redis.signal("CONT");
}

#[tokio::test]
async fn a_call_without_further_questions_ends_when_its_caller_s_time_is_over() {
    let mut world = on_redis().await;
    let id = created(&mut world.client).await;
    world.redis.signal("STOP");
    let status = world
        .raw
        .status(timed("ReadSessions", &of_get(1, get(&id)), 200))
        .await;
    world.redis.signal("CONT");
    assert_eq!(told(&status), LATE);
}

#[tokio::test]
async fn what_is_no_question_ends_the_call_with_its_reason() {
    let (port, _shutdown) = plain().await;
    let mut raw = Raw::connect(port).await;
    let malformed = (Code::InvalidArgument, Some(ErrorReason::ErrMalformedRequest));
    let too_large = (Code::ResourceExhausted, Some(ErrorReason::ErrRequestTooLarge));
    let good = framed(&of_get(1, get(NOBODY)).encode_to_vec());
    let half = good[..good.len() - 1].to_vec();
    let compressed = [&[1], &good[1..]].concat();
    for (name, sent, expected) in [
        ("no protobuf", framed(&[0xff; 16]), malformed),
        ("a question of another type", framed(&[0x10, 1]), malformed),
        ("half a question", half.clone(), malformed),
        (
            "half a question behind a good one",
            [&good[..], &half].concat(),
            malformed,
        ),
        ("an unknown flag", vec![9, 0, 0, 0, 0], malformed),
        ("compressed without saying how", compressed, malformed),
        ("a large question", framed(&vec![0; 300_000]), too_large),
    ] {
        let status = raw.status(request("ReadSessions", sent)).await;
        assert_eq!(told(&status), expected, "{name}: {status:?}");
    }
    // The connection has survived all of it.
    let status = raw.status(request("ReadSessions", good)).await;
    assert_eq!(told(&status), (Code::Ok, None));
}
