//! Questions over one call: what is recorded, measured and traced of each.

use opentelemetry::trace::TraceId;
use session_proto::v1::{self, ErrorReason};
use session_svc::callers::Rpc;

use super::asking::{NOBODY, plain, plain_client, roll};
use super::audit::{self, by, world_of};
use super::deadlines::get;
use super::log::log;
use super::support::*;
use super::traces;
use crate::questions::*;

/// How many calls of a method with this outcome were measured.
fn measured(world: &World, method: &str, code: &str) -> u64 {
    let families = world.metrics.gather();
    let metric = families
        .iter()
        .filter(|family| family.name() == "rpc_server_call_duration_seconds")
        .flat_map(|family| family.get_metric())
        .find(|metric| {
            let has = |value: &str| metric.get_label().iter().any(|label| label.value() == value);
            has(method) && has(code)
        });
    metric.map_or(0, |metric| metric.get_histogram().get_sample_count())
}

#[tokio::test]
async fn every_question_is_recorded_once_and_measured_as_the_call_it_stands_for() {
    let (world, mut client) = world_of("asked", &["CreateSession", "ReadSessions", "GetSession"]).await;
    let created = client.create_session(audit::alice()).await.unwrap().into_inner();
    let (id, handle) = (created.session_id, created.session.unwrap().handle);
    let mut questions = Questions::open(&mut client).await;
    session(questions.answer_to(of_get(1, get(&id))).await);
    session(questions.answer_to(of_get(2, get(&id))).await);
    for question in [
        of_get(3, get(NOBODY)),
        of_get(4, get("no id")),
        of_roll(5, roll(&id)),
        unknown(6),
    ] {
        failure(questions.answer_to(question).await);
    }
    let records = log().wait_for(7, by("asked")).await;
    let told: Vec<_> = records
        .iter()
        .map(|record| {
            let text = |name: &str| record[name].as_str().unwrap_or_default();
            assert_eq!(record["network.peer.address"], "127.0.0.1", "{record}");
            assert!(
                record["network.peer.port"].is_u64() && record["duration_us"].is_u64(),
                "{record}"
            );
            (
                text("target"),
                text("rpc.method"),
                text("rpc.response.status_code"),
                text("error.type"),
                text("session") == handle,
            )
        })
        .collect();
    let (read, roll) = (Rpc::GetSession.full_name(), Rpc::RollSession.full_name());
    assert_eq!(
        told,
        [
            ("audit", Rpc::CreateSession.full_name(), "OK", "", true),
            ("audit::read", read, "OK", "", true),
            ("audit::read", read, "OK", "", true),
            ("audit::read", read, "NOT_FOUND", "ERR_MISSING_SESSION", false),
            (
                "audit::read",
                read,
                "INVALID_ARGUMENT",
                "ERR_INVALID_ARGUMENT",
                false
            ),
            (
                "audit",
                roll,
                "PERMISSION_DENIED",
                "ERR_CALLER_NOT_ALLOWED",
                false
            ),
            ("audit", "_OTHER", "UNIMPLEMENTED", "ERR_UNIMPLEMENTED", false),
        ]
    );
    for (method, code, count) in [
        (Rpc::GetSession.full_name(), "OK", 2),
        (Rpc::GetSession.full_name(), "NOT_FOUND", 1),
        (Rpc::GetSession.full_name(), "INVALID_ARGUMENT", 1),
        (Rpc::RollSession.full_name(), "PERMISSION_DENIED", 1),
        (Rpc::ReadSessions.full_name(), "OK", 1),
        ("_OTHER", "UNIMPLEMENTED", 1),
    ] {
        assert_eq!(measured(&world, method, code), count, "{method} {code}");
    }
    assert!(!log().text().contains(&id), "the session's ID is in the log");
}

#[tokio::test]
async fn a_question_continues_its_caller_s_trace() {
    let (port, _shutdown) = plain().await;
    let mut questions = Questions::open(&mut plain_client(port).await).await;
    let traces = [
        ("4bf92f3577b34da6a3ce929d0e0e4711", Rpc::GetSession),
        ("4bf92f3577b34da6a3ce929d0e0e4712", Rpc::RollSession),
    ];
    for (trace, rpc) in traces {
        let question = match rpc {
            Rpc::RollSession => of_roll(1, roll(NOBODY)),
            _ => of_get(1, get(NOBODY)),
        };
        questions.ask(v1::ReadSessionsRequest {
            traceparent: format!("00-{trace}-00f067aa0ba902b7-01"),
            tracestate: "vendor=told".to_owned(),
            ..question
        });
    }
    for _ in traces {
        failure(questions.answer().await);
    }
    for (trace, rpc) in traces {
        let id = TraceId::from_hex(trace).unwrap();
        let name = rpc.full_name();
        let span = traces::wait_for(|span| span.span_context.trace_id() == id).await;
        assert_eq!(span.name, name);
        assert_eq!(span.parent_span_id.to_string(), "00f067aa0ba902b7");
        assert_eq!(span.span_context.trace_state().header(), "vendor=told");
        for (key, expected) in [
            ("rpc.method", name),
            ("rpc.response.status_code", "NOT_FOUND"),
            ("error.type", "ERR_MISSING_SESSION"),
        ] {
            assert_eq!(traces::attribute(&span, key), expected, "{rpc} {key}");
        }
        let records = log().wait_for(1, |record| record["trace_id"] == trace).await;
        assert_eq!((records.len(), &records[0]["rpc.method"]), (1, &name.into()));
    }
}

#[tokio::test]
async fn a_malformed_trace_of_a_question_is_passed_over() {
    let (port, _shutdown) = plain().await;
    let mut questions = Questions::open(&mut plain_client(port).await).await;
    let traced = |number, traceparent: &str| v1::ReadSessionsRequest {
        traceparent: traceparent.to_owned(),
        ..of_get(number, get(NOBODY))
    };
    let upper = "4BF92F3577B34DA6A3CE929D0E0E4713";
    let good = "4bf92f3577b34da6a3ce929d0e0e4714";
    for (number, traceparent) in [
        (1, format!("00-{upper}-00f067aa0ba902b7-01")),
        (2, "no trace".to_owned()),
        (3, "00-\n-\u{1f9ed}".to_owned()),
        (4, format!("00-{good}-00f067aa0ba902b7-01")),
    ] {
        let answer = questions.answer_to(traced(number, &traceparent)).await;
        assert_eq!(why(answer), ErrorReason::ErrMissingSession, "{traceparent:?}");
    }
    // The last is told after the others.
    let good = TraceId::from_hex(good).unwrap();
    traces::wait_for(|span| span.span_context.trace_id() == good).await;
    assert!(!traces::is_known(
        TraceId::from_hex(&upper.to_lowercase()).unwrap()
    ));
}
