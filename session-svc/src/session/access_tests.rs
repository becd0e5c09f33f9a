//! The decision table for a required access token.

use super::*;
use crate::session::{Scope, SessionId, SessionTokens, SessionValues, StoredToken};

const EXPIRES_MS: u64 = 1_000_000;

pub(crate) fn session(access: bool, refresh: bool, needs_sign_in: bool) -> Session {
    let access = access.then(|| AccessToken {
        value: StoredToken::new("token".to_owned()),
        token_type: "Bearer".to_owned(),
        expires_at_ms: EXPIRES_MS,
        lifetime_ms: AccessToken::LONG,
    });
    let tokens = SessionTokens {
        access,
        scope: Scope::parse("openid email"),
        refresh: refresh.then(|| StoredToken::new("refresh".to_owned())),
        id_token: None,
        generation: 1,
        pending: None,
        ..Default::default()
    };
    let values = SessionValues {
        issuer: "https://issuer.example".to_owned(),
        subject: "sub".to_owned(),
        tokens,
        needs_sign_in,
        ..Default::default()
    };
    Session::new(SessionId::from_bytes([1; 16]).handle(), values)
}

fn decided(session: &Session, force: bool, now_ms: u64) -> Result<Decision, TokenRefusal> {
    decide(session, &[], force, now_ms)
}

#[test]
fn neither_token_is_a_missing_access_token_before_anything_else() {
    let session = session(false, false, false);
    let scopes = ["unknown".to_owned()];
    assert_eq!(
        decide(&session, &scopes, true, 0),
        Err(TokenRefusal::MissingAccessToken)
    );
}

#[test]
fn a_scope_not_granted_is_refused_before_a_refresh_is_thought_of() {
    let scopes = ["email".to_owned(), "orders:read".to_owned()];
    for force in [false, true] {
        let refused = decide(&session(true, true, false), &scopes, force, EXPIRES_MS);
        assert_eq!(
            refused,
            Err(TokenRefusal::InsufficientScope(vec!["orders:read".to_owned()]))
        );
    }
}

#[test]
fn a_forced_refresh_needs_a_refresh_token_even_if_the_token_is_good() {
    assert_eq!(
        decided(&session(true, false, false), true, 0),
        Err(TokenRefusal::MissingRefreshToken)
    );
    assert_eq!(
        decided(&session(true, true, false), true, 0),
        Ok(Decision::Refresh)
    );
}

// conformance: B-111
#[test]
fn exactly_the_margin_left_is_valid_and_one_millisecond_less_is_expired() {
    let session = session(true, false, false);
    assert!(matches!(
        decided(&session, false, EXPIRES_MS - EXPIRY_MARGIN_MS),
        Ok(Decision::Serve(_))
    ));
    assert_eq!(
        decided(&session, false, EXPIRES_MS - EXPIRY_MARGIN_MS + 1),
        Err(TokenRefusal::ExpiredAccessToken)
    );
}

#[test]
fn expired_or_absent_with_a_refresh_token_is_refreshed() {
    assert_eq!(
        decided(&session(true, true, false), false, EXPIRES_MS),
        Ok(Decision::Refresh)
    );
    assert_eq!(
        decided(&session(false, true, false), false, 0),
        Ok(Decision::Refresh)
    );
}

#[test]
fn a_refused_refresh_token_is_not_tried_again_but_a_good_token_is_still_served() {
    let session = session(true, false, true);
    assert!(matches!(decided(&session, false, 0), Ok(Decision::Serve(_))));
    assert_eq!(decided(&session, true, 0), Err(TokenRefusal::RefusedBefore));
    assert_eq!(
        decided(&session, false, EXPIRES_MS),
        Err(TokenRefusal::RefusedBefore)
    );
}

#[test]
fn inside_the_margin_a_token_is_still_good_until_it_really_expires() {
    let session = session(true, true, false);
    assert!(still_good(&session, EXPIRES_MS - 1).is_some());
    assert!(still_good(&session, EXPIRES_MS).is_none());
}

#[test]
fn the_margin_is_at_most_half_of_the_tokens_lifetime() {
    for (lifetime_ms, margin_ms) in [
        (30_000, 15_000),
        (60_000, 30_000),
        (119_000, 59_500),
        (120_000, EXPIRY_MARGIN_MS),
    ] {
        let mut session = session(true, false, false);
        if let Some(access) = &mut session.tokens.access {
            access.lifetime_ms = lifetime_ms;
        }
        let last_ms = EXPIRES_MS - margin_ms;
        assert!(
            matches!(decided(&session, false, last_ms), Ok(Decision::Serve(_))),
            "{lifetime_ms}"
        );
        assert_eq!(
            decided(&session, false, last_ms + 1),
            Err(TokenRefusal::ExpiredAccessToken)
        );
    }
}
