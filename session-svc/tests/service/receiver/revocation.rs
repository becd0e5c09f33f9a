//! Global Token Revocation: who may end a user's sessions by one request, and which sessions end.

use std::sync::Arc;

use chassis::clock::Clock as _;
use scripted_provider::{Answer, Endpoint, ScriptedProvider};
use serde_json::{Value, json};
use session_proto::v1;
use session_proto::v1::ErrorReason;

use super::support::*;
use crate::failing_store::{FailingStore, Fails};
use crate::support::*;

const ON: &str = "global_token_revocation = true";
const WRONG: &str = "authentication_failed";

/// The Authorization header with a JWT by these keys, patched; `null` removes a member.
fn bearer(listening: &Listening, by: &ScriptedProvider, typ: &str, patch: &Value) -> String {
    let now = listening.world.clock.now_secs();
    let mut claims = json!({
        "iss": listening.transmitter.issuer(), "aud": OURS, "sub": "client", "jti": "one",
        "iat": now, "nbf": now - 300, "exp": now + 300,
    });
    for (name, value) in patch.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    format!("Bearer {}", by.sign_with_header(json!({ "typ": typ }), claims))
}

/// The header of a JWT with this identifier.
fn signed(listening: &Listening, jti: &str) -> String {
    let patch = json!({ "jti": jti });
    bearer(
        listening,
        &listening.transmitter,
        "global-token-revocation+jwt",
        &patch,
    )
}

async fn revoke(replica: &mut Client, sub_id: &Value, authorization: &str) -> super::support::Answer {
    send(replica, &json!({ "sub_id": sub_id }).to_string(), authorization).await
}

async fn send(replica: &mut Client, body: &str, authorization: &str) -> super::support::Answer {
    let request = v1::ReceiveSecurityEventRequest {
        authorization: authorization.to_owned(),
        revocation: Some(v1::GlobalTokenRevocation {
            body: body.to_owned(),
        }),
        ..Default::default()
    };
    let answer = within(replica.receive_security_event(request)).await?;
    Ok(answer.into_inner().error_code)
}

/// A user with a verified address, in this session of the provider.
fn user(listening: &Listening, subject: &str, sid: &str) -> v1::CreateSessionRequest {
    let email = format!("{subject}@example.com");
    v1::CreateSessionRequest {
        user: claims(json!({ "sub": subject, "email": email, "email_verified": true })),
        provider_sid: sid.to_owned(),
        ..alice_since(&listening.world, 60)
    }
}

#[tokio::test]
async fn a_request_ends_all_sessions_of_its_user_at_its_provider_and_takes_tokens_back() {
    let mut listening = listening_with(ON).await;
    let others = v1::CreateSessionRequest {
        issuer: "https://other.example".to_owned(),
        ..user(&listening, "alice", "sid-4")
    };
    // The provider's clock is ahead of ours.
    let ahead = v1::CreateSessionRequest {
        authenticated_at: Some(session_proto::timestamp::from_ms(
            listening.world.clock.now_ms() + 30_000,
        )),
        ..user(&listening, "alice", "sid-2")
    };
    let (one, bob) = (
        user(&listening, "alice", "sid-1"),
        user(&listening, "bob", "sid-3"),
    );
    let (one, ahead) = (listening.create(one).await, listening.create(ahead).await);
    let (bob, others) = (listening.create(bob).await, listening.create(others).await);
    let header = signed(&listening, "one");
    assert_eq!(
        revoke(&mut listening.one, &person("alice"), &header)
            .await
            .unwrap(),
        ""
    );
    assert!(!listening.is_there(&one).await && !listening.is_there(&ahead).await);
    assert!(listening.is_there(&bob).await && listening.is_there(&others).await);
    within(listening.world.provider.wait_for_revoked("refresh-0")).await;
    // A user without sessions gets the same answer, also if the service never saw the user.
    for (at, subject) in ["alice", "nobody"].into_iter().enumerate() {
        let header = signed(&listening, &format!("later-{at}"));
        assert_eq!(
            revoke(&mut listening.two, &person(subject), &header)
                .await
                .unwrap(),
            ""
        );
    }
}

