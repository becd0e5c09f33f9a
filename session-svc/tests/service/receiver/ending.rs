//! Events that end sessions: which, once, and whenever they arrive.

use chassis::clock::Clock as _;
use serde_json::json;
use session_proto::v1;

use super::support::*;
use crate::support::*;

#[tokio::test]
async fn what_tells_that_an_account_is_no_more_or_a_session_is_revoked_ends_sessions_and_takes_tokens_back() {
    for (name, said) in [
        ("session-revoked", json!({})),
        ("sessions-revoked", json!({})),
        ("account-disabled", json!({ "reason": "hijacking" })),
        ("account-purged", json!({})),
        ("identifier-recycled", json!({})),
        ("credential-compromise", json!({ "credential_type": "password" })),
    ] {
        let mut listening = listening().await;
        let id = listening.alice().await;
        let bob = v1::CreateSessionRequest {
            user: claims(json!({ "sub": "bob" })),
            provider_sid: "sid-2".to_owned(),
            ..alice_since(&listening.world, 60)
        };
        let other = listening.create(bob).await;
        listening.happens(name, &said).await;
        assert!(!listening.is_there(&id).await, "{name}");
        assert!(listening.is_there(&other).await, "{name}");
        within(listening.world.provider.wait_for_revoked("refresh-0")).await;
    }
}

#[tokio::test]
async fn what_was_signed_in_after_an_event_is_left_alone_whenever_the_event_is_heard_of() {
    let mut listening = listening().await;
    let now = listening.world.clock.now_secs();
    let before = listening.alice().await;
    let alice = alice_since(&listening.world, 9);
    let after = listening.create(alice).await;
    listening
        .happens("session-revoked", &json!({ "event_timestamp": now - 10 }))
        .await;
    assert!(!listening.is_there(&before).await);
    assert!(listening.is_there(&after).await);
}

#[tokio::test]
async fn without_a_time_of_sign_in_a_session_counts_from_its_beginning_and_clocks_may_be_a_minute_apart() {
    let mut listening = listening().await;
    let now = listening.world.clock.now_secs();
    let id = listening.create(alice()).await;
    listening
        .happens("session-revoked", &json!({ "event_timestamp": now - 61 }))
        .await;
    assert!(
        listening.is_there(&id).await,
        "it began after the event, whatever the clocks"
    );
    listening
        .happens("session-revoked", &json!({ "event_timestamp": now - 59 }))
        .await;
    assert!(!listening.is_there(&id).await);
}

#[tokio::test]
async fn a_token_acts_once_at_whichever_replica_it_arrives_and_is_answered_as_before() {
    let mut listening = listening().await;
    let id = listening.alice().await;
    let token = listening.token("session-revoked", &person("alice"), &json!({}));
    assert_eq!(listening.push(&token).await.unwrap(), "");
    assert!(!listening.is_there(&id).await);
    // Signed in before the event: nothing but the memory of the token keeps it.
    let again = listening.alice().await;
    for replica in [&mut listening.one.clone(), &mut listening.two.clone()] {
        assert_eq!(pushed(replica, &token, "").await.unwrap(), "");
    }
    assert!(listening.is_there(&again).await);
    let other = listening.token("session-revoked", &person("alice"), &json!({}));
    assert_eq!(listening.push(&other).await.unwrap(), "");
    assert!(!listening.is_there(&again).await);
}

#[tokio::test]
async fn two_replicas_that_get_the_same_token_at_the_same_moment_both_take_it() {
    let mut listening = listening().await;
    let id = listening.alice().await;
    let token = listening.token("session-revoked", &person("alice"), &json!({}));
    let (mut one, mut two) = (listening.one.clone(), listening.two.clone());
    let both = tokio::join!(pushed(&mut one, &token, ""), pushed(&mut two, &token, ""));
    assert_eq!((both.0.unwrap(), both.1.unwrap()), (String::new(), String::new()));
    assert!(!listening.is_there(&id).await);
}

#[tokio::test]
async fn watchers_and_lists_hear_of_the_ending_with_its_cause() {
    use session_proto::v1::session_event::Kind;

    let mut listening = listening().await;
    let id = listening.alice().await;
    let handle = listening.session(&id).await.unwrap().handle;
    let watch = v1::WatchSessionsRequest {
        handle,
        ..Default::default()
    };
    let mut events = listening.two.watch_sessions(watch).await.unwrap().into_inner();
    listening.happens("session-revoked", &json!({})).await;
    let ended = loop {
        let event = within(events.message()).await.unwrap().unwrap();
        if event.kind() == Kind::Ended {
            break event;
        }
    };
    assert_eq!(ended.cause(), v1::Cause::SecurityEvent);
}

#[tokio::test]
async fn a_policy_says_otherwise_for_all_or_for_one_transmitter() {
    let row = "session-revoked = \"note\"\ncredential-change = \"end\"\n";
    for lines in [format!("[policy]\n{row}"), format!("[transmitter.policy]\n{row}")] {
        let mut listening = listening_with(&lines).await;
        let id = listening.alice().await;
        listening.happens("session-revoked", &json!({})).await;
        assert!(listening.is_there(&id).await);
        let change = json!({ "credential_type": "password", "change_type": "update" });
        listening.happens("credential-change", &change).await;
        assert!(!listening.is_there(&id).await);
    }
}
