//! The subject of an event.

use chassis::clock::Clock as _;
use serde_json::{Value, json};
use session_proto::{timestamp, v1};

use super::support::*;
use crate::support::*;

/// Alice at our provider, in two of its sessions, with a verified address.
async fn two_sessions(listening: &mut Listening) -> (String, String) {
    let session = |sid: &str| v1::CreateSessionRequest {
        user: claims(json!({ "sub": "alice", "email": "Alice@Example.com", "email_verified": true })),
        provider_sid: sid.to_owned(),
        ..alice_since(&listening.world, 60)
    };
    let (one, two) = (session("sid-1"), session("sid-2"));
    (listening.create(one).await, listening.create(two).await)
}

#[tokio::test]
async fn an_event_ends_the_sessions_of_whom_it_names_and_of_nobody_else() {
    let opaque = |id: &str| json!({ "format": "opaque", "id": id });
    let email = |email: &str| json!({ "format": "email", "email": email });
    let complex = |members: Value| {
        let mut subject = json!({ "format": "complex" });
        subject
            .as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        subject
    };
    let elsewhere = json!({ "format": "iss_sub", "iss": "https://other.example", "sub": "alice" });
    let device = json!({ "format": "opaque", "id": "device-7" });
    for (subject, ends) in [
        (person("alice"), (true, true)),
        (person("bob"), (false, false)),
        (elsewhere.clone(), (false, false)),
        (opaque("sid-1"), (true, false)),
        (opaque("alice"), (true, true)),
        (opaque("sid-9"), (false, false)),
        (email("alice@example.COM"), (true, true)),
        (email("bob@example.com"), (false, false)),
        (
            json!({ "format": "phone_number", "phone_number": "+12065550100" }),
            (false, false),
        ),
        (
            json!({ "format": "aliases", "identifiers": [elsewhere, email("alice@example.com")] }),
            (true, true),
        ),
        (complex(json!({ "user": person("alice") })), (true, true)),
        (
            complex(json!({ "user": person("alice"), "session": opaque("sid-2") })),
            (false, true),
        ),
        (
            complex(json!({ "user": person("bob"), "session": opaque("sid-2") })),
            (false, false),
        ),
        (
            complex(json!({ "user": person("alice"), "session": opaque("ALL") })),
            (true, true),
        ),
        (complex(json!({ "session": opaque("sid-2") })), (false, true)),
        (
            complex(json!({ "user": person("alice"), "device": device })),
            (true, true),
        ),
        (complex(json!({ "device": device })), (false, false)),
    ] {
        let mut listening = listening_with("email = true").await;
        let (one, two) = two_sessions(&mut listening).await;
        let token = listening.token("session-revoked", &subject, &json!({}));
        assert_eq!(listening.push(&token).await.unwrap(), "", "{subject}");
        let ended = (!listening.is_there(&one).await, !listening.is_there(&two).await);
        assert_eq!(ended, ends, "{subject}");
    }
}

#[tokio::test]
async fn a_verified_address_finds_its_person_unless_addresses_are_switched_off() {
    let email = json!({ "format": "email", "email": "alice@example.com" });
    for (lines, verified, ends) in [
        ("email = true", json!(true), true),
        ("email = true", json!(false), false),
        ("email = true", json!("true"), false),
        ("", json!(true), true),
        ("", json!(false), false),
        ("email = false", json!(true), false),
        // `email = true` is in the table of another transmitter.
        (
            "email = false\n[[transmitter]]\nid = \"other\"\nissuer = \"https://other.example\"\naudience = \"a\"\nemail = true",
            json!(true),
            false,
        ),
    ] {
        let mut listening = listening_with(lines).await;
        let session = v1::CreateSessionRequest {
            user: claims(json!({ "sub": "alice", "email": "alice@example.com", "email_verified": verified })),
            ..alice_since(&listening.world, 60)
        };
        let id = listening.create(session).await;
        let token = listening.token("session-revoked", &email, &json!({}));
        assert_eq!(listening.push(&token).await.unwrap(), "");
        assert_eq!(!listening.is_there(&id).await, ends, "{lines} {verified}");
    }
}

#[tokio::test]
async fn a_session_whose_provider_named_none_cannot_be_told_apart_from_the_one_that_is_named() {
    let mut listening = listening().await;
    let session = v1::CreateSessionRequest {
        provider_sid: String::new(),
        ..alice_since(&listening.world, 60)
    };
    let id = listening.create(session).await;
    let subject = json!({
        "format": "complex", "user": person("alice"), "session": { "format": "opaque", "id": "sid-1" },
    });
    let token = listening.token("session-revoked", &subject, &json!({}));
    assert_eq!(listening.push(&token).await.unwrap(), "");
    assert!(!listening.is_there(&id).await);
}

#[tokio::test]
async fn what_is_demanded_of_a_session_that_cannot_be_told_apart_is_owed_by_those_to_come() {
    let user = json!({ "sub": "alice", "email": "alice@example.com", "email_verified": true });
    let email = json!({ "format": "email", "email": "alice@example.com" });
    let changed = json!({ "credential_type": "password", "change_type": "update" });
    for person in [person("alice"), email] {
        let mut listening = listening_with("email = true").await;
        let subject = json!({
            "format": "complex", "user": person, "session": { "format": "opaque", "id": "sid-1" },
        });
        let begins = |sid: &str, listening: &Listening| v1::CreateSessionRequest {
            user: claims(user.clone()),
            provider_sid: sid.to_owned(),
            tokens_received_at: Some(timestamp::from_ms(listening.world.clock.now_ms())),
            ..alice_since(&listening.world, 60)
        };
        let token = listening.token("credential-change", &subject, &changed);
        assert_eq!(listening.push(&token).await.unwrap(), "");
        for (sid, owes) in [("", true), ("sid-1", true), ("sid-2", false)] {
            let id = listening.create(begins(sid, &listening)).await;
            assert_eq!(listening.owes(&id).await, owes, "{subject} {sid:?}");
        }
        // An ending also reaches sessions that are being created.
        let token = listening.token("session-revoked", &subject, &json!({}));
        assert_eq!(listening.push(&token).await.unwrap(), "");
        for (sid, begins_well) in [("", false), ("sid-1", false), ("sid-2", true)] {
            let created = listening.one.create_session(begins(sid, &listening)).await;
            assert_eq!(created.is_ok(), begins_well, "{subject} {sid:?}");
        }
    }
}

#[tokio::test]
async fn events_of_drafts_are_read_where_the_transmitter_sends_these() {
    let said = json!({ "subject": { "user": { "subject_type": "iss-sub", "iss": ISSUER, "sub": "alice" } } });
    let without = json!({ "sub_id": null });
    for (lines, answer) in [("", "invalid_request"), ("drafts = true", "")] {
        let mut listening = listening_with(lines).await;
        let id = listening.alice().await;
        let token = listening.patched("session-revoked", &Value::Null, &said, &without);
        assert_eq!(listening.push(&token).await.unwrap(), answer, "{lines}");
        assert_eq!(listening.is_there(&id).await, !answer.is_empty(), "{lines}");
    }
}
