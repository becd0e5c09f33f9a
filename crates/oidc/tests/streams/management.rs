//! Streams: created, read, changed, deleted, verified.

use oidc::{ClientSecret, StreamChange, StreamDelivery, StreamStatus, TransmitterError, WantedDelivery};
use scripted_provider::{Answer, TransmitterEndpoint as Endpoint};
use serde_json::{Value, json};
use url::Url;

use crate::support::{Bench, NOW, OURS, REVOKED, bench, reason};

fn push() -> WantedDelivery {
    WantedDelivery::Push {
        endpoint_url: Url::parse("https://edge.example/api/auth/events").expect("a URL"),
        authorization_header: Some(ClientSecret::new("Bearer hunter2".to_owned())),
    }
}

#[tokio::test]
async fn a_stream_is_created_as_asked_for_and_read_again() {
    let bench = bench();
    let created = bench.create(&push()).await.expect("a stream");
    let request = bench.scripted.last_request(Endpoint::Streams);
    assert_eq!(request.method, "POST");
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("accept"), Some("application/json"));
    assert_eq!(
        request.header("authorization"),
        Some("Bearer token-of-the-receiver")
    );
    let body = json!({
        "events_requested": [REVOKED], "description": "sign-in",
        "delivery": {
            "method": "urn:ietf:rfc:8935", "endpoint_url": "https://edge.example/api/auth/events",
            "authorization_header": "Bearer hunter2",
        },
    });
    assert_eq!(request.json(), body);
    assert_eq!(created.audience, [OURS]);
    assert_eq!(created.events_delivered, [REVOKED]);
    assert_eq!(created.min_verification_interval_secs, Some(60));
    assert!(matches!(created.delivery, StreamDelivery::Push { .. }));
    assert!(!format!("{:?} {:?}", push(), created).contains("hunter2"));

    let id = created.stream_id.as_str();
    assert_eq!(bench.transmitter.stream(id, NOW).await.expect("read"), created);
    assert_eq!(
        bench.scripted.last_request(Endpoint::Streams).param("stream_id"),
        Some(id)
    );
    let (polled, _) = bench.polled().await;
    let document = bench.scripted.last_request(Endpoint::Streams).json();
    assert_eq!(document["delivery"], json!({ "method": "urn:ietf:rfc:8936" }));
    assert_eq!(
        bench.transmitter.streams(NOW).await.expect("all"),
        [created, polled]
    );
}

#[tokio::test]
async fn a_change_names_the_stream_and_what_changes_alone() {
    let bench = bench();
    let (stream, _) = bench.polled().await;
    let id = stream.stream_id.as_str();
    let events = [REVOKED.to_owned(), "urn:example:other".to_owned()];
    let change = StreamChange {
        events_requested: Some(&events),
        ..StreamChange::default()
    };
    let changed = bench
        .transmitter
        .update_stream(id, &change, NOW)
        .await
        .expect("changed");
    assert_eq!(changed.events_requested, events);
    let request = bench.scripted.last_request(Endpoint::Streams);
    assert_eq!(request.method, "PATCH");
    assert_eq!(
        request.json(),
        json!({ "stream_id": id, "events_requested": events })
    );
    bench.answer_once(Endpoint::Streams, Answer::status(202));
    assert_eq!(
        reason(bench.transmitter.update_stream(id, &change, NOW).await),
        "pending"
    );
    // The right answer, of another stream.
    let other = changed_id(&bench, "stream-elsewhere");
    bench.json_once(Endpoint::Streams, 200, &other.to_string());
    assert_eq!(
        reason(bench.transmitter.update_stream(id, &change, NOW).await),
        "other_stream"
    );
    bench.json_once(Endpoint::Streams, 200, &other.to_string());
    assert_eq!(reason(bench.transmitter.stream(id, NOW).await), "other_stream");
}

fn changed_id(bench: &Bench, id: &str) -> Value {
    let mut document = bench.scripted.streams().remove(0);
    document["stream_id"] = json!(id);
    document
}

#[tokio::test]
async fn the_status_is_read_and_set() {
    let bench = bench();
    let (stream, _) = bench.polled().await;
    let id = stream.stream_id.as_str();
    let told = bench.transmitter.stream_status(id, NOW).await.expect("a status");
    assert_eq!((told.status, told.reason), (StreamStatus::Enabled, None));
    let paused = StreamStatus::Paused;
    let told = bench
        .transmitter
        .set_stream_status(id, paused, Some("maintenance"), NOW)
        .await
        .expect("a status");
    assert_eq!(
        (told.status, told.reason.as_deref()),
        (paused, Some("maintenance"))
    );
    let body = bench.scripted.last_request(Endpoint::Status).json();
    assert_eq!(
        body,
        json!({ "stream_id": id, "status": "paused", "reason": "maintenance" })
    );
    let told = bench.transmitter.stream_status(id, NOW).await.expect("a status");
    assert_eq!(told.status, paused);
    for (patch, refused) in [
        (json!({ "stream_id": "other" }), "other_stream"),
        (json!({ "status": "running" }), "unanswered"),
        (json!({ "status": null }), "unanswered"),
    ] {
        let members = patch.as_object().cloned().expect("members");
        bench.scripted.script(|script| script.status = members);
        assert_eq!(
            reason(bench.transmitter.stream_status(id, NOW).await),
            refused,
            "{patch}"
        );
    }
}

