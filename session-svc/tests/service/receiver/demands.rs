//! Events that demand a sign-in, and events that change claims.

use chassis::clock::Clock as _;
use serde_json::{Value, json};
use session_proto::timestamp;
use session_proto::v1::{self, ErrorReason};

use super::support::*;
use crate::support::*;

#[tokio::test]
async fn what_makes_a_sign_in_worth_less_demands_another_and_what_makes_it_worth_more_does_not() {
    let change = |change: &str| json!({ "credential_type": "password", "change_type": change });
    let level = |direction: Option<&str>| {
        let mut said = json!({ "namespace": "NIST-AAL", "current_level": "nist-aal1" });
        if let Some(direction) = direction {
            said["change_direction"] = json!(direction);
        }
        said
    };
    let device = |now: &str| json!({ "previous_status": "compliant", "current_status": now });
    let risk = |now: &str| json!({ "principal": "USER", "current_level": now });
    for (name, said, owes) in [
        ("credential-change", change("update"), true),
        ("credential-change", change("revoke"), true),
        ("credential-change", change("delete"), true),
        ("credential-change", change("create"), false),
        ("account-credential-change-required", json!({}), true),
        ("assurance-level-change", level(Some("decrease")), true),
        ("assurance-level-change", level(None), true),
        ("assurance-level-change", level(Some("increase")), false),
        ("device-compliance-change", device("not-compliant"), true),
        ("device-compliance-change", device("compliant"), false),
        ("risk-level-change", risk("HIGH"), true),
        ("risk-level-change", risk("MEDIUM"), false),
        ("account-enabled", json!({}), false),
        (
            "identifier-changed",
            json!({ "new-value": "new@example.com" }),
            false,
        ),
        ("recovery-activated", json!({}), false),
        ("session-established", json!({}), false),
    ] {
        let mut listening = listening().await;
        let id = listening.alice().await;
        listening.happens(name, &said).await;
        assert_eq!(listening.owes(&id).await, owes, "{name} {said}");
    }
}

#[tokio::test]
async fn a_session_that_owes_a_sign_in_gives_no_token_and_stays_what_it_is() {
    let mut listening = listening().await;
    let id = listening.alice().await;
    listening
        .happens("account-credential-change-required", &json!({}))
        .await;
    let refused = listening.two.get_access_token(token(&id)).await.unwrap_err();
    assert_eq!(why(&refused), ErrorReason::ErrFailedRefreshGrant);
    let for_api = v1::GetAccessTokenRequest {
        audience: "orders".to_owned(),
        ..token(&id)
    };
    let refused = listening.two.get_access_token(for_api).await.unwrap_err();
    assert_eq!(why(&refused), ErrorReason::ErrFailedRefreshGrant);
    let session = listening.session(&id).await.unwrap();
    assert_eq!(session.state(), v1::session::State::Active);
}

#[tokio::test]
async fn a_session_that_begins_without_a_new_sign_in_owes_what_the_one_before_owed() {
    let mut listening = listening().await;
    let id = listening.alice().await;
    listening
        .happens("account-credential-change-required", &json!({}))
        .await;
    assert!(listening.owes(&id).await);
    // The provider reused its existing sign-in.
    let silent = alice_since(&listening.world, 30);
    let silent = listening.create(silent).await;
    assert!(listening.owes(&silent).await);
    listening.world.clock.advance_ms(2_000);
    let anew = alice_since(&listening.world, 0);
    let anew = listening.create(anew).await;
    assert!(!listening.owes(&anew).await);
}

#[tokio::test]
async fn a_session_whose_sign_in_nobody_dates_owes_one_too() {
    let mut listening = listening().await;
    let id = listening.alice().await;
    listening
        .happens("account-credential-change-required", &json!({}))
        .await;
    assert!(listening.owes(&id).await);
    listening.world.clock.advance_ms(120_000);
    let undated = listening.create(alice()).await;
    assert!(listening.owes(&undated).await);
}

#[tokio::test]
async fn what_somebody_else_than_the_provider_tells_may_be_a_minute_off() {
    // The transmitter is not the provider: an event 30 s earlier may follow the sign-in.
    let mut listening = listening().await;
    let now = listening.world.clock.now_secs();
    let id = listening.alice().await;
    let said = json!({ "event_timestamp": now - 90 });
    listening
        .happens("account-credential-change-required", &said)
        .await;
    assert!(listening.owes(&id).await);
    // A transmitter with a fast clock requires no future sign-in.
    let token = listening.patched(
        "account-credential-change-required",
        &person("bob"),
        &json!({}),
        &json!({ "iat": now + 30 }),
    );
    assert_eq!(listening.push(&token).await.unwrap(), "");
    listening.world.clock.advance_ms(2_000);
    let bob = v1::CreateSessionRequest {
        user: claims(json!({ "sub": "bob" })),
        ..alice_since(&listening.world, 0)
    };
    let bob = listening.create(bob).await;
    assert!(!listening.owes(&bob).await);
}

