//! The event of a token: exactly one, named by a URI, with its details.

use serde_json::json;

use super::*;

const REVOKED: &str = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";
const PURGED: &str = "https://schemas.openid.net/secevent/risc/event-type/account-purged";

fn event(payload: &Value) -> SecurityEvent {
    SecurityEvent::of(Some(&json!({ (REVOKED): payload }))).expect("an event")
}

fn refusal(events: &Value) -> String {
    let refused = SecurityEvent::of(Some(events)).expect_err("a refusal");
    refused.to_string()
}

#[test]
fn events_holds_one_event_whatever_further_names_it_has() {
    for (events, name) in [
        (json!({ (REVOKED): {} }), "session-revoked"),
        (json!({ (PURGED): {} }), "account-purged"),
        (json!({ "urn:example:other": { "a": 1 } }), "other"),
        (json!({ "urn:example:b": {}, "urn:example:a": {} }), "other"),
        (
            json!({ (REVOKED): {}, "urn:example:the-same": {}, "https://example.com/the-same": {} }),
            "session-revoked",
        ),
    ] {
        let read = SecurityEvent::of(Some(&events)).expect("an event");
        assert_eq!(read.name, name, "{events}");
    }
    let mut eight = json!({});
    for number in 0..8 {
        eight[format!("urn:example:{number}")] = json!({});
    }
    assert!(SecurityEvent::of(Some(&eight)).is_ok());
    let mut nine = eight.clone();
    nine["urn:example:8"] = json!({});
    let long = format!("urn:example:{}", "x".repeat(501));
    for events in [
        None,
        Some(json!(null)),
        Some(json!([])),
        Some(json!(REVOKED)),
        Some(json!([{ (REVOKED): {} }])),
        Some(json!({})),
        Some(json!({ (REVOKED): null })),
        Some(json!({ (REVOKED): [] })),
        Some(json!({ (REVOKED): "{}" })),
        Some(json!({ "urn:example:other": 7 })),
        Some(json!({ (REVOKED): {}, "urn:example:other": null })),
        Some(json!({ (REVOKED): {}, (PURGED): {} })),
        Some(json!({ "session-revoked": {} })),
        Some(json!({ "": {} })),
        Some(json!({ "urn:example: other": {} })),
        Some(json!({ " urn:example:other": {} })),
        Some(json!({ "urn:exämple:other": {} })),
        Some(json!({ (long): {} })),
        Some(nine),
    ] {
        let refused = SecurityEvent::of(events.as_ref()).expect_err("a refusal");
        assert_eq!(
            refused.to_string(),
            "events does not hold one event",
            "{events:?}"
        );
    }
}

/// CAEP 1.0 sections 2 and 3.1.2.
#[test]
fn what_is_said_about_an_event_is_read() {
    let read = event(&json!({
        "initiating_entity": "policy",
        "reason_admin": { "en": "Landspeed Policy Violation: C076E82F" },
        "reason_user": {
            "en": "Access attempt from multiple regions.",
            "es-410": "Intento de acceso desde varias regiones.",
        },
        "event_timestamp": 1_615_304_991,
        "unknown": { "to": "be ignored" },
    }));
    assert_eq!(read.timestamp, Some(1_615_304_991));
    assert_eq!(read.initiating_entity, Some("policy"));
    assert_eq!(
        read.reason.as_deref(),
        Some("Landspeed Policy Violation: C076E82F")
    );
    for entity in ["admin", "user", "policy", "system"] {
        let read = event(&json!({ "initiating_entity": entity })).initiating_entity;
        assert_eq!(read, Some(entity));
    }
}

#[test]
fn what_is_malformed_about_an_event_counts_as_absent_and_the_event_stays() {
    for odd in [
        json!(null),
        json!(-1),
        json!("1615304991"),
        json!({}),
        json!(1e300),
    ] {
        let read = event(&json!({ "event_timestamp": odd }));
        assert_eq!((read.timestamp, read.name), (None, "session-revoked"), "{odd}");
    }
    for odd in [
        json!(null),
        json!("Admin"),
        json!("somebody"),
        json!(["user"]),
        json!(7),
    ] {
        let read = event(&json!({ "initiating_entity": odd }));
        assert_eq!(read.initiating_entity, None, "{odd}");
    }
    for odd in [
        json!(null),
        json!(7),
        json!(["en"]),
        json!(""),
        json!({}),
        json!({ "en": 7, "de": null }),
    ] {
        let read = event(&json!({ "reason_admin": odd }));
        assert_eq!(read.reason, None, "{odd}");
    }
}

