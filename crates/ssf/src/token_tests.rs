//! The claims of a security event token, with one wrong claim at a time.

use serde_json::json;

use super::*;
use crate::SubjectIdentifier;

const ISSUER: &str = "https://transmitter.example.com";
const OURS: &str = "https://receiver.example.com/web";
const NOW: u64 = 1_800_000_000;
const REVOKED: &str = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";
const VERIFICATION: &str = "https://schemas.openid.net/secevent/ssf/event-type/verification";
const UPDATED: &str = "https://schemas.openid.net/secevent/ssf/event-type/stream-updated";

/// Valid claims, patched; `null` removes a member.
fn claims(patch: &Value) -> Map<String, Value> {
    let mut right = json!({
        "iss": ISSUER,
        "jti": "756E69717565206964656E746966696572",
        "iat": NOW,
        "txn": "8675309",
        "aud": OURS,
        "sub_id": { "format": "iss_sub", "iss": "https://op.example", "sub": "alice" },
        "events": { (REVOKED): { "event_timestamp": NOW - 10 } },
    });
    for (name, value) in patch.as_object().expect("a patch") {
        right[name] = value.clone();
    }
    let mut right = right.as_object().cloned().expect("claims");
    right.retain(|_, value| !value.is_null());
    right
}

fn validate_for(
    audiences: &[&str],
    claims: &Map<String, Value>,
) -> Result<SecurityEventToken, SecurityEventError> {
    let audiences: Vec<_> = audiences.iter().map(|one| (*one).to_owned()).collect();
    SecurityEventToken::validate(claims, ISSUER, &audiences, false, NOW)
}

fn validate(patch: &Value) -> Result<SecurityEventToken, SecurityEventError> {
    validate_for(&[OURS, "client"], &claims(patch))
}

fn refusal(patch: &Value) -> String {
    validate(patch).expect_err("a refusal").to_string()
}

#[test]
fn a_token_says_who_when_about_whom_and_what() {
    let token =
        validate(&json!({ "toe": 1_799_999_979.5, "unknown": { "to": "be ignored" } })).expect("good");
    assert_eq!(token.jti, "756E69717565206964656E746966696572");
    assert_eq!(token.txn.as_deref(), Some("8675309"));
    assert_eq!(token.occurred_at, NOW - 10);
    assert!(matches!(token.subject, EventSubject::Simple(_)));
    assert_eq!(token.event.name, "session-revoked");
    assert!(token.event.stream.is_none());
}

/// SSF 1.0 section 5, CAEP 1.0 section 3.1.2.
#[test]
fn the_examples_of_the_specifications_hold() {
    let audience = "636C69656E745F6964";
    let of = |sub_id: &Value, events: &Value| {
        let patch = json!({
            "jti": "756E69717565206964656E746966696572", "iat": 1_520_364_019, "aud": audience,
            "sub_id": sub_id, "events": events,
        });
        validate_for(&[audience], &claims(&patch)).expect("an example")
    };
    let email = json!({ "format": "email", "email": "foo@example.com" });
    let enabled = "https://schemas.openid.net/secevent/risc/event-type/account-enabled";
    assert_eq!(
        of(&email, &json!({ (enabled): {} })).event.name,
        "account-enabled"
    );
    let phone = json!({ "format": "phone_number", "phone_number": "+1 206 555 0123" });
    let disabled = "https://schemas.openid.net/secevent/risc/event-type/account-disabled";
    let token = of(&phone, &json!({ (disabled): { "reason": "hijacking" } }));
    assert!(token.subject == EventSubject::Simple(vec![SubjectIdentifier::Other]));
    let changed = "https://schemas.openid.net/secevent/caep/event-type/token-claims-change";
    let proprietary = json!({ "format": "catalog_item", "catalog_id": "c0384/winter/2354122" });
    let token = of(
        &proprietary,
        &json!({ (changed): { "event_timestamp": 1_600_975_810, "claims": { "role": "ro-admin" } } }),
    );
    assert_eq!(token.event.claims["role"], "ro-admin");
    let idp = "https://idp.example.com/3957ea72-1b66-44d6-a044-d805712b9288/";
    let complex = json!({
        "format": "complex",
        "user": { "format": "iss_sub", "iss": idp, "sub": "jane.smith@example.com" },
        "device": { "format": "iss_sub", "iss": idp, "sub": "e9297990-14d2-42ec-a4a9-4036db86509a" },
    });
    let token = of(
        &complex,
        &json!({ (REVOKED): { "initiating_entity": "policy", "event_timestamp": 1_600_975_810 } }),
    );
    assert!(matches!(
        token.subject,
        EventSubject::Complex { user: Some(_), session } if session.is_empty()
    ));
    let stream = json!({ "format": "opaque", "id": "f67e39a0a4d34d56b3aa1bc4cff0069f" });
    let state = json!({ "state": "VGhpcyBpcyBhbiBleGFtcGxlIHN0YXRlIHZhbHVlLgo=" });
    let token = of(&stream, &json!({ (VERIFICATION): state }));
    assert!(token.event.stream.is_some());
}

