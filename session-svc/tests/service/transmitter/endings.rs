//! The events that receivers get.

use std::sync::Arc;

use serde_json::{Value, json};
use session_proto::v1;
use ssf::EventSubject;

use super::peer::Peer;
use super::support::*;

#[tokio::test]
async fn an_ending_is_told_by_a_token_that_our_published_keys_verify() {
    let peer = Peer::start().await;
    let mut setting = Setting::new().await;
    std::fs::write(setting.path().join("authorization"), "Bearer of-the-receiver\n").unwrap();
    let authorization = setting.path().join("authorization");
    setting = setting.pushed(
        "files",
        &peer.url,
        &format!("authorization_file = {authorization:?}"),
    );
    let replica = setting.replica(Arc::new(setting.memory())).await;
    let id = replica
        .sign_in(json!({"sub": "alice", "email": "a@b.example"}), "sid-1")
        .await;
    replica.sign_out(&id).await;

    let pushed = peer.wait_for(1).await.remove(0);
    assert!(pushed.head.starts_with("POST /events "), "{}", pushed.head);
    for header in [
        "content-type: application/secevent+jwt",
        "accept: application/json",
        "authorization: Bearer of-the-receiver",
    ] {
        assert!(pushed.head.contains(header), "{}", pushed.head);
    }
    let token = setting.verified("files", &pushed.token).await;
    assert_eq!(token.event.name, "session-revoked");
    assert!(
        matches!(token.subject, EventSubject::Complex { .. }),
        "{:?}",
        token.subject
    );
    let mut claims = claims_of(&pushed.token);
    let jti = claims["jti"].take();
    assert_eq!(jti.as_str().map(str::len), Some(32));
    assert!(claims["txn"].take().is_string());
    assert_eq!(
        claims,
        json!({
            "iss": setting.issuer,
            "aud": "https://files.example",
            "iat": START_MS / 1000,
            "jti": null,
            "txn": null,
            "sub_id": {
                "format": "complex",
                "user": {"format": "iss_sub", "iss": ISSUER, "sub": "alice"},
                "session": {"format": "opaque", "id": "sid-1"},
            },
            "events": {REVOKED: {
                "event_timestamp": START_MS / 1000,
                "initiating_entity": "user",
                "reason_admin": {"en": "logout"},
            }},
        })
    );
}

#[tokio::test]
async fn every_cause_is_told_with_who_brought_it_about() {
    let peer = Peer::start().await;
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let replica = setting.replica(Arc::new(setting.memory())).await;
    let causes = [
        (v1::Cause::Logout, "logout", "user"),
        (v1::Cause::OtherDevice, "other_device", "user"),
        (v1::Cause::BackChannelLogout, "back_channel_logout", "system"),
        (v1::Cause::FrontChannelLogout, "front_channel_logout", "user"),
        (v1::Cause::Operator, "operator", "admin"),
        (v1::Cause::Replaced, "replaced", "user"),
        (v1::Cause::SessionLimit, "session_limit", "policy"),
        (v1::Cause::TokenMismatch, "token_mismatch", "system"),
        (v1::Cause::Abandoned, "abandoned", "system"),
        (v1::Cause::Theft, "theft", "policy"),
        (v1::Cause::SecurityEvent, "security_event", "policy"),
        (v1::Cause::Refused, "refused", "system"),
        (v1::Cause::Other, "other", "system"),
    ];
    for (number, (cause, name, entity)) in causes.into_iter().enumerate() {
        let id = replica.sign_in(json!({"sub": "alice"}), "sid-1").await;
        let request = v1::EndSessionRequest {
            cause: cause.into(),
            ..end(&id)
        };
        replica.client.clone().end_session(request).await.unwrap();
        let pushed = peer.wait_for(number + 1).await;
        let claims = claims_of(&pushed[number].token);
        let event = &claims["events"][REVOKED];
        assert_eq!(event["reason_admin"]["en"], name);
        assert_eq!(event["initiating_entity"], entity, "{name}");
    }
    // All sessions of a person at once, on the provider's logout.
    for sid in ["sid-2", "sid-3"] {
        replica.sign_in(json!({"sub": "alice"}), sid).await;
    }
    replica
        .client
        .clone()
        .end_sessions(end_all("alice", ""))
        .await
        .unwrap();
    let pushed = peer.wait_for(causes.len() + 2).await;
    let sid = |pushed: &super::peer::Pushed| claims_of(&pushed.token)["sub_id"]["session"]["id"].clone();
    let mut sids: Vec<Value> = pushed[causes.len()..].iter().map(sid).collect();
    sids.sort_by_key(Value::to_string);
    assert_eq!(sids, ["sid-2", "sid-3"]);
    let txns: std::collections::HashSet<_> = pushed
        .iter()
        .map(|one| claims_of(&one.token)["txn"].to_string())
        .collect();
    assert_eq!(txns.len(), pushed.len());
}

