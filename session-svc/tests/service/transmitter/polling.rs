//! A receiver that fetches its events (RFC 8936).

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::*;

fn now() -> Value {
    json!({"returnImmediately": true})
}

fn jtis(answer: &Answer) -> Vec<String> {
    let sets = answer.body["sets"].as_object().unwrap();
    sets.keys().cloned().collect()
}

#[tokio::test]
async fn what_is_fetched_stays_until_it_is_acknowledged() {
    let mut setting = Setting::new().await.polling("files", "");
    let store = Arc::new(setting.memory());
    let one = setting.replica(Arc::clone(&store) as _).await;
    // Behind the same address, whichever is asked.
    let two = setting.replica(store).await;
    for number in 0..5 {
        one.come_and_go(&format!("user-{number}")).await;
        setting.clock.advance_ms(1);
    }
    let first = one
        .poll("files", &json!({"maxEvents": 2, "returnImmediately": true}))
        .await;
    assert_eq!(first.status, 200);
    assert_eq!(first.body["moreAvailable"], true);
    let fetched = jtis(&first);
    assert_eq!(fetched.len(), 2);
    let mut subjects = Vec::new();
    for (jti, token) in first.body["sets"].as_object().unwrap() {
        let token = token.as_str().unwrap();
        assert_eq!(setting.verified("files", token).await.jti, *jti);
        subjects.push(subject_of(token));
    }
    subjects.sort();
    assert_eq!(subjects, ["user-0", "user-1"], "the oldest come first");
    // The acknowledgement was lost: the same again.
    let again = two
        .poll("files", &json!({"maxEvents": 2, "returnImmediately": true}))
        .await;
    assert_eq!(jtis(&again), fetched);
    let acknowledged = two
        .poll(
            "files",
            &json!({"ack": fetched, "maxEvents": 0, "returnImmediately": true}),
        )
        .await;
    assert_eq!(jtis(&acknowledged), Vec::<String>::new());
    assert_eq!(acknowledged.body["moreAvailable"], true);
    let rest = one.poll("files", &now()).await;
    let rest_jtis = jtis(&rest);
    assert_eq!(rest_jtis.len(), 3);
    assert_eq!(rest.body["moreAvailable"], false);
    assert!(rest_jtis.iter().all(|jti| !fetched.contains(jti)));
    // Refused ones are not given again, and a repeated acknowledgement changes nothing.
    let errors = json!({rest_jtis[0].clone(): {"err": "invalid_request", "description": "no"}});
    let last = one
        .poll(
            "files",
            &json!({"ack": fetched, "setErrs": errors, "returnImmediately": true}),
        )
        .await;
    assert_eq!(jtis(&last), rest_jtis[1..]);
    assert_eq!(one.counted("files", "refused"), 1);
    assert_eq!(two.counted("files", "delivered"), 2);
}

#[tokio::test]
async fn a_request_waits_for_an_event() {
    let mut setting = Setting::new().await.polling("files", "");
    let replica = setting.replica(Arc::new(setting.memory())).await;
    let id = replica.sign_in(json!({"sub": "alice"}), "").await;
    let path = format!("/ssf/poll/{}", replica.stream_of("files").await);
    let began = Instant::now();
    let body = json!({});
    let polled = replica.ask_as("files", "POST", &path, &body);
    let ended = async {
        tokio::task::yield_now().await;
        replica.sign_out(&id).await;
    };
    let (answer, ()) = tokio::join!(polled, ended);
    assert_eq!(jtis(&answer).len(), 1);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test]
async fn nobody_sees_or_acknowledges_what_is_anothers() {
    let mut setting = Setting::new().await.polling("files", "").polling("mail", "");
    let replica = setting.replica(Arc::new(setting.memory())).await;
    replica.come_and_go("alice").await;
    let (files, mail) = (replica.stream_of("files").await, replica.stream_of("mail").await);
    assert_ne!(files, mail);
    let path = format!("/ssf/poll/{files}");
    let answer = replica.ask_as("mail", "POST", &path, &now()).await;
    assert_eq!(answer.status, 404);
    for token in [None, Some("another-token-of-nobody")] {
        let answer = replica.ask("POST", &path, token, &now()).await;
        assert_eq!(answer.status, 401);
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
    let fetched = jtis(&replica.poll("files", &now()).await);
    let of_mail = jtis(&replica.poll("mail", &now()).await);
    assert_ne!(fetched, of_mail);
    replica
        .poll("mail", &json!({"ack": fetched, "returnImmediately": true}))
        .await;
    assert_eq!(jtis(&replica.poll("files", &now()).await), fetched);
    for wrong in [
        json!([]),
        json!({"maxEvents": "many"}),
        json!({"ack": vec!["jti"; 1_001]}),
        json!("{"),
    ] {
        let answer = replica.poll("files", &wrong).await;
        assert_eq!(answer.status, 400, "{wrong}");
        assert_eq!(answer.body["err"], "invalid_request");
    }
}
