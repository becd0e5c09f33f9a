//! Rejected events, and events that cannot be verified: a token from another issuer ends nothing.

use chassis::clock::Clock as _;
use scripted_provider::{Answer, Endpoint, ScriptedProvider};
use serde_json::{Value, json};
use session_proto::v1::ErrorReason;

use super::support::*;
use crate::failing_store::Fails;
use crate::support::*;

#[tokio::test]
async fn each_wrong_token_is_refused_by_its_code_and_ends_nothing() {
    let mut listening = listening().await;
    let id = listening.alice().await;
    let stranger = ScriptedProvider::start();
    stranger.script(|script| script.now = Some(listening.world.clock.now_secs()));
    stranger.remake_keys();
    let good = listening.token("session-revoked", &person("alice"), &json!({}));
    let (signed, _) = good.rsplit_once('.').unwrap();
    let foreign = |patch: Value| {
        let mut claims = json!({
            "aud": OURS, "sub_id": person("alice"), "events": { (event_type("session-revoked")): {} },
        });
        claims
            .as_object_mut()
            .unwrap()
            .extend(patch.as_object().unwrap().clone());
        stranger.security_event(claims)
    };
    let ours = json!({ "iss": listening.transmitter.issuer() });
    let patched = |patch: Value| listening.patched("session-revoked", &person("alice"), &json!({}), &patch);
    let wrong = [
        (String::new(), "invalid_request"),
        ("no token".to_owned(), "invalid_request"),
        ("x".repeat(70_000), "invalid_request"),
        (foreign(json!({})), "invalid_issuer"),
        (foreign(ours), "invalid_key"),
        (format!("{signed}.AAAA"), "invalid_key"),
        (
            patched(json!({ "aud": "https://other.example" })),
            "invalid_audience",
        ),
        (patched(json!({ "aud": null })), "invalid_audience"),
        (patched(json!({ "exp": 1_800_000_000 })), "invalid_request"),
        (patched(json!({ "sub": "alice" })), "invalid_request"),
        (patched(json!({ "sub_id": null })), "invalid_request"),
        (patched(json!({ "events": {} })), "invalid_request"),
        (patched(json!({ "iat": 1_800_000_000_u64 })), "invalid_request"),
    ];
    for (token, code) in wrong {
        let shown: String = token.chars().take(60).collect();
        assert_eq!(listening.push(&token).await.unwrap(), code, "{shown}");
    }
    assert!(listening.is_there(&id).await);
    assert_eq!(listening.push(&good).await.unwrap(), "");
    assert!(
        !listening.is_there(&id).await,
        "the right one among them is taken"
    );
}

#[tokio::test]
async fn a_token_of_another_kind_passes_for_no_event() {
    let mut listening = listening().await;
    let id = listening.alice().await;
    let logout = listening
        .transmitter
        .logout_token(json!({ "sub": "alice", "aud": OURS }));
    assert_eq!(listening.push(&logout).await.unwrap(), "invalid_request");
    assert!(listening.is_there(&id).await);
}

#[tokio::test]
async fn a_key_that_is_not_published_yet_and_keys_that_cannot_be_had_are_no_verdict() {
    let mut listening = listening().await;
    let id = listening.alice().await;
    listening.transmitter.rotate_keys_unpublished();
    let early = listening.token("session-revoked", &person("alice"), &json!({}));
    let undecided = listening.push(&early).await.unwrap_err();
    assert_eq!(why(&undecided), ErrorReason::ErrProviderUnavailable);
    assert!(listening.is_there(&id).await);

    let mut away = super::support::listening().await;
    let id = away.alice().await;
    away.transmitter
        .script(|script| _ = script.answers.insert(Endpoint::Jwks, Answer::status(500)));
    let token = away.token("session-revoked", &person("alice"), &json!({}));
    let undecided = away.push(&token).await.unwrap_err();
    assert_eq!(why(&undecided), ErrorReason::ErrProviderUnavailable);
    away.transmitter.script(|script| script.answers.clear());
    assert_eq!(
        pushed(&mut away.two, &token, "").await.unwrap(),
        "",
        "sent again it is taken"
    );
    assert!(!away.is_there(&id).await);
}

#[tokio::test]
async fn an_event_that_a_failing_store_did_not_take_is_sent_again_and_acts_then() {
    let failures = [
        Fails::Load(0),
        Fails::Lists,
        Fails::Insert(0),
        Fails::Insert(1),
        Fails::Insert(2),
    ];
    let mut undecided = 0;
    for fails in failures {
        let mut listening = listening().await;
        let id = listening.alice().await;
        let (failing, mut replica) = listening.failing().await;
        let token = listening.token("session-revoked", &person("alice"), &json!({}));
        failing.fails(fails);
        if let Err(down) = pushed(&mut replica, &token, "").await {
            assert_eq!(why(&down), ErrorReason::ErrStoreUnavailable, "{fails:?}");
            undecided += 1;
        }
        failing.fails(Fails::Nothing);
        assert_eq!(pushed(&mut replica, &token, "").await.unwrap(), "", "{fails:?}");
        assert!(!listening.is_there(&id).await, "{fails:?}");
    }
    assert!(undecided >= 3, "{undecided} of these failures reached the call");
}

#[tokio::test]
async fn a_push_without_the_header_of_its_stream_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "Bearer of-the-stream\n").unwrap();
    let lines = format!("authorization_file = \"{}\"", file.path().display());
    let mut listening = listening_with(&lines).await;
    let id = listening.alice().await;
    let token = listening.token("session-revoked", &person("alice"), &json!({}));
    for header in [
        "",
        "Bearer of-the-strea",
        "Bearer of-the-stream2",
        "bearer of-the-stream",
    ] {
        let answer = pushed(&mut listening.one, &token, header).await.unwrap();
        assert_eq!(answer, "authentication_failed", "{header}");
    }
    assert!(listening.is_there(&id).await);
    let answer = pushed(&mut listening.one, &token, "Bearer of-the-stream").await;
    assert_eq!(answer.unwrap(), "");
    assert!(!listening.is_there(&id).await);
    let verification = listening.about_stream("verification", &json!({}));
    std::fs::write(file.path(), "Bearer of-today\n").unwrap();
    within(async {
        while pushed(&mut listening.one, &verification, "Bearer of-today")
            .await
            .unwrap()
            != ""
        {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
    let before = pushed(&mut listening.one, &verification, "Bearer of-the-stream").await;
    assert_eq!(before.unwrap(), "authentication_failed");
}

#[tokio::test]
async fn an_event_about_the_stream_is_accepted_and_ends_nothing() {
    let mut listening = listening().await;
    let id = listening.alice().await;
    for (name, said) in [
        ("verification", json!({ "state": "abc" })),
        ("verification", json!({})),
        (
            "stream-updated",
            json!({ "status": "paused", "reason": "maintenance" }),
        ),
    ] {
        let token = listening.about_stream(name, &said);
        assert_eq!(listening.push(&token).await.unwrap(), "", "{name} {said}");
    }
    assert!(listening.is_there(&id).await);
}

#[tokio::test]
async fn a_service_that_listens_to_nobody_says_so() {
    let mut world = world().await;
    let nobody = pushed(&mut world.one, "token", "").await.unwrap_err();
    assert_eq!(why(&nobody), ErrorReason::ErrUnimplemented);
}
