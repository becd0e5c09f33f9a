//! The span of a call: which trace it continues, and its attributes.

use std::sync::{Mutex, OnceLock};

use http::Request;
use opentelemetry::trace::{SpanKind, Status, TraceId, TracerProvider as _};
use opentelemetry::{Value, global};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use session_proto::v1;
use session_svc::callers::Callers;
use session_svc::start::AccessPolicy;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use super::log::log;
use super::raw::{Body, Raw, call};
use super::support::*;
use crate::support::{Client, alice, world};

/// The spans that ended in this process.
static SPANS: Mutex<Vec<SpanData>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Kept;

impl SpanExporter for Kept {
    async fn export(&self, spans: Vec<SpanData>) -> OTelSdkResult {
        SPANS.lock().unwrap().extend(spans);
        Ok(())
    }
}

/// Keeps every span that ends.
pub(crate) fn layer<S>() -> impl Layer<S>
where
    S: tracing::Subscriber + for<'span> LookupSpan<'span>,
{
    static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();
    global::set_text_map_propagator(TraceContextPropagator::new());
    let provider = PROVIDER.get_or_init(|| SdkTracerProvider::builder().with_simple_exporter(Kept).build());
    tracing_opentelemetry::layer().with_tracer(provider.tracer("test"))
}

pub(crate) async fn wait_for(matches: impl Fn(&SpanData) -> bool) -> SpanData {
    within(async {
        loop {
            let found = SPANS.lock().unwrap().iter().find(|span| matches(span)).cloned();
            match found {
                Some(span) => return span,
                None => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            }
        }
    })
    .await
}

/// Whether a span of this trace has ended.
pub(crate) fn is_known(trace: TraceId) -> bool {
    let spans = SPANS.lock().unwrap();
    spans.iter().any(|span| span.span_context.trace_id() == trace)
}

pub(crate) fn attribute(span: &SpanData, key: &str) -> String {
    let found = span
        .attributes
        .iter()
        .find(|attribute| attribute.key.as_str() == key);
    found.map_or_else(String::new, |attribute| match &attribute.value {
        Value::String(text) => text.as_str().to_owned(),
        other => panic!("{key} is {other:?}"),
    })
}

fn sent(method: &str, traceparent: &str) -> Request<Body> {
    let by = Some(v1::get_session_request::By::Handle("0".repeat(32)));
    let mut request = call(method, &v1::GetSessionRequest { by }, 20_000);
    request
        .headers_mut()
        .insert("traceparent", traceparent.parse().unwrap());
    request
}

#[tokio::test]
async fn a_call_continues_its_caller_s_trace_and_says_what_became_of_it() {
    log();
    let callers = Callers::anyone();
    let (port, _shutdown) = start(AccessPolicy { tls: None, callers }, memory()).await;
    let mut raw = Raw::connect(port).await;
    for (method, trace, called, name, code, reason, status) in [
        (
            "GetSession",
            "4bf92f3577b34da6a3ce929d0e0e4701",
            "session.v1.SessionService/GetSession",
            "session.v1.SessionService/GetSession",
            "NOT_FOUND",
            "ERR_MISSING_SESSION",
            Status::Unset,
        ),
        (
            "Fly",
            "4bf92f3577b34da6a3ce929d0e0e4702",
            "_OTHER",
            "grpc",
            "UNIMPLEMENTED",
            "ERR_UNIMPLEMENTED",
            Status::error(""),
        ),
    ] {
        raw.status(sent(method, &format!("00-{trace}-00f067aa0ba902b7-01")))
            .await;
        let id = TraceId::from_hex(trace).unwrap();
        let span = wait_for(|span| span.span_context.trace_id() == id && span.name == name).await;
        assert_eq!(span.parent_span_id.to_string(), "00f067aa0ba902b7");
        assert_eq!((&span.span_kind, &span.status), (&SpanKind::Server, &status));
        for (key, expected) in [
            ("rpc.system.name", "grpc"),
            ("rpc.method", called),
            ("rpc.response.status_code", code),
            ("error.type", reason),
        ] {
            assert_eq!(attribute(&span, key), expected, "{method} {key}");
        }
        let records = log().wait_for(1, |record| record["trace_id"] == trace).await;
        assert_eq!(records[0]["rpc.method"], called);
    }
}

#[tokio::test]
async fn a_malformed_trace_context_is_passed_over() {
    log();
    let callers = Callers::anyone();
    let (port, _shutdown) = start(AccessPolicy { tls: None, callers }, memory()).await;
    let mut raw = Raw::connect(port).await;
    let trace = "4BF92F3577B34DA6A3CE929D0E0E4703";
    raw.status(sent("GetSession", &format!("00-{trace}-00f067aa0ba902b7-01")))
        .await;
    raw.status(sent(
        "GetSession",
        "00-4bf92f3577b34da6a3ce929d0e0e4704-00f067aa0ba902b7-01",
    ))
    .await;
    // The second trace is reported after the first.
    let second = TraceId::from_hex("4bf92f3577b34da6a3ce929d0e0e4704").unwrap();
    wait_for(|span| span.span_context.trace_id() == second).await;
    let first = TraceId::from_hex(&trace.to_lowercase()).unwrap();
    assert!(!is_known(first));
}

async fn refreshed(mut client: Client, session_id: String, trace: &str) {
    let mut request = tonic::Request::new(v1::GetAccessTokenRequest {
        session_id,
        force_refresh: true,
        ..v1::GetAccessTokenRequest::default()
    });
    let parent = format!("00-{trace}-00f067aa0ba902b7-01").parse().unwrap();
    request.metadata_mut().insert("traceparent", parent);
    client.get_access_token(request).await.unwrap();
}

#[tokio::test]
async fn who_waits_for_a_refresh_of_somebody_else_is_linked_to_it() {
    log();
    let mut world = world().await;
    let id = world.create(alice()).await.session_id;
    world.provider.open(false);
    let (first, second) = (
        "4bf92f3577b34da6a3ce929d0e0e4711",
        "4bf92f3577b34da6a3ce929d0e0e4712",
    );
    let leads = tokio::spawn(refreshed(world.one.clone(), id.clone(), first));
    world.provider.wait_for_grants(1).await;
    let waits = tokio::spawn(refreshed(world.one.clone(), id, second));
    // Later calls on the same connection are answered while this call waits.
    for _ in 0..3 {
        let nobody = v1::get_session_request::By::Handle("0".repeat(32));
        let by = Some(nobody);
        let _ = world.one.get_session(v1::GetSessionRequest { by }).await;
    }
    world.provider.open(true);
    leads.await.unwrap();
    waits.await.unwrap();
    assert_eq!(world.provider.grants(), 1);

    let of = |trace: &str, name: &'static str| {
        let id = TraceId::from_hex(trace).unwrap();
        wait_for(move |span| span.span_context.trace_id() == id && span.name == name)
    };
    let method = "session.v1.SessionService/GetAccessToken";
    let refresh = of(first, "refresh").await;
    assert_eq!(
        refresh.parent_span_id,
        of(first, method).await.span_context.span_id()
    );
    assert_eq!(attribute(&refresh, "outcome"), "refreshed");
    let waiting = of(second, method).await;
    let linked: Vec<_> = waiting
        .links
        .iter()
        .map(|link| link.span_context.span_id())
        .collect();
    assert_eq!(linked, [refresh.span_context.span_id()]);
}
