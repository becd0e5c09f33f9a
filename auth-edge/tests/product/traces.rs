//! The IDs that connect the records of one request at the edge and behind it.

use crate::gateway::Gateway;

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_gets_the_request_id_that_the_client_gets() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.stack.browser();
    let answer = browser
        .get_with("/public/a", &[("x-request-id", "mine"), ("x_request_id", "mine")])
        .await;
    let seen = gateway.upstream.requests().pop().unwrap();
    assert_eq!(seen.all("x-request-id"), [answer.header("x-request-id")]);
    assert_eq!(seen.all("x_request_id"), Vec::<String>::new());
    let again = browser.get("/public/a").await;
    assert_ne!(answer.header("x-request-id"), again.header("x-request-id"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_goes_on_or_begins_with_the_request_id() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.stack.browser();
    let sent = [("traceparent", TRACE), ("tracestate", "a=b")];
    browser.get_with("/public/a", &sent).await;
    let seen = gateway.upstream.requests().pop().unwrap();
    assert_eq!(seen.all("traceparent"), [TRACE]);
    assert_eq!(seen.all("tracestate"), ["a=b"]);
    for sent in [
        &[][..],
        &[("traceparent", "00-nonsense"), ("tracestate", "a=b")],
        &[("traceparent", TRACE), ("traceparent", TRACE)],
    ] {
        let answer = browser.get_with("/public/a", sent).await;
        let seen = gateway.upstream.requests().pop().unwrap();
        let begun = seen.all("traceparent");
        let fields: Vec<&str> = begun[0].split('-').collect();
        assert_eq!((begun.len(), fields.len()), (1, 4), "{begun:?}");
        assert_eq!(
            (fields[0], fields[1], fields[3]),
            ("00", answer.header("x-request-id"), "00")
        );
        assert!(fields[2].len() == 16 && fields[2] != "0".repeat(16), "{begun:?}");
        assert_eq!(seen.all("tracestate"), Vec::<String>::new());
    }
}