#[test]
fn the_issuer_is_the_transmitter_byte_by_byte() {
    for iss in [
        json!(null),
        json!(""),
        json!(7),
        json!([ISSUER]),
        json!(format!("{ISSUER}/")),
        json!("https://TRANSMITTER.example.com"),
        json!("https://evil.example"),
    ] {
        assert_eq!(
            refusal(&json!({ "iss": iss })),
            "iss is not a trusted transmitter",
            "{iss}"
        );
    }
}

/// SSF 1.0 section 4.1.8.
#[test]
fn one_name_of_ours_among_the_audiences_is_enough() {
    for aud in [
        json!(OURS),
        json!([OURS]),
        json!(["client"]),
        json!(["https://receiver.example.com/mobile", OURS]),
    ] {
        assert!(validate(&json!({ "aud": aud })).is_ok(), "{aud}");
    }
    for aud in [
        json!(null),
        json!(""),
        json!("https://receiver.example.com"),
        json!(format!("{OURS}/")),
        json!([]),
        json!(["other"]),
        json!([OURS, 7]),
        json!([[OURS]]),
        json!({ "0": OURS }),
        json!({ (OURS): true }),
        json!(7),
    ] {
        assert_eq!(
            refusal(&json!({ "aud": aud })),
            "aud does not name this receiver",
            "{aud}"
        );
    }
    assert!(validate_for(&[], &claims(&json!({}))).is_err());
}

/// SSF 1.0 sections 4.1.2, 4.1.3 and 4.1.7, RFC 8417 section 4.
#[test]
fn a_claim_of_another_kind_of_token_is_the_end_whatever_it_says() {
    for claim in ["exp", "sub", "nonce"] {
        let refused = format!("{claim} is not a claim of a security event");
        for value in [
            json!(NOW + 300),
            json!("alice"),
            json!(""),
            json!({}),
            json!(false),
        ] {
            assert_eq!(refusal(&json!({ (claim): value })), refused, "{value}");
        }
        // A `null` claim counts as present; the patch would remove it.
        let mut claims = claims(&json!({}));
        claims.insert(claim.to_owned(), Value::Null);
        let judged = validate_for(&[OURS], &claims).expect_err("a refusal");
        assert_eq!(judged.to_string(), refused);
    }
}

#[test]
fn it_was_issued_some_time_ago_and_however_long() {
    for iat in [
        json!(NOW),
        json!(NOW + 60),
        json!(NOW - 90_000_000),
        json!(0),
        json!(1.5),
    ] {
        assert!(validate(&json!({ "iat": iat })).is_ok(), "{iat}");
    }
    for iat in [
        json!(null),
        json!(NOW + 61),
        json!(15_203_800_012_u64),
        json!(u64::MAX),
        json!(-1),
        json!("1800000000"),
        json!({}),
    ] {
        assert_eq!(
            refusal(&json!({ "iat": iat })),
            "iat is absent or in the future",
            "{iat}"
        );
    }
    assert!(validate(&json!({ "nbf": NOW + 60 })).is_ok());
    for nbf in [json!(NOW + 61), json!("now"), json!(u64::MAX)] {
        assert_eq!(
            refusal(&json!({ "nbf": nbf })),
            "nbf has not been reached",
            "{nbf}"
        );
    }
}

#[test]
fn it_has_an_identifier_of_its_own() {
    assert!(validate(&json!({ "jti": "j".repeat(512) })).is_ok());
    for jti in [
        json!(null),
        json!(""),
        json!("j".repeat(513)),
        json!(7),
        json!(["j"]),
    ] {
        assert_eq!(
            refusal(&json!({ "jti": jti })),
            "jti is absent or too long",
            "{jti}"
        );
    }
}