#[tokio::test]
async fn a_verification_is_asked_for_with_its_state() {
    let bench = bench();
    let (stream, _) = bench.polled().await;
    let id = stream.stream_id.as_str();
    bench
        .transmitter
        .request_verification(id, "state-1", NOW)
        .await
        .expect("asked");
    let body = bench.scripted.last_request(Endpoint::Verification).json();
    assert_eq!(body, json!({ "stream_id": id, "state": "state-1" }));
    let unknown = bench
        .transmitter
        .request_verification("stream-9", "state", NOW)
        .await;
    assert_eq!(reason(unknown), "no_such_stream");
}

#[tokio::test]
async fn a_stream_is_deleted_once() {
    let bench = bench();
    let (stream, _) = bench.polled().await;
    let id = stream.stream_id.as_str();
    bench.transmitter.delete_stream(id, NOW).await.expect("deleted");
    let request = bench.scripted.last_request(Endpoint::Streams);
    assert_eq!(
        (request.method.as_str(), request.param("stream_id")),
        ("DELETE", Some(id))
    );
    assert_eq!(request.body, "");
    assert!(bench.scripted.streams().is_empty());
    assert_eq!(
        reason(bench.transmitter.delete_stream(id, NOW).await),
        "no_such_stream"
    );
}

/// SSF 1.0 sections 8.1.1.1 to 8.1.1.4: each answer is the transmitter's, or it is not used.
#[tokio::test]
async fn an_answer_of_another_issuer_is_never_used() {
    let bench = bench();
    let (stream, _) = bench.polled().await;
    let id = stream.stream_id.as_str();
    let slash = format!("{}/", bench.scripted.issuer());
    for iss in [json!("https://evil.example"), json!(slash), json!(null), json!(7)] {
        bench.scripted.script(|script| {
            script.stream.insert("iss".to_owned(), iss.clone());
        });
        let change = StreamChange::default();
        let (transmitter, poll) = (&bench.transmitter, WantedDelivery::Poll);
        assert_eq!(reason(bench.create(&poll).await), "issuer", "{iss}");
        assert_eq!(reason(transmitter.stream(id, NOW).await), "issuer", "{iss}");
        assert_eq!(reason(transmitter.streams(NOW).await), "issuer", "{iss}");
        let updated = transmitter.update_stream(id, &change, NOW).await;
        assert_eq!(reason(updated), "issuer", "{iss}");
    }
}

#[tokio::test]
async fn a_stream_for_somebody_else_or_delivered_in_another_way_is_deleted_again() {
    let bench = bench();
    bench
        .scripted
        .script(|script| script.audience = vec!["https://other.example".to_owned()]);
    let refused = bench.create(&push()).await.expect_err("not ours");
    let told = refused.to_string();
    assert!(told.contains("https://other.example"), "{told}");
    assert!(bench.scripted.streams().is_empty());
    bench
        .scripted
        .script(|script| script.audience = vec!["another".to_owned(), OURS.to_owned()]);
    assert!(bench.create(&push()).await.is_ok());

    let elsewhere = json!({ "method": "urn:ietf:rfc:8935", "endpoint_url": "https://edge.example/other" });
    for delivery in [elsewhere, json!({ "method": "urn:example" }), json!(null)] {
        bench.scripted.forget_streams();
        bench.scripted.script(|script| {
            script.stream.insert("delivery".to_owned(), delivery.clone());
        });
        assert_eq!(reason(bench.create(&push()).await), "delivery", "{delivery}");
        assert!(bench.scripted.streams().is_empty(), "{delivery}");
    }
}

#[tokio::test]
async fn an_address_to_poll_at_is_https_outside_loopback() {
    let bench = bench();
    for url in ["http://tr.example.com/poll", "ftp://127.0.0.1/poll", "not a URL"] {
        bench.scripted.script(|script| {
            let delivery = json!({ "method": "urn:ietf:rfc:8936", "endpoint_url": url });
            script.stream.insert("delivery".to_owned(), delivery);
        });
        let created = bench.create(&WantedDelivery::Poll).await;
        assert_eq!(reason(created), "delivery", "{url}");
        assert!(bench.scripted.streams().is_empty(), "{url}");
    }
}