#[tokio::test]
async fn a_wrong_credential_ends_nothing() {
    let mut listening = listening_with(ON).await;
    let id = listening.alice().await;
    let now = listening.world.clock.now_secs();
    let typ = "global-token-revocation+jwt";
    let stranger = ScriptedProvider::start();
    stranger.remake_keys();
    let ours = &listening.transmitter;
    let patched = |patch: Value| bearer(&listening, ours, typ, &patch);
    let good = patched(json!({}));
    let (unsigned, _) = good.rsplit_once('.').unwrap();
    let event = listening.token("session-revoked", &person("alice"), &json!({}));
    let wrong = [
        String::new(),
        "Bearer".to_owned(),
        "Bearer of-the-stream".to_owned(),
        good.replacen("Bearer", "Basic", 1),
        format!("{unsigned}.AAAA"),
        format!("Bearer {event}"),
        bearer(&listening, &stranger, typ, &json!({})),
        bearer(&listening, &stranger, typ, &json!({ "iss": stranger.issuer() })),
        bearer(&listening, ours, "JWT", &json!({})),
        bearer(&listening, ours, "secevent+jwt", &json!({})),
        patched(json!({ "aud": "https://other.example" })),
        patched(json!({ "aud": null })),
        patched(json!({ "exp": now - 61 })),
        patched(json!({ "exp": null })),
        patched(json!({ "exp": now + 86_400 })),
        patched(json!({ "iat": now + 120 })),
        patched(json!({ "nbf": now + 120 })),
        patched(json!({ "jti": null })),
    ];
    for header in wrong {
        let answer = revoke(&mut listening.one, &person("alice"), &header).await;
        assert_eq!(answer.unwrap(), WRONG, "{header}");
    }
    assert_eq!(
        send(&mut listening.one, "", "").await.unwrap(),
        WRONG,
        "before the body"
    );
    assert!(listening.is_there(&id).await);
    let good = good.replacen("Bearer", "bearer", 1);
    assert_eq!(
        revoke(&mut listening.one, &person("alice"), &good).await.unwrap(),
        ""
    );
    assert!(!listening.is_there(&id).await);
}

#[tokio::test]
async fn a_transmitter_with_a_header_of_its_own_needs_exactly_that() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "Bearer of-the-tool\n").unwrap();
    let lines = format!("{ON}\nauthorization_file = \"{}\"", file.path().display());
    let mut listening = listening_with(&lines).await;
    let jwt = signed(&listening, "one");
    // Every request with a header is a new one, and ends later sessions too.
    for _ in 0..2 {
        let id = listening.alice().await;
        for wrong in ["", "Bearer of-the-too", "bearer of-the-tool", &jwt] {
            let answer = revoke(&mut listening.one, &person("alice"), wrong).await;
            assert_eq!(answer.unwrap(), WRONG, "{wrong}");
        }
        assert!(listening.is_there(&id).await);
        let answer = revoke(&mut listening.one, &person("alice"), "Bearer of-the-tool").await;
        assert_eq!(answer.unwrap(), "");
        assert!(!listening.is_there(&id).await);
        listening.world.clock.advance_ms(1_000);
    }
}