#[test]
fn it_is_about_somebody_or_something() {
    for (sub_id, error) in [
        (json!(null), "is absent or no object"),
        (json!("alice"), "is absent or no object"),
        (json!({}), "has no format"),
        (json!({ "format": "complex" }), "is complex and has no member"),
    ] {
        let refused = format!("sub_id {error}");
        assert_eq!(refusal(&json!({ "sub_id": sub_id })), refused, "{sub_id}");
    }
    // The subject inside the event does not count (SSF 1.0 section 3.1.1).
    let within = json!({ (REVOKED): { "subject": { "format": "email", "email": "a@b.example" } } });
    let refused = refusal(&json!({ "sub_id": null, "events": within }));
    assert_eq!(refused, "sub_id is absent or no object");
}

#[test]
fn an_event_about_a_stream_names_the_stream_and_nothing_else() {
    let stream = json!({ "format": "opaque", "id": "stream" });
    let person = json!({ "format": "iss_sub", "iss": "i", "sub": "s" });
    let complex = json!({ "format": "complex", "session": stream });
    let two = json!({ "format": "aliases", "identifiers": [stream, stream] });
    for events in [
        json!({ (VERIFICATION): {} }),
        json!({ (UPDATED): { "status": "disabled" } }),
    ] {
        let token = validate(&json!({ "sub_id": stream, "events": events })).expect("good");
        assert!(token.event.stream.is_some());
        for sub_id in [&person, &complex, &two] {
            let refused = refusal(&json!({ "sub_id": sub_id, "events": events }));
            assert_eq!(
                refused, "sub_id of an event about a stream is not opaque",
                "{sub_id}"
            );
        }
    }
    let opaque = validate(&json!({ "sub_id": stream })).expect("a session");
    assert!(
        opaque.event.stream.is_none(),
        "an opaque subject is not always a stream"
    );
}

#[test]
fn events_are_judged_too() {
    assert_eq!(
        refusal(&json!({ "events": null })),
        "events does not hold one event"
    );
    let logout = json!({ "http://schemas.openid.net/event/backchannel-logout": {} });
    let token = validate(&json!({ "events": logout })).expect("a type that is not known");
    assert_eq!(token.event.name, "other");
    let lacking = json!({ (UPDATED): {} });
    let stream = json!({ "format": "opaque", "id": "stream" });
    let refused = refusal(&json!({ "sub_id": stream, "events": lacking }));
    assert!(refused.starts_with("status "), "{refused}");
}

#[test]
fn what_explains_a_token_and_is_malformed_counts_as_absent() {
    for odd in [json!(8_675_309), json!(""), json!("t".repeat(513)), json!({})] {
        let token = validate(&json!({ "txn": odd })).expect("good");
        assert_eq!(token.txn, None, "{odd}");
    }
    for odd in [json!("yesterday"), json!(-1), json!({})] {
        let token = validate(&json!({ "toe": odd, "events": { (REVOKED): {} } })).expect("good");
        assert_eq!(token.occurred_at, NOW, "{odd}");
    }
}

/// RFC 8417 section 5.4; some transmitters of drafts count in milliseconds.
#[test]
fn an_event_was_when_it_says_and_never_after_it_was_told() {
    for (timestamp, toe, at) in [
        (json!(NOW - 10), json!(NOW - 20), NOW - 10),
        (json!(null), json!(NOW - 20), NOW - 20),
        (json!(null), json!(null), NOW),
        (json!("soon"), json!("sooner"), NOW),
        (json!(NOW + 1), json!(null), NOW),
        (json!(NOW * 1_000), json!(null), NOW),
    ] {
        let events = json!({ (REVOKED): { "event_timestamp": timestamp } });
        let token = validate(&json!({ "events": events, "toe": toe })).expect("good");
        assert_eq!(token.occurred_at, at, "{timestamp} {toe}");
    }
}

#[test]
fn whom_it_is_about_is_in_no_debug_output() {
    let hunter = json!({
        "sub_id": { "format": "email", "email": "hunter2@b.example" },
        "events": { (REVOKED): { "reason_admin": { "en": "hunter2" } } },
    });
    let shown = format!("{:?}", validate(&hunter).expect("good"));
    assert!(
        !shown.contains("hunter2") && shown.contains("session-revoked"),
        "{shown}"
    );
}