#[tokio::test]
async fn a_configuration_that_lacks_what_is_needed_is_no_answer() {
    let bench = bench();
    for (name, value) in [
        ("stream_id", json!(null)),
        ("stream_id", json!("")),
        ("stream_id", json!(7)),
        ("stream_id", json!("x".repeat(513))),
        ("aud", json!(null)),
        ("aud", json!([])),
        ("aud", json!([7])),
        ("aud", json!("")),
    ] {
        bench.scripted.script(|script| {
            script.stream.clear();
            script.stream.insert(name.to_owned(), value.clone());
        });
        let created = bench.create(&WantedDelivery::Poll).await;
        assert_eq!(reason(created), "unanswered", "{name} {value}");
    }
    // What is told in quotes, or not at all, is no reason to refuse.
    bench.scripted.script(|script| {
        script.stream.clear();
        script.stream.insert("aud".to_owned(), json!(OURS));
        script
            .stream
            .insert("min_verification_interval".to_owned(), json!("30"));
        script.stream.insert("events_delivered".to_owned(), json!(null));
    });
    let (stream, _) = bench.polled().await;
    assert_eq!(stream.min_verification_interval_secs, Some(30));
    assert!(stream.events_delivered.is_empty());
}

#[tokio::test]
async fn each_status_is_an_error_of_its_own_and_its_body_is_not_looked_at() {
    let bench = bench();
    let endless = "x".repeat(3 << 20);
    for (status, told) in [
        (302, "unanswered"),
        (400, "rejected"),
        (401, "unauthorized"),
        (403, "forbidden"),
        (404, "no_such_stream"),
        (409, "stream_exists"),
        (429, "too_many_requests"),
        (500, "unanswered"),
        (503, "unanswered"),
    ] {
        bench.answer_once(
            Endpoint::Streams,
            Answer::Http {
                status,
                headers: vec![("location".to_owned(), bench.scripted.url(Endpoint::Jwks))],
                body: endless.clone().into_bytes(),
            },
        );
        let read = bench.transmitter.streams(NOW).await;
        assert_eq!(reason(read), told, "{status}");
    }
    assert_eq!(
        bench.scripted.calls(Endpoint::Jwks),
        0,
        "nothing follows a redirect"
    );
}

#[tokio::test]
async fn who_asks_too_often_is_told_how_long_to_wait() {
    let bench = bench();
    for (after, secs) in [
        (Some("90"), Some(90)),
        (Some("Fri, 15 Jan 2027 08:00:30 GMT"), Some(30)),
        (Some("soon"), None),
        (None, None),
    ] {
        let header = after.map(|after| ("retry-after".to_owned(), after.to_owned()));
        bench.answer_once(
            Endpoint::Verification,
            Answer::Http {
                status: 429,
                headers: header.into_iter().collect(),
                body: Vec::new(),
            },
        );
        let asked = bench
            .transmitter
            .request_verification("stream-1", "state", NOW)
            .await;
        let Err(TransmitterError::TooManyRequests { retry_after_secs }) = asked else {
            panic!("{asked:?}");
        };
        assert_eq!(retry_after_secs, secs, "{after:?}");
    }
}

#[tokio::test]
async fn an_answer_is_json_in_which_no_name_stands_twice_and_of_some_length() {
    let bench = bench();
    let plain = Answer::Http {
        status: 200,
        headers: vec![("content-type".to_owned(), "text/html".to_owned())],
        body: b"<html></html>".to_vec(),
    };
    bench.answer_once(Endpoint::Streams, plain);
    assert_eq!(reason(bench.transmitter.streams(NOW).await), "unanswered");
    let twice = r#"[{"stream_id":"a","stream_id":"b"}]"#;
    for body in ["", "{}", "[", twice, "[]]", &format!("[{}]", " ".repeat(1 << 20))] {
        bench.json_once(Endpoint::Streams, 200, body);
        let short = &body[..body.len().min(40)];
        assert_eq!(
            reason(bench.transmitter.streams(NOW).await),
            "unanswered",
            "{short}"
        );
    }
    bench.json_once(Endpoint::Streams, 200, "[]");
    assert!(bench.transmitter.streams(NOW).await.expect("none").is_empty());
}

#[tokio::test]
async fn what_a_transmitter_does_not_offer_is_told_by_name() {
    let bench = bench();
    bench.scripted.script(|script| {
        for (name, value) in [
            ("status_endpoint", json!(null)),
            ("verification_endpoint", json!("http://tr.example.com/verify")),
        ] {
            script.metadata.insert(name.to_owned(), value);
        }
    });
    let status = bench
        .transmitter
        .stream_status("a", NOW)
        .await
        .expect_err("not offered");
    assert!(status.to_string().contains("status_endpoint"), "{status}");
    let asked = bench.transmitter.request_verification("a", "state", NOW).await;
    assert_eq!(reason(asked), "not_offered");
    bench.scripted.stop();
    let created = self::bench();
    created.scripted.stop();
    assert_eq!(reason(created.create(&push()).await), "configuration");
}