#[tokio::test]
async fn an_event_of_before_the_sign_in_demands_nothing_and_two_events_in_any_order_demand_the_later() {
    let mut listening = listening().await;
    let now = listening.world.clock.now_secs();
    let id = listening.alice().await;
    let at = |secs_ago: u64| json!({ "event_timestamp": now - secs_ago });
    listening
        .happens("account-credential-change-required", &at(121))
        .await;
    assert!(!listening.owes(&id).await);
    for secs_ago in [10, 20] {
        listening
            .happens("account-credential-change-required", &at(secs_ago))
            .await;
        let demand = listening.session(&id).await.unwrap().sign_in_demand.unwrap();
        assert_eq!(demand.since, Some(timestamp::from_ms((now - 10) * 1_000)));
    }
}

#[tokio::test]
async fn a_class_of_authentication_is_demanded_until_a_sign_in_has_it() {
    let mut listening = listening_with("[policy]\naccount-credential-change-required = \"acr:gold\"\n").await;
    let id = listening.alice().await;
    listening
        .happens("account-credential-change-required", &json!({}))
        .await;
    let demand = listening.session(&id).await.unwrap().sign_in_demand.unwrap();
    assert_eq!(demand.acr, "gold");
    listening.world.clock.advance_ms(2_000);
    for (acr, owes) in [("silver", true), ("gold", false)] {
        let anew = v1::CreateSessionRequest {
            user: claims(json!({ "sub": "alice", "acr": acr })),
            ..alice_since(&listening.world, 0)
        };
        let anew = listening.create(anew).await;
        assert_eq!(listening.owes(&anew).await, owes, "{acr}");
    }
}

fn user(session: &v1::Session) -> Value {
    serde_json::from_str(&session.user).unwrap()
}

#[tokio::test]
async fn claims_that_changed_take_the_place_of_those_before_and_never_name_somebody_else() {
    let mut listening = listening().await;
    let id = listening.alice().await;
    let told = json!({ "claims": { "name": "Alice Liddell", "groups": ["staff"], "sub": "mallory" } });
    listening.happens("token-claims-change", &told).await;
    let session = listening.session(&id).await.unwrap();
    assert_eq!(
        user(&session),
        json!({ "sub": "alice", "name": "Alice Liddell", "groups": ["staff"] })
    );
    // The provider is asked for the missing claims, in the background.
    within(listening.world.provider.wait_for_grants(1)).await;
}

#[tokio::test]
async fn of_claims_told_out_of_order_each_is_as_it_was_told_last() {
    let mut listening = listening().await;
    let now = listening.world.clock.now_secs();
    let id = listening.alice().await;
    for (secs_ago, told, name, groups) in [
        (10, json!({ "name": "Later" }), "Later", Value::Null),
        (20, json!({ "name": "Earlier" }), "Later", Value::Null),
        // Another claim, which no later event has changed.
        (30, json!({ "name": "Earlier", "groups": [] }), "Later", json!([])),
        // Repeats the current value: the value in between does not return.
        (15, json!({ "groups": [] }), "Later", json!([])),
        (25, json!({ "groups": ["admins"] }), "Later", json!([])),
        (5, json!({ "groups": ["staff"] }), "Later", json!(["staff"])),
    ] {
        let said = json!({ "event_timestamp": now - secs_ago, "claims": told });
        listening.happens("token-claims-change", &said).await;
        let session = listening.session(&id).await.unwrap();
        let user = user(&session);
        assert_eq!(
            (&user["name"], &user["groups"]),
            (&json!(name), &groups),
            "{told}"
        );
    }
}

#[tokio::test]
async fn claims_for_which_there_is_no_room_and_claims_nobody_can_be_asked_for_demand_a_sign_in() {
    let mut listening = listening_with("[policy]\nidentifier-changed = \"claims\"\n").await;
    let id = listening.alice().await;
    let told = json!({ "claims": { "groups": "x".repeat(5_000) } });
    listening.happens("token-claims-change", &told).await;
    assert!(listening.owes(&id).await);
    let without_refresh = v1::CreateSessionRequest {
        user: claims(json!({ "sub": "bob" })),
        tokens: None,
        provider_sid: String::new(),
        ..alice_since(&listening.world, 60)
    };
    let bob = listening.create(without_refresh).await;
    let token = listening.token("identifier-changed", &person("bob"), &json!({}));
    assert_eq!(listening.push(&token).await.unwrap(), "");
    assert!(listening.owes(&bob).await);
}
