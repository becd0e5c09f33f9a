//! The decision table of an access token for one API.

use super::super::access::tests::session;
use super::*;
use crate::session::api_token::{ApiToken, ApiTokens, MAX_API_TOKENS};
use crate::session::{AccessToken, Scope, StoredToken};

/// When the session's own access token expires.
const EXPIRES_MS: u64 = 1_000_000;
/// A minute before it expires.
const GOOD_UNTIL_MS: u64 = 940_000;

fn target(audience: &str, scopes: &[&str]) -> ApiTarget {
    let scopes: Vec<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    ApiTarget::new(audience, "", &scopes)
}

fn token(target: &ApiTarget, scope: &str, expires_at_ms: u64) -> ApiToken {
    ApiToken {
        target: target.clone(),
        access: AccessToken {
            value: StoredToken::new(format!("for {}", target.audience)),
            token_type: "Bearer".to_owned(),
            expires_at_ms,
            lifetime_ms: AccessToken::LONG,
        },
        scope: Scope::parse(scope),
        version: 2,
        server: String::new(),
    }
}

#[test]
fn a_token_is_served_for_exactly_what_it_was_requested_for() {
    let orders = target("orders", &["read", "write"]);
    let mut session = session(true, true, false);
    session
        .tokens
        .api
        .put(token(&orders, "read write", EXPIRES_MS), 0);
    let same = target("orders", &["write", "read", "write"]);
    let serves = |target: &ApiTarget| {
        matches!(
            decide_api(&session, target, &ApiTokenSource::AccessToken, false, 0),
            Ok(Decision::Serve(_))
        )
    };
    assert!(serves(&orders) && serves(&same));
    let resource = ApiTarget::new("", "orders", &orders.scopes);
    for other in [
        target("orders", &["read"]),
        target("orders", &[]),
        target("billing", &["read", "write"]),
        resource,
    ] {
        assert!(!serves(&other), "{other:?}");
    }
}

#[test]
fn what_another_is_requested_with_decides_whether_it_can_be_requested() {
    use ApiTokenSource::{AccessToken, RefreshToken};
    let chat = || ApiTokenSource::IdToken("https://auth.chat.example".to_owned());
    use Decision as D;
    use TokenRefusal as R;
    let orders = target("orders", &[]);
    let (active, refused) = (false, true);
    for (access, refresh, state, source, now_ms, expected) in [
        (true, false, active, AccessToken, 0, Ok(D::Request)),
        (true, true, active, AccessToken, EXPIRES_MS, Ok(D::Refresh)),
        (
            true,
            false,
            active,
            AccessToken,
            EXPIRES_MS,
            Err(R::ExpiredAccessToken),
        ),
        (false, true, active, AccessToken, 0, Ok(D::Refresh)),
        (true, false, refused, AccessToken, 0, Ok(D::Request)),
        (
            true,
            false,
            refused,
            AccessToken,
            EXPIRES_MS,
            Err(R::RefusedBefore),
        ),
        (true, true, active, RefreshToken, EXPIRES_MS, Ok(D::Request)),
        (true, false, active, RefreshToken, 0, Err(R::MissingRefreshToken)),
        (true, false, refused, RefreshToken, 0, Err(R::RefusedBefore)),
        (false, false, active, RefreshToken, 0, Err(R::MissingAccessToken)),
        (false, false, active, AccessToken, 0, Err(R::MissingAccessToken)),
        (true, true, active, chat(), 0, Err(R::MissingIdToken)),
    ] {
        let session = session(access, refresh, state);
        let decision = decide_api(&session, &orders, &source, false, now_ms);
        assert_eq!(
            decision, expected,
            "{access} {refresh} {state:?} {source:?} {now_ms}"
        );
    }
}

#[test]
fn an_id_token_is_requested_with_until_it_expires_and_then_refreshed_if_that_is_possible() {
    use Decision as D;
    use TokenRefusal as R;
    let chat = ApiTokenSource::IdToken("https://auth.chat.example".to_owned());
    for (refresh, refused, now_ms, expected) in [
        (false, true, 9_999, Ok(D::Request)),
        (true, false, 10_000, Ok(D::Refresh)),
        (false, false, 10_000, Err(R::ExpiredIdToken)),
        (true, true, 10_000, Err(R::RefusedBefore)),
    ] {
        let mut session = session(true, refresh, refused);
        // {"exp":10}
        session.tokens.id_token = Some(StoredToken::new("e30.eyJleHAiOjEwfQ.e30".to_owned()));
        let decision = decide_api(&session, &target("chat", &[]), &chat, false, now_ms);
        assert_eq!(decision, expected, "{refresh} {refused} {now_ms}");
    }
}

#[test]
fn a_scope_that_was_not_granted_is_not_requested_again_while_the_token_lives() {
    let orders = target("orders", &["read", "write"]);
    let mut session = session(true, true, false);
    session.tokens.api.put(token(&orders, "read", EXPIRES_MS), 0);
    let decided = |force, now_ms| decide_api(&session, &orders, &ApiTokenSource::AccessToken, force, now_ms);
    let refused = Err(TokenRefusal::InsufficientScope(vec!["write".to_owned()]));
    assert_eq!(decided(false, GOOD_UNTIL_MS), refused);
    assert_eq!(decided(false, GOOD_UNTIL_MS + 1), Ok(Decision::Refresh));
    assert_eq!(decided(true, 0), Ok(Decision::Request));
}

#[test]
fn a_session_holds_a_bounded_number_and_the_oldest_goes_first() {
    let mut tokens = ApiTokens::default();
    let of = |nth: usize| target(&format!("api-{nth}"), &[]);
    tokens.put(token(&of(100), "", 10), 0);
    for nth in 0..MAX_API_TOKENS + 3 {
        tokens.put(token(&of(nth), "", EXPIRES_MS), 10);
    }
    assert_eq!(tokens.iter().count(), MAX_API_TOKENS);
    assert!(tokens.get(&of(100)).is_none(), "what has expired goes first");
    assert!(tokens.get(&of(2)).is_none() && tokens.get(&of(3)).is_some());
    tokens.put(token(&of(3), "", EXPIRES_MS), 10);
    assert_eq!(tokens.iter().count(), MAX_API_TOKENS, "one for each target");
}

#[test]
fn what_is_taken_back_is_the_refresh_token_first_and_then_what_lives_long_enough() {
    let mut session = session(true, true, false);
    session
        .tokens
        .api
        .put(token(&target("orders", &[]), "", EXPIRES_MS), 0);
    session
        .tokens
        .api
        .put(token(&target("billing", &[]), "", EXPIRES_MS + 1), 0);
    let values = |now_ms, rotated| -> Vec<String> {
        let revocable = session.tokens.revocable_with(rotated, now_ms);
        revocable
            .iter()
            .map(|token| token.value.text().expose().clone())
            .collect()
    };
    assert_eq!(values(0, None), ["refresh", "for orders", "for billing"]);
    assert_eq!(
        values(EXPIRES_MS - 9_999, Some("rotated")),
        ["rotated", "for billing"]
    );
}
