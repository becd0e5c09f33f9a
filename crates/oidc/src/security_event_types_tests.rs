//! Events as CAEP 1.0, RISC 1.0 and SSF 1.0 have them, and each without what it requires.

use serde_json::json;

use super::*;
use crate::security_event_kind::{
    ChangeDirection, CredentialChangeType, DeviceCompliance, RiskLevel, StreamStatus,
};

fn read(event_type: &str, payload: &Value) -> Result<SecurityEventKind, SecurityEventError> {
    SecurityEventKind::of(event_type, payload.as_object().expect("an object"))
}

fn kind(event_type: &str, payload: &Value) -> SecurityEventKind {
    read(event_type, payload).expect("an event")
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// The least each event has to say.
fn least(event_type: &str) -> Value {
    match event_type {
        caep!("token-claims-change") => json!({ "claims": { "role": "ro-admin" } }),
        caep!("credential-change") => json!({ "credential_type": "password", "change_type": "update" }),
        caep!("assurance-level-change") => json!({ "namespace": "NIST-AAL", "current_level": "nist-aal2" }),
        caep!("device-compliance-change") => {
            json!({ "previous_status": "compliant", "current_status": "not-compliant" })
        }
        caep!("risk-level-change") => json!({ "principal": "USER", "current_level": "LOW" }),
        risc!("credential-compromise") => json!({ "credential_type": "password" }),
        ssf!("stream-updated") => json!({ "status": "paused" }),
        _ => json!({}),
    }
}

#[test]
fn each_known_type_is_read_from_the_least_it_requires_and_others_are_passed_over() {
    for event_type in SECURITY_EVENT_TYPES {
        let read = read(event_type, &least(event_type));
        assert!(
            read.is_ok_and(|kind| kind != SecurityEventKind::Other),
            "{event_type}"
        );
    }
    for event_type in [
        "urn:ietf:params:scim:event:passwordReset",
        "http://schemas.openid.net/event/backchannel-logout",
        "https://schemas.openid.net/secevent/caep/event-type/session-revoked/",
        "https://schemas.openid.net/secevent/caep/event-type/Session-Revoked",
        "https://schemas.openid.net/secevent/risc/event-type/session-revoked",
        "https://schemas.openid.net/secevent/sse/event-type/verification",
        "https://schemas.openid.net/secevent/risc/event-type/tokens-revoked",
    ] {
        assert!(
            kind(event_type, &json!({})) == SecurityEventKind::Other,
            "{event_type}"
        );
    }
}

#[test]
fn what_is_missing_is_named() {
    for (event_type, members) in [
        (caep!("token-claims-change"), &["claims"][..]),
        (caep!("credential-change"), &["credential_type", "change_type"]),
        (caep!("assurance-level-change"), &["namespace", "current_level"]),
        (
            caep!("device-compliance-change"),
            &["previous_status", "current_status"],
        ),
        (caep!("risk-level-change"), &["principal", "current_level"]),
        (risc!("credential-compromise"), &["credential_type"]),
        (ssf!("stream-updated"), &["status"]),
    ] {
        for name in members {
            for wrong in [
                None,
                Some(json!(null)),
                Some(json!("")),
                Some(json!(7)),
                Some(json!([])),
                Some(json!({})),
                Some(json!("x".repeat(1_025))),
            ] {
                let mut payload = least(event_type);
                let members = payload.as_object_mut().expect("members");
                match &wrong {
                    None => members.remove(*name),
                    Some(wrong) => members.insert((*name).to_owned(), wrong.clone()),
                };
                assert!(
                    matches!(
                        read(event_type, &payload),
                        Err(SecurityEventError::Payload { event_type: of, member })
                            if of == event_type && member == *name
                    ),
                    "{event_type} {payload}"
                );
            }
        }
    }
}

#[test]
fn words_that_a_definition_lists_are_those_and_no_other() {
    for (event_type, member, word) in [
        (caep!("credential-change"), "change_type", "created"),
        (caep!("credential-change"), "change_type", "Create"),
        (
            caep!("device-compliance-change"),
            "previous_status",
            "not_compliant",
        ),
        (caep!("device-compliance-change"), "current_status", "unknown"),
        (caep!("risk-level-change"), "current_level", "low"),
        (caep!("risk-level-change"), "current_level", "CRITICAL"),
        (ssf!("stream-updated"), "status", "deleted"),
    ] {
        let mut payload = least(event_type);
        payload[member] = json!(word);
        assert!(
            matches!(read(event_type, &payload), Err(SecurityEventError::Payload { member: named, .. }) if named == member),
            "{payload}"
        );
    }
    // A word is a text, and no object with it as its only name.
    let payload = json!({ "status": { "paused": null } });
    assert!(read(ssf!("stream-updated"), &payload).is_err());
    for (word, change) in [
        ("create", CredentialChangeType::Create),
        ("revoke", CredentialChangeType::Revoke),
        ("update", CredentialChangeType::Update),
        ("delete", CredentialChangeType::Delete),
    ] {
        let payload = json!({ "credential_type": "pin", "change_type": word });
        let read = kind(caep!("credential-change"), &payload);
        assert!(matches!(read, SecurityEventKind::CredentialChange(read) if read.change == change));
    }
    for (word, status) in [
        ("enabled", StreamStatus::Enabled),
        ("paused", StreamStatus::Paused),
        ("disabled", StreamStatus::Disabled),
    ] {
        let read = kind(ssf!("stream-updated"), &json!({ "status": word }));
        assert!(matches!(read, SecurityEventKind::StreamUpdated { status: read, .. } if read == status));
    }
    for (word, level) in [
        ("LOW", RiskLevel::Low),
        ("MEDIUM", RiskLevel::Medium),
        ("HIGH", RiskLevel::High),
    ] {
        let payload = json!({ "principal": "DEVICE", "current_level": word, "previous_level": word });
        let read = kind(caep!("risk-level-change"), &payload);
        assert!(matches!(
            read,
            SecurityEventKind::RiskLevelChange(read) if read.current == level && read.previous == Some(level)
        ));
    }
}

/// The examples of CAEP 1.0 section 3.
#[test]
fn events_of_caep_say_what_they_say() {
    use SecurityEventKind as Kind;
    let claims = json!({ "trusted_network": false, "http://schemas.example/claims/role": "ro-admin" });
    for (event_type, payload, read) in [
        (
            caep!("session-revoked"),
            json!({ "event_timestamp": 1_615_304_991 }),
            Kind::SessionRevoked,
        ),
        (
            caep!("token-claims-change"),
            json!({ "claims": claims }),
            Kind::TokenClaimsChange {
                claims: claims.as_object().cloned().expect("claims"),
            },
        ),
        (
            caep!("credential-change"),
            json!({
                "credential_type": "fido2-roaming",
                "change_type": "create",
                "fido2_aaguid": "accced6a-63f5-490a-9eea-e59bc1896cfc",
                "friendly_name": "Jane's USB authenticator",
                "x509_issuer": 7,
            }),
            Kind::CredentialChange(CredentialChange {
                credential_type: "fido2-roaming".to_owned(),
                change: CredentialChangeType::Create,
                friendly_name: some("Jane's USB authenticator"),
                x509_issuer: None,
                x509_serial: None,
                fido2_aaguid: some("accced6a-63f5-490a-9eea-e59bc1896cfc"),
            }),
        ),
        (
            caep!("assurance-level-change"),
            json!({
                "namespace": "NIST-AAL",
                "current_level": "nist-aal2",
                "previous_level": "nist-aal1",
                "change_direction": "increase",
            }),
            Kind::AssuranceLevelChange(AssuranceLevelChange {
                namespace: "NIST-AAL".to_owned(),
                current_level: "nist-aal2".to_owned(),
                previous_level: some("nist-aal1"),
                direction: Some(ChangeDirection::Increase),
            }),
        ),
        (
            caep!("assurance-level-change"),
            json!({
                "namespace": "Retinal Scan",
                "current_level": "hi-res-scan",
                "previous_level": 1,
                "change_direction": "sideways",
            }),
            Kind::AssuranceLevelChange(AssuranceLevelChange {
                namespace: "Retinal Scan".to_owned(),
                current_level: "hi-res-scan".to_owned(),
                previous_level: None,
                direction: None,
            }),
        ),
        (
            caep!("device-compliance-change"),
            json!({ "current_status": "not-compliant", "previous_status": "compliant" }),
            Kind::DeviceComplianceChange {
                previous: DeviceCompliance::Compliant,
                current: DeviceCompliance::NotCompliant,
            },
        ),
        (
            caep!("session-established"),
            json!({ "fp_ua": "abb0b6e7", "acr": "AAL2", "amr": ["otp", 7, "pwd"], "ext_id": "12345" }),
            Kind::SessionEstablished(EstablishedSession {
                user_agent: some("abb0b6e7"),
                acr: some("AAL2"),
                amr: vec!["otp".to_owned(), "pwd".to_owned()],
                external_id: some("12345"),
            }),
        ),
        (
            caep!("session-presented"),
            json!({ "fp_ua": "abb0b6e7", "ext_id": 12_345 }),
            Kind::SessionPresented {
                user_agent: some("abb0b6e7"),
                external_id: None,
            },
        ),
        (
            caep!("risk-level-change"),
            json!({
                "current_level": "LOW",
                "previous_level": "HIGH",
                "principal": "USER",
                "risk_reason": "PASSWORD_FOUND_IN_DATA_BREACH",
            }),
            Kind::RiskLevelChange(RiskLevelChange {
                reason: some("PASSWORD_FOUND_IN_DATA_BREACH"),
                principal: "USER".to_owned(),
                current: RiskLevel::Low,
                previous: Some(RiskLevel::High),
            }),
        ),
        (
            caep!("risk-level-change"),
            json!({ "current_level": "HIGH", "previous_level": "?", "principal": "x_desk" }),
            Kind::RiskLevelChange(RiskLevelChange {
                reason: None,
                principal: "x_desk".to_owned(),
                current: RiskLevel::High,
                previous: None,
            }),
        ),
    ] {
        assert!(kind(event_type, &payload) == read, "{event_type} {payload}");
    }
}

/// The examples of RISC 1.0 section 2 and SSF 1.0 sections 8.1.4.1 and 8.1.5.
#[test]
fn events_of_risc_and_of_streams_say_what_they_say() {
    use SecurityEventKind as Kind;
    for (event_type, payload, read) in [
        (
            risc!("account-credential-change-required"),
            json!({}),
            Kind::AccountCredentialChangeRequired,
        ),
        (risc!("account-purged"), json!({}), Kind::AccountPurged),
        (
            risc!("account-disabled"),
            json!({ "reason": "hijacking" }),
            Kind::AccountDisabled {
                reason: some("hijacking"),
            },
        ),
        (
            risc!("account-disabled"),
            json!({ "reason": ["hijacking"] }),
            Kind::AccountDisabled { reason: None },
        ),
        (risc!("account-enabled"), json!({}), Kind::AccountEnabled),
        (
            risc!("identifier-changed"),
            json!({ "new-value": "john.roe@example.com" }),
            Kind::IdentifierChanged {
                new_value: some("john.roe@example.com"),
            },
        ),
        (
            risc!("identifier-changed"),
            json!({ "new_value": "john.roe@example.com" }),
            Kind::IdentifierChanged { new_value: None },
        ),
        (risc!("identifier-recycled"), json!({}), Kind::IdentifierRecycled),
        (
            risc!("credential-compromise"),
            json!({ "credential_type": "password" }),
            Kind::CredentialCompromise {
                credential_type: "password".to_owned(),
            },
        ),
        (risc!("opt-in"), json!({}), Kind::OptIn),
        (risc!("opt-out-initiated"), json!({}), Kind::OptOutInitiated),
        (risc!("opt-out-cancelled"), json!({}), Kind::OptOutCancelled),
        (risc!("opt-out-effective"), json!({}), Kind::OptOutEffective),
        (risc!("recovery-activated"), json!({}), Kind::RecoveryActivated),
        (
            risc!("recovery-information-changed"),
            json!({}),
            Kind::RecoveryInformationChanged,
        ),
        (
            risc!("sessions-revoked"),
            json!({ "any": "thing" }),
            Kind::SessionsRevoked,
        ),
        (
            ssf!("verification"),
            json!({ "state": "VGhpcyBpcyBhbiBleGFtcGxlIHN0YXRlIHZhbHVlLgo=" }),
            Kind::Verification {
                state: some("VGhpcyBpcyBhbiBleGFtcGxlIHN0YXRlIHZhbHVlLgo="),
            },
        ),
        (
            ssf!("verification"),
            json!({}),
            Kind::Verification { state: None },
        ),
        (
            ssf!("stream-updated"),
            json!({ "status": "paused", "reason": "Internal error" }),
            Kind::StreamUpdated {
                status: StreamStatus::Paused,
                reason: some("Internal error"),
            },
        ),
    ] {
        assert!(kind(event_type, &payload) == read, "{event_type} {payload}");
    }
}

#[test]
fn a_state_that_is_none_is_not_taken_for_a_verification_nobody_requested() {
    for state in [
        json!(null),
        json!(""),
        json!(7),
        json!(["s"]),
        json!("s".repeat(1_025)),
    ] {
        let read = read(ssf!("verification"), &json!({ "state": state }));
        let missing = SecurityEventError::Payload {
            event_type: ssf!("verification"),
            member: "state",
        };
        assert_eq!(
            read.err().map(|error| error.to_string()),
            Some(missing.to_string()),
            "{state}"
        );
    }
}
