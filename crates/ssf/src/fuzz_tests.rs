//! All claims are one event about one subject, or refused. No input panics. The seeds are in `seeds/`.

#[path = "../../oidc/src/fuzz_tests/mutated.rs"]
mod mutated;

use serde_json::{Map, Value};

use self::mutated::run;
use crate::strict_json::strict_object;
use crate::{EventSubject, SecurityEventToken, SubjectIdentifier};

const ISSUER: &str = "https://op.example";
const NOW: u64 = 1_800_000_000;

#[test]
fn security_events_of_any_shape_are_one_event_about_one_subject_or_refused() {
    let audiences = ["client".to_owned()];
    let is_bounded = |identifiers: &[SubjectIdentifier]| {
        let shown = format!("{identifiers:?}");
        (1..=16).contains(&identifiers.len()) && !shown.contains("alice") && !shown.contains("user@")
    };
    run("security_event", |bytes| {
        let read = strict_object(bytes);
        if let Some(claims) = &read {
            let anybody: Map<String, Value> = serde_json::from_slice(bytes).expect("an object");
            assert_eq!(claims, &anybody);
        }
        let claims = read.unwrap_or_default();
        let Ok(token) = SecurityEventToken::validate(&claims, ISSUER, &audiences, false, NOW) else {
            return;
        };
        assert_eq!(claims["iss"], ISSUER);
        assert!(
            ["exp", "sub", "nonce"]
                .iter()
                .all(|name| !claims.contains_key(*name))
        );
        assert!((1..=512).contains(&token.jti.len()) && token.occurred_at <= NOW + 60);
        assert!(
            token
                .event
                .reason
                .is_none_or(|text| !text.contains(char::is_control))
        );
        match token.subject {
            EventSubject::Simple(identifiers) => assert!(is_bounded(&identifiers)),
            EventSubject::Complex { user, session } => {
                assert!(user.is_none_or(|user| is_bounded(&user)));
                assert!(session.is_empty() || is_bounded(&session));
            }
        }
    });
}