#[tokio::test]
async fn a_subject_is_one_user_of_the_provider() {
    let opaque = json!({ "format": "opaque", "id": "alice" });
    let email = json!({ "format": "email", "email": "Alice@example.com" });
    let elsewhere = json!({ "format": "iss_sub", "iss": "https://other.example", "sub": "alice" });
    let phone = json!({ "format": "phone_number", "phone_number": "+12065550100" });
    let aliases = |all: [&Value; 2]| json!({ "format": "aliases", "identifiers": all });
    let complex = json!({ "format": "complex", "user": person("alice") });
    for (subject, answer, ends) in [
        (&opaque, "", true),
        (&email, "", true),
        (&aliases([&elsewhere, &email]), "", true),
        (&json!({ "format": "opaque", "id": "sid-1" }), "", false),
        (&elsewhere, "access_denied", false),
        (&phone, "invalid_request", false),
        (&aliases([&phone, &elsewhere]), "access_denied", false),
        (&complex, "invalid_request", false),
        (
            &json!({ "format": "email", "email": "alice" }),
            "invalid_request",
            false,
        ),
        (&Value::Null, "invalid_request", false),
    ] {
        let mut listening = listening_with(ON).await;
        let alice = user(&listening, "alice", "sid-1");
        let id = listening.create(alice).await;
        let header = signed(&listening, "one");
        let given = revoke(&mut listening.one, subject, &header).await.unwrap();
        assert_eq!(given, answer, "{subject}");
        assert_eq!(!listening.is_there(&id).await, ends, "{subject}");
    }
    let mut listening = listening_with(&format!("{ON}\nemail = false")).await;
    let header = signed(&listening, "one");
    assert_eq!(
        revoke(&mut listening.one, &email, &header).await.unwrap(),
        "invalid_request"
    );
    assert_eq!(
        send(&mut listening.one, "{", &header).await.unwrap(),
        "invalid_request"
    );
}

#[tokio::test]
async fn a_token_serves_one_request_and_its_repetition_ends_no_later_session() {
    let mut listening = listening_with(ON).await;
    let (_, bob) = (listening.alice().await, user(&listening, "bob", "sid-3"));
    let bob = listening.create(bob).await;
    let header = signed(&listening, "one");
    assert_eq!(
        revoke(&mut listening.one, &person("alice"), &header)
            .await
            .unwrap(),
        ""
    );
    listening.world.clock.advance_ms(1_000);
    let again = listening.alice().await;
    for replica in [&mut listening.one.clone(), &mut listening.two.clone()] {
        assert_eq!(revoke(replica, &person("alice"), &header).await.unwrap(), "");
        assert_eq!(revoke(replica, &person("bob"), &header).await.unwrap(), WRONG);
    }
    assert!(listening.is_there(&again).await && listening.is_there(&bob).await);
}

#[tokio::test]
async fn a_request_that_cannot_be_judged_or_applied_now_is_repeated() {
    let mut listening = listening_with(ON).await;
    let id = listening.alice().await;
    let keys = |answer: Option<Answer>| {
        listening.transmitter.script(|script| {
            script.answers.clear();
            script
                .answers
                .extend(answer.map(|answer| (Endpoint::Jwks, answer)));
        });
    };
    keys(Some(Answer::status(500)));
    let header = signed(&listening, "one");
    let undecided = revoke(&mut listening.one, &person("alice"), &header)
        .await
        .unwrap_err();
    assert_eq!(why(&undecided), ErrorReason::ErrProviderUnavailable);
    keys(None);
    let store = FailingStore::over(&listening.world);
    let file = table(&listening.transmitter, ON);
    let mut failing = listening.world.listening(Arc::new(store.clone()), &file).await;
    for fails in [Fails::Insert(0), Fails::Insert(1), Fails::Lists] {
        store.fails(fails);
        let down = revoke(&mut failing, &person("alice"), &header).await.unwrap_err();
        assert_eq!(why(&down), ErrorReason::ErrStoreUnavailable, "{fails:?}");
    }
    store.fails(Fails::Nothing);
    assert_eq!(revoke(&mut failing, &person("alice"), &header).await.unwrap(), "");
    assert!(!listening.is_there(&id).await);
}

#[tokio::test]
async fn no_transmitter_may_revoke_unless_its_table_says_so() {
    let mut listening = listening().await;
    let id = listening.alice().await;
    let header = signed(&listening, "one");
    let off = revoke(&mut listening.one, &person("alice"), &header)
        .await
        .unwrap_err();
    assert_eq!(why(&off), ErrorReason::ErrUnimplemented);
    assert!(listening.is_there(&id).await);
}
