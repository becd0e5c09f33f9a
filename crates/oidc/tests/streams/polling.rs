//! Events that are fetched.

use oidc::{
    MAX_SECURITY_EVENT_BYTES, PollRequest, RefusedEvent, SecurityEventErrorCode, TransmitterCredentials,
};
use scripted_provider::{Answer, ScriptedTransmitter, TransmitterEndpoint as Endpoint};
use serde_json::{Value, json};
use url::Url;

use crate::support::{NOW, OURS, bench, bench_with, reason};

const AT_ONCE: PollRequest<'static> = PollRequest {
    max_events: 10,
    return_immediately: true,
    ack: &[],
    set_errs: &[],
};

#[tokio::test]
async fn events_are_fetched_verified_and_acknowledged() {
    let bench = bench();
    let (_, url) = bench.polled().await;
    let none = bench
        .transmitter
        .poll(&url, &AT_ONCE, NOW)
        .await
        .expect("an answer");
    assert!(none.sets.is_empty() && !none.more_available);
    for jti in ["a", "b", "c"] {
        let raw = bench.scripted.event(&json!({ "jti": jti }));
        bench.scripted.offer(jti, raw);
    }
    let two = PollRequest {
        max_events: 2,
        ..AT_ONCE
    };
    let answer = bench.transmitter.poll(&url, &two, NOW).await.expect("an answer");
    assert!(answer.more_available);
    let jtis: Vec<&str> = answer.sets.iter().map(|event| event.jti.as_str()).collect();
    assert_eq!(jtis, ["a", "b"]);
    let raw = answer.sets[0].raw.as_deref().expect("a token");
    let token = bench
        .transmitter
        .verify(raw, &[OURS.to_owned()], NOW)
        .await
        .expect("it holds");
    assert_eq!(token.jti, "a");
    let told = PollRequest {
        ack: &["a".to_owned()],
        set_errs: &[RefusedEvent {
            jti: "b".to_owned(),
            code: SecurityEventErrorCode::InvalidKey,
            description: "the signature does not verify".to_owned(),
        }],
        ..AT_ONCE
    };
    let answer = bench.transmitter.poll(&url, &told, NOW).await.expect("an answer");
    assert_eq!(answer.sets.len(), 1);
    let request = bench.scripted.last_request(Endpoint::Poll);
    assert_eq!(request.header("content-language"), Some("en"));
    let error = json!({ "err": "invalid_key", "description": "the signature does not verify" });
    let body = json!({ "maxEvents": 10, "returnImmediately": true, "ack": ["a"], "setErrs": { "b": error } });
    assert_eq!(request.json(), body);
    assert_eq!(bench.scripted.acknowledged(), ["a"]);
    assert_eq!(bench.scripted.offered(), ["c"]);
}

/// RFC 8936 section 2.4.2.
#[tokio::test]
async fn who_only_tells_never_waits() {
    let bench = bench();
    let (_, url) = bench.polled().await;
    let tells = PollRequest {
        ack: &["a".to_owned()],
        ..PollRequest::default()
    };
    assert!(!tells.return_immediately);
    for status in [200, 202, 204] {
        bench.answer_once(Endpoint::Poll, Answer::status(status));
        bench.transmitter.poll(&url, &tells, NOW).await.expect("told");
    }
    let body = bench.scripted.last_request(Endpoint::Poll).json();
    assert_eq!(
        body,
        json!({ "maxEvents": 0, "returnImmediately": true, "ack": ["a"] })
    );
}

#[tokio::test]
async fn a_poll_waits_for_what_comes() {
    let bench = bench();
    let (_, url) = bench.polled().await;
    let waits = PollRequest {
        return_immediately: false,
        ..AT_ONCE
    };
    let poll = bench.transmitter.poll(&url, &waits, NOW);
    let comes = async {
        bench.scripted.wait_for_calls(Endpoint::Poll, 1).await;
        bench.scripted.offer("a", "raw");
    };
    let (answer, ()) = tokio::join!(poll, comes);
    assert_eq!(answer.expect("an answer").sets.len(), 1);
    bench.answer_once(Endpoint::Poll, Answer::Hang);
    let hangs = bench
        .transmitter
        .poll(&url, &AT_ONCE, NOW)
        .await
        .expect_err("nothing in time");
    assert!(hangs.is_timeout(), "{hangs:?}");
}

