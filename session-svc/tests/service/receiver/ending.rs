//! Events that end sessions: which, once, and whenever they arrive.

use chassis::clock::Clock as _;
use serde_json::json;
use session_proto::v1;

use super::support::*;
use crate::failing_store::{Fails, Loses};
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
    // With the provider's own clock, exact to the second; with another clock, with a minute to spare.
    for (lines, after, event) in [(IS_PROVIDER, 9, 10), ("", 9, 70)] {
        let mut listening = listening_with(lines).await;
        let now = listening.world.clock.now_secs();
        let issuer = match lines {
            IS_PROVIDER => listening.transmitter.issuer().to_owned(),
            _ => ISSUER.to_owned(),
        };
        let alice = |world: &World, secs| v1::CreateSessionRequest {
            issuer: issuer.clone(),
            ..alice_since(world, secs)
        };
        let (before, after) = (alice(&listening.world, 80), alice(&listening.world, after));
        let (before, after) = (listening.create(before).await, listening.create(after).await);
        let person = json!({ "format": "iss_sub", "iss": issuer, "sub": "alice" });
        let token = listening.token(
            "session-revoked",
            &person,
            &json!({ "event_timestamp": now - event }),
        );
        assert_eq!(listening.push(&token).await.unwrap(), "");
        assert!(!listening.is_there(&before).await, "{lines}");
        assert!(listening.is_there(&after).await, "{lines}");
    }
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
    // Signed in before the event: only the stored token ID keeps the session.
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
async fn a_try_that_died_after_it_had_acted_is_remembered_too() {
    let mut died = 0;
    for inserts in 0..6 {
        let mut listening = listening().await;
        let id = listening.alice().await;
        let token = listening.token("session-revoked", &person("alice"), &json!({}));
        let (store, mut dying) = listening.failing().await;
        store.fails(Fails::Insert(inserts));
        if pushed(&mut dying, &token, "").await.is_ok() || listening.is_there(&id).await {
            continue;
        }
        died += 1;
        listening.world.clock.advance_ms(1_000);
        // Signed in before the event, and authenticated by the provider since.
        let again = listening.alice().await;
        for _ in 0..2 {
            assert_eq!(listening.push(&token).await.unwrap(), "");
            assert!(listening.is_there(&again).await, "after {inserts} inserts");
        }
    }
    assert!(died > 0, "no try died between its ending and its memory");
}

#[tokio::test]
async fn what_another_master_brings_back_while_nothing_is_found_ends_before_the_event_is_taken() {
    let mut listening = listening().await;
    let id = listening.alice().await;
    let token = listening.token("session-revoked", &person("alice"), &json!({}));
    let (store, mut replica) = listening.failing().await;
    store.loses(Loses::Removal);
    let first = pushed(&mut replica, &token, "").await.unwrap_err();
    assert_eq!(why(&first), v1::ErrorReason::ErrStoreUnavailable);
    assert!(!listening.is_there(&id).await);
    // The master without the session answers the list; the master with the session answers the confirmation.
    assert_eq!(pushed(&mut replica, &token, "").await.unwrap(), "");
    assert!(!listening.is_there(&id).await);
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