#[test]
fn reasons_are_cut_and_steer_no_terminal() {
    let reason = |said: Value| event(&json!({ "reason_admin": said })).reason;
    let long = format!("\u{1b}[2Ja\nb{}", "é".repeat(600));
    let cut = format!(" [2Ja b{}", "é".repeat(493));
    assert_eq!(reason(json!({ "de": "auf Deutsch", "en": long })), Some(cut));
    for said in [json!({ "de": "Grund" }), json!("Grund")] {
        assert_eq!(reason(said).as_deref(), Some("Grund"));
    }
}

#[test]
fn what_an_event_says_is_in_no_debug_output() {
    let shown = format!("{:?}", event(&json!({ "reason_admin": { "en": "hunter2" } })));
    assert!(
        !shown.contains("hunter2") && shown.contains("session-revoked"),
        "{shown}"
    );
}

fn uri(family: &str, name: &str) -> String {
    format!("{family}{name}")
}

fn read(uri: &str, payload: &Value) -> Result<SecurityEvent, SecurityEventError> {
    SecurityEvent::of(Some(&json!({ (uri): payload })))
}

/// The minimal payload of each event.
fn least(name: &str) -> Value {
    match name {
        "token-claims-change" => json!({ "claims": { "role": "ro-admin" } }),
        "credential-change" => json!({ "credential_type": "password", "change_type": "update" }),
        "assurance-level-change" => json!({ "namespace": "NIST-AAL", "current_level": "nist-aal2" }),
        "device-compliance-change" => {
            json!({ "previous_status": "compliant", "current_status": "not-compliant" })
        }
        "risk-level-change" => json!({ "principal": "USER", "current_level": "LOW" }),
        "credential-compromise" => json!({ "credential_type": "password" }),
        "stream-updated" => json!({ "status": "paused" }),
        _ => json!({}),
    }
}

#[test]
fn each_known_type_is_read_from_the_least_it_requires_and_others_are_unknown() {
    for (family, name, _) in EVENT_TYPES {
        let event = read(&uri(family, name), &least(name)).expect("an event");
        assert_eq!((event.name, event.stream.is_some()), (name, family == SSF));
    }
    for unknown in [
        "urn:ietf:params:scim:event:passwordReset",
        "http://schemas.openid.net/event/backchannel-logout",
        "https://schemas.openid.net/secevent/caep/event-type/session-revoked/",
        "https://schemas.openid.net/secevent/caep/event-type/Session-Revoked",
        "https://schemas.openid.net/secevent/risc/event-type/session-revoked",
        "https://schemas.openid.net/secevent/sse/event-type/verification",
        "https://schemas.openid.net/secevent/risc/event-type/tokens-revoked",
    ] {
        let event = read(unknown, &json!({})).expect("an event");
        assert_eq!((event.name, event.policy_row), ("other", "other"), "{unknown}");
    }
}

#[test]
fn a_missing_member_is_named() {
    for (family, name, required) in EVENT_TYPES {
        for one in required {
            let (Text(member) | Object(member) | OneOf(member, _)) = one;
            for wrong in [
                json!(null),
                json!(""),
                json!(7),
                json!([]),
                json!({}),
                json!("x".repeat(1_025)),
            ] {
                let mut payload = least(name);
                payload[*member] = wrong;
                let refused = refusal(&json!({ (uri(family, name)): payload }));
                assert!(refused.starts_with(member), "{payload}: {refused}");
                payload.as_object_mut().expect("members").remove(*member);
                assert!(read(&uri(family, name), &payload).is_err(), "{payload}");
            }
        }
    }
}

