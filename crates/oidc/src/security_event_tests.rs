//! The event of a token: one, under a name that is a URI, and what is said about it.

use serde_json::json;

use super::*;

const REVOKED: &str = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";
const PURGED: &str = "https://schemas.openid.net/secevent/risc/event-type/account-purged";

fn event(payload: &Value) -> SecurityEvent {
    SecurityEvent::of(Some(&json!({ (REVOKED): payload }))).expect("an event")
}

fn messages_of(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(language, text): &(&str, &str)| ((*language).to_owned(), (*text).to_owned());
    pairs.iter().map(owned).collect()
}

#[test]
fn events_holds_one_event_whatever_further_names_it_has() {
    for (events, event_type, name) in [
        (json!({ (REVOKED): {} }), REVOKED, "session-revoked"),
        (json!({ (PURGED): {} }), PURGED, "account-purged"),
        (
            json!({ "urn:example:other": { "a": 1 } }),
            "urn:example:other",
            "other",
        ),
        (
            json!({ "urn:example:b": {}, "urn:example:a": {} }),
            "urn:example:a",
            "other",
        ),
        (
            json!({ (REVOKED): {}, "urn:example:the-same": {}, "https://example.com/the-same": {} }),
            REVOKED,
            "session-revoked",
        ),
    ] {
        let read = SecurityEvent::of(Some(&events)).expect("an event");
        assert_eq!(
            (read.event_type.as_str(), read.name()),
            (event_type, name),
            "{events}"
        );
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
        let read = SecurityEvent::of(events.as_ref());
        assert!(matches!(read, Err(SecurityEventError::Events)), "{events:?}");
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
    assert_eq!(read.initiating_entity, Some(InitiatingEntity::Policy));
    let admin = [("en", "Landspeed Policy Violation: C076E82F")];
    assert_eq!(read.reason_admin, messages_of(&admin));
    let user = [
        ("en", "Access attempt from multiple regions."),
        ("es-410", "Intento de acceso desde varias regiones."),
    ];
    assert_eq!(read.reason_user, messages_of(&user));
    for (text, entity) in [
        ("admin", InitiatingEntity::Admin),
        ("user", InitiatingEntity::User),
        ("policy", InitiatingEntity::Policy),
        ("system", InitiatingEntity::System),
    ] {
        let read = event(&json!({ "initiating_entity": text })).initiating_entity;
        assert_eq!(read, Some(entity));
        assert_eq!(entity.name(), text);
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
        assert_eq!((read.timestamp, read.name()), (None, "session-revoked"), "{odd}");
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
        json!({ "en": 7, "de": null, "fr": "", "": "nowhere", "e n": "nowhere", "é": "nowhere" }),
        json!({ ("e".repeat(36)): "too long" }),
    ] {
        let read = event(&json!({ "reason_admin": odd, "reason_user": odd }));
        assert!(
            read.reason_admin.is_empty() && read.reason_user.is_empty(),
            "{odd}"
        );
    }
}

#[test]
fn messages_are_cut_and_steer_no_terminal() {
    let read = event(&json!({
        "reason_admin": { "en": format!("\u{1b}[2Ja\nb{}", "é".repeat(600)) },
        "reason_user": "in no language",
    }));
    let cut = format!(" [2Ja b{}", "é".repeat(493));
    assert_eq!(read.reason_admin, messages_of(&[("en", &cut)]));
    assert_eq!(read.reason_user, messages_of(&[("und", "in no language")]));
    let mut many = json!({});
    for number in 0..100 {
        many[format!("x-{number}")] = json!("text");
    }
    let read = event(&json!({ "reason_user": many }));
    assert_eq!(read.reason_user.len(), 16);
}

#[test]
fn an_event_that_lacks_what_it_requires_is_refused_by_its_name() {
    let events = json!({ "https://schemas.openid.net/secevent/caep/event-type/credential-change": {} });
    let refused = SecurityEvent::of(Some(&events)).expect_err("no type of credential");
    assert_eq!(
        refused.to_string(),
        "the event https://schemas.openid.net/secevent/caep/event-type/credential-change has no credential_type \
         that can be used"
    );
}

#[test]
fn what_an_event_says_is_in_no_debug_output() {
    let shown = format!(
        "{:?}",
        event(&json!({ "reason_admin": { "en": "hunter2" }, "reason_user": "hunter2" }))
    );
    assert!(!shown.contains("hunter2") && shown.contains(REVOKED), "{shown}");
}
