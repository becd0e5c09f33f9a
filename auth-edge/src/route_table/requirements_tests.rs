//! A guard's requirements on a session.

use serde_json::json;
use session_proto::timestamp;
use session_proto::v1::Session;

use super::*;
use crate::route_table::claims::ClaimRequirement;
use crate::sessions::CachedSession;
use crate::values::claim_path::ClaimPath;

const NOW_MS: u64 = 1_000_000;

fn session(user: Value) -> Session {
    Session {
        user: user.to_string(),
        authenticated_at: Some(timestamp::from_ms(NOW_MS - 60_000)),
        ..Session::default()
    }
}

fn passes(user: Value, requirements: Requirements) -> bool {
    requirements
        .check((&*CachedSession::new(session(user))).into(), NOW_MS)
        .is_ok()
}

#[test]
fn a_sign_in_may_be_as_old_as_asked_and_no_older() {
    assert!(passes(
        json!({}),
        Requirements {
            max_age_secs: Some(60),
            ..Requirements::default()
        }
    ));
    assert!(!passes(
        json!({}),
        Requirements {
            max_age_secs: Some(59),
            ..Requirements::default()
        }
    ));
}

#[test]
fn a_sign_in_at_an_unknown_time_is_not_young_however_much_is_asked() {
    let undated = Session {
        authenticated_at: None,
        ..session(json!({}))
    };
    let undated = CachedSession::new(undated);
    for (max_age_secs, passes) in [(Some(0), false), (Some(u64::MAX), false), (None, true)] {
        let requirements = Requirements {
            max_age_secs,
            ..Requirements::default()
        };
        assert_eq!(
            requirements.check((&*undated).into(), NOW_MS).is_ok(),
            passes,
            "{max_age_secs:?}"
        );
    }
}

#[test]
fn one_of_the_classes_asked_for_is_enough() {
    let requirements = || Requirements {
        acr: vec!["gold".into(), "silver".into()],
        ..Requirements::default()
    };
    assert!(passes(json!({"acr": "silver"}), requirements()));
    assert!(!passes(json!({"acr": "bronze"}), requirements()));
    assert!(!passes(json!({}), requirements()));
}

#[test]
fn an_organization_is_its_id_exactly_or_its_name_in_any_case() {
    let requirements = |organization: &str| Requirements {
        organization: Some(organization.to_owned()),
        ..Requirements::default()
    };
    assert!(passes(
        json!({"org_id": "org_1", "org_name": "Acme"}),
        requirements("org_1")
    ));
    assert!(!passes(
        json!({"org_id": "ORG_1", "org_name": "org_1"}),
        requirements("org_1")
    ));
    assert!(passes(json!({"org_name": "Acme"}), requirements("acme")));
    assert!(!passes(json!({}), requirements("acme")));
}

#[test]
fn a_claim_has_the_value_or_lists_it() {
    let requirements = || Requirements {
        claims: vec![ClaimRequirement {
            claim: ClaimPath::parse("groups").unwrap(),
            any_of: vec!["admin".into()],
        }],
        ..Requirements::default()
    };
    assert!(passes(json!({"groups": "admin"}), requirements()));
    assert!(passes(json!({"groups": ["staff", "admin"]}), requirements()));
    assert!(!passes(json!({"groups": ["administrators"]}), requirements()));
    assert!(!passes(json!({}), requirements()));
}