#[test]
fn words_that_a_definition_lists_are_those_and_no_other() {
    for (family, name, member, word) in [
        (CAEP, "credential-change", "change_type", "created"),
        (CAEP, "credential-change", "change_type", "Create"),
        (
            CAEP,
            "device-compliance-change",
            "previous_status",
            "not_compliant",
        ),
        (CAEP, "device-compliance-change", "current_status", "unknown"),
        (CAEP, "risk-level-change", "current_level", "low"),
        (CAEP, "risk-level-change", "current_level", "CRITICAL"),
        (SSF, "stream-updated", "status", "deleted"),
    ] {
        let mut payload = least(name);
        payload[member] = json!(word);
        assert!(read(&uri(family, name), &payload).is_err(), "{payload}");
    }
    // A word is a string, not an object with the word as its only name.
    let payload = json!({ "status": { "paused": null } });
    assert!(read(&uri(SSF, "stream-updated"), &payload).is_err());
}

#[test]
fn a_change_for_the_better_has_a_row_of_its_own() {
    for (name, patch, row) in [
        (
            "credential-change",
            json!({ "change_type": "create" }),
            "credential-created",
        ),
        (
            "credential-change",
            json!({ "change_type": "revoke" }),
            "credential-change",
        ),
        (
            "credential-change",
            json!({ "change_type": "delete" }),
            "credential-change",
        ),
        (
            "assurance-level-change",
            json!({ "change_direction": "increase" }),
            "assurance-level-increased",
        ),
        (
            "assurance-level-change",
            json!({ "change_direction": "sideways" }),
            "assurance-level-change",
        ),
        (
            "assurance-level-change",
            json!({ "change_direction": "decrease" }),
            "assurance-level-change",
        ),
        ("assurance-level-change", json!({}), "assurance-level-change"),
        (
            "device-compliance-change",
            json!({ "current_status": "compliant" }),
            "device-compliant",
        ),
        ("device-compliance-change", json!({}), "device-compliance-change"),
        (
            "risk-level-change",
            json!({ "current_level": "HIGH" }),
            "risk-level-high",
        ),
        (
            "risk-level-change",
            json!({ "current_level": "MEDIUM" }),
            "risk-level-change",
        ),
        (
            "session-revoked",
            json!({ "change_type": "create" }),
            "session-revoked",
        ),
    ] {
        let mut payload = least(name);
        let members = payload.as_object_mut().expect("members");
        members.extend(patch.as_object().cloned().expect("members"));
        let event = read(&uri(CAEP, name), &payload).expect("an event");
        assert_eq!(event.policy_row, row, "{payload}");
    }
}

#[test]
fn changed_claims_and_streams_come_with_what_changed() {
    let claims = json!({ "trusted_network": false, "http://schemas.example/claims/role": "ro-admin" });
    let changed = read(&uri(CAEP, "token-claims-change"), &json!({ "claims": claims }));
    assert_eq!(Value::from(changed.expect("an event").claims), claims);
    assert!(event(&json!({ "claims": claims })).claims.is_empty());
    let stream = |name: &str, payload: Value| read(&uri(SSF, name), &payload).expect("an event").stream;
    let text = |text: &str| Some(text.to_owned());
    for (name, payload, expected) in [
        (
            "verification",
            json!({ "state": "VGhpcyBpcyBhbiBleGFtcGxlIHN0YXRlIHZhbHVlLgo=" }),
            StreamEvent::Verified(text("VGhpcyBpcyBhbiBleGFtcGxlIHN0YXRlIHZhbHVlLgo=")),
        ),
        ("verification", json!({}), StreamEvent::Verified(None)),
        (
            "stream-updated",
            json!({ "status": "paused", "reason": "Internal error" }),
            StreamEvent::Updated("paused".to_owned(), text("Internal error")),
        ),
    ] {
        assert!(stream(name, payload) == Some(expected), "{name}");
    }
}

#[test]
fn a_malformed_state_does_not_pass_for_a_verification_without_a_request() {
    for state in [
        json!(null),
        json!(""),
        json!(7),
        json!(["s"]),
        json!("s".repeat(1_025)),
    ] {
        let refused = refusal(&json!({ (uri(SSF, "verification")): { "state": state } }));
        assert!(refused.starts_with("state "), "{state}: {refused}");
    }
}