#[tokio::test]
async fn no_more_events_are_read_than_were_asked_for_and_none_that_is_too_long() {
    let bench = bench();
    let (_, url) = bench.polled().await;
    let sets: serde_json::Map<String, Value> = (0..5).map(|n| (n.to_string(), json!("raw"))).collect();
    bench.scripted.script(|script| {
        script.poll.insert("sets".to_owned(), Value::Object(sets));
    });
    let two = PollRequest {
        max_events: 2,
        ..AT_ONCE
    };
    let answer = bench.transmitter.poll(&url, &two, NOW).await.expect("an answer");
    assert_eq!(answer.sets.len(), 2);
    assert!(answer.more_available, "the others come again");

    let long = "x".repeat(MAX_SECURITY_EVENT_BYTES + 1);
    let name = "y".repeat(513);
    let odd = json!({ "a": long, "b": &long[1..], "c": 7, "d": { "a": "b" }, (name.clone()): "raw" });
    bench.scripted.script(|script| {
        script.poll.insert("sets".to_owned(), odd);
    });
    let answer = bench
        .transmitter
        .poll(&url, &AT_ONCE, NOW)
        .await
        .expect("an answer");
    let read: Vec<(&str, bool)> = answer
        .sets
        .iter()
        .map(|event| (event.jti.as_str(), event.raw.is_some()))
        .collect();
    assert_eq!(
        read,
        [
            ("a", false),
            ("b", true),
            ("c", false),
            ("d", false),
            (name.as_str(), false)
        ]
    );
    assert!(!format!("{answer:?}").contains("xxx"), "tokens are shown nowhere");

    let endless = "x".repeat(3 * MAX_SECURITY_EVENT_BYTES + 10_000);
    bench.scripted.script(|script| {
        script.poll.insert("sets".to_owned(), json!({ "a": endless }));
    });
    let refused = bench
        .transmitter
        .poll(&url, &two, NOW)
        .await
        .expect_err("too large");
    assert!(refused.is_too_large(), "{refused:?}");
}

#[tokio::test]
async fn an_answer_without_its_members_is_none() {
    let bench = bench();
    let (_, url) = bench.polled().await;
    for body in [
        "",
        "{}",
        "[]",
        r#"{"sets":[]}"#,
        r#"{"sets":null}"#,
        r#"{"sets":{},"moreAvailable":"yes"}"#,
        r#"{"sets":{"a":"1","a":"2"}}"#,
        r#"{"sets":{}} x"#,
    ] {
        bench.json_once(Endpoint::Poll, 200, body);
        let answer = bench.transmitter.poll(&url, &AT_ONCE, NOW).await;
        assert_eq!(reason(answer), "unanswered", "{body}");
    }
    bench.json_once(
        Endpoint::Poll,
        200,
        r#"{"sets":{},"moreAvailable":null,"further":[]}"#,
    );
    assert!(bench.transmitter.poll(&url, &AT_ONCE, NOW).await.is_ok());
    bench.json_once(Endpoint::Poll, 400, &"x".repeat(1 << 20));
    assert_eq!(
        reason(bench.transmitter.poll(&url, &AT_ONCE, NOW).await),
        "rejected"
    );
}

#[tokio::test]
async fn nobody_polls_where_others_can_listen() {
    let bench = bench();
    let url = Url::parse("http://tr.example.com/poll").expect("a URL");
    let refused = bench.transmitter.poll(&url, &AT_ONCE, NOW).await;
    assert_eq!(reason(refused), "insecure_poll_endpoint");
    let unknown =
        bench_with(|_| TransmitterCredentials::bearer(ScriptedTransmitter::TOKEN).expect("a token"));
    let url = Url::parse(&unknown.scripted.url(Endpoint::Poll)).expect("a URL");
    assert_eq!(
        reason(unknown.transmitter.poll(&url, &AT_ONCE, NOW).await),
        "no_such_stream"
    );
}