#[tokio::test]
async fn a_person_is_named_as_the_receiver_needs_and_no_further() {
    let peer = Peer::start().await;
    let mut setting = Setting::new()
        .await
        .pushed("by-sub", &peer.url, "")
        .pushed("by-id", &peer.url, r#"subject = "opaque""#)
        .pushed("by-email", &peer.url, r#"subject = "email""#)
        .pushed("elsewhere", &peer.url, r#"providers = ["https://other.example"]"#);
    let replica = setting.replica(Arc::new(setting.memory())).await;
    let people = [
        json!({"sub": "alice", "email": "alice@b.example", "email_verified": true, "name": "Alice"}),
        json!({"sub": "bob", "email": "bob@b.example", "email_verified": false}),
        json!({"sub": "carol", "email": "carol@b.example"}),
        json!({"sub": "dave", "email": "dave@b.example", "email_verified": "true"}),
    ];
    // An unverified address does not identify its person.
    let by_id = |sub: &str| {
        [
            json!({"format": "iss_sub", "iss": ISSUER, "sub": sub}),
            json!({"format": "opaque", "id": sub}),
            Value::Null,
        ]
    };
    let users = [
        [
            json!({"format": "iss_sub", "iss": ISSUER, "sub": "alice"}),
            json!({"format": "opaque", "id": "alice"}),
            json!({"format": "email", "email": "alice@b.example"}),
        ],
        by_id("bob"),
        by_id("carol"),
        by_id("dave"),
    ];
    for (number, (person, users)) in people.into_iter().zip(users).enumerate() {
        let id = replica.sign_in(person, "sid-1").await;
        replica.sign_out(&id).await;
        let pushed = peer.wait_for((number + 1) * 3).await;
        for (receiver, user) in ["by-sub", "by-id", "by-email"].into_iter().zip(users) {
            let audience = json!(format!("https://{receiver}.example"));
            let mut told = pushed[number * 3..].iter().map(|one| claims_of(&one.token));
            let claims = told.find(|claims| claims["aud"] == audience).unwrap();
            assert_eq!(claims["sub_id"]["user"], user, "{receiver}");
            assert_eq!(claims["sub_id"]["session"]["id"], "sid-1");
        }
    }
    assert_eq!(replica.counted("elsewhere", "delivered"), 0);
}

#[tokio::test]
async fn a_session_that_another_one_of_the_same_provider_session_replaces_is_named_by_its_handle() {
    let peer = Peer::start().await;
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let replica = setting.replica(Arc::new(setting.memory())).await;
    let id = replica.sign_in(json!({"sub": "alice"}), "sid-1").await;
    let request = v1::CreateSessionRequest {
        user: claims(json!({"sub": "alice"})),
        replaces_session_id: id,
        ..alice()
    };
    let new = replica.client.clone().create_session(request).await.unwrap();
    let revoked = claims_of(&peer.wait_for(1).await[0].token);
    let named = revoked["sub_id"]["session"]["id"].as_str().unwrap();
    assert_eq!(named.len(), 32, "{named}");
    assert_ne!(named, new.into_inner().session.unwrap().handle);
}

#[tokio::test]
async fn a_session_that_a_refresh_ends_is_told_of() {
    let peer = Peer::start().await;
    let mut setting = Setting::new().await.pushed("files", &peer.url, "");
    let replica = setting.replica(Arc::new(setting.memory())).await;
    let id = replica.sign_in(json!({"sub": "alice"}), "sid-1").await;
    setting.provider.refuses_id_token(oidc::IdTokenError::Subject);
    setting.provider.says(Says::Tokens(oidc::RefreshedTokens {
        id_token: Some("of.somebody.else".to_owned()),
        ..tokens(1, START_MS / 1000)
    }));
    replica
        .client
        .clone()
        .get_access_token(forced(&id))
        .await
        .unwrap_err();
    let pushed = peer.wait_for(1).await;
    let event = &claims_of(&pushed[0].token)["events"][REVOKED];
    assert_eq!(event["reason_admin"]["en"], "token_mismatch");
}
