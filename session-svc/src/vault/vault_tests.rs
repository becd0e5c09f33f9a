//! Which texts open, and the size of a session.

use chassis::clock::ManualClock;
use chassis::secret::Secret;
use chassis::secret::key_ring::NEW_KEY_WAIT_MS;
use proptest::prelude::*;

use super::*;
use crate::session::change::ChangeKind;
use crate::session::{
    AccessToken, ApiTarget, ApiToken, Cause, Claims, CookieGeneration, Device, DeviceBinding, DeviceKey,
    PendingAnswer, Scope, SessionId, SessionTokens, SessionValues, SignInDemand, StoredToken,
};

pub(super) const OLD: &str = "00";
pub(super) const NEW: &str = "ff";

const NAME: Name = Name::from_bytes([7; 16]);

fn ring(keys: &[&str]) -> KeyRing {
    KeyRing::parse(
        &keys
            .iter()
            .map(|key| Secret::new(key.repeat(32)))
            .collect::<Vec<_>>(),
    )
    .unwrap()
}

pub(super) fn vault(keys: &[&str]) -> Vault {
    Vault::new(Reloading::new(ring(keys)))
}

/// A session of the usual size: an opaque access and refresh token, an ID token with five claims.
pub(super) fn session() -> Session {
    let user = concat!(
        r#"{"sub":"auth0|5f7c8ec7c33c6c004bbafe82","email":"ada@example.com","email_verified":true,"name":"Ada Lovelace","#,
        r#""picture":"https://cdn.example.com/avatars/ada.png"}"#
    );
    let device = Device {
        user_agent: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36".to_owned(),
        address: "203.0.113.7".to_owned(),
        at_ms: 1_700_000_000_000,
    };
    let token = |text: &str| StoredToken::new(text.to_owned());
    use base64::Engine as _;
    let part = |bytes: &[u8]| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
    // Sorted by name.
    let body = serde_json::from_str::<serde_json::Value>(user)
        .unwrap()
        .to_string();
    let id_token = format!(
        "{}.{}.{}",
        part(br#"{"alg":"RS256","kid":"key-1"}"#),
        part(body.as_bytes()),
        part(&[7; 256])
    );
    let values = SessionValues {
        issuer: "https://issuer.example.com".to_owned(),
        subject: "auth0|5f7c8ec7c33c6c004bbafe82".to_owned(),
        user: Claims::parse(user.to_owned()).unwrap(),
        tokens: SessionTokens {
            access: Some(AccessToken {
                value: token("mQ3vXbWk8sYt1zN6pL0cR5dF9gH2jK4aSxEuTiOyBnM"),
                token_type: "Bearer".to_owned(),
                expires_at_ms: 1_700_000_300_000,
                lifetime_ms: AccessToken::LONG,
            }),
            scope: Scope::parse("openid profile email offline_access"),
            refresh: Some(token("v1.MRjVkQ8sYt1zN6pL0cR5dF9gH2jK4aSxEuTiOyBnM")),
            id_token: Some(token(&id_token)),
            generation: 1,
            ..Default::default()
        },
        provider_sid: Some("sid-1".to_owned()),
        authenticated_at_ms: Some(1_699_999_999_000),
        created_at_ms: 1_700_000_000_000,
        rolled_at_ms: 1_700_000_060_000,
        not_after_ms: Some(1_700_009_999_999),
        created_on: device.clone(),
        last_seen_on: Device {
            at_ms: 1_700_000_060_000,
            ..device
        },
        needs_sign_in: true,
        ..Default::default()
    };
    Session {
        version: 7,
        ..Session::new(SessionId::from_bytes([3; 16]).handle(), values)
    }
}

#[test]
fn a_session_comes_back_as_it_was() {
    let (vault, session) = (vault(&[NEW]), session());
    let sealed = vault.seal_session(&session).unwrap();
    assert_eq!(vault.open_session(session.handle, 7, &sealed).unwrap(), session);
}

#[test]
fn a_session_whose_cookie_has_rotated_comes_back_with_its_generation_and_its_news() {
    let (vault, mut session) = (vault(&[NEW]), session());
    for (parent, settled) in [(Vec::new(), false), (vec![2; 6], true)] {
        session.cookie_generation = Some(CookieGeneration {
            id: vec![1; 6],
            parent,
            since_ms: 1_700_000_001_000,
            settled,
        });
        session.theft_at_ms = Some(1_690_000_000_000);
        session.operator_notice = Some(crate::session::OperatorNotice {
            at_ms: 1_690_000_000_003,
            text: "We saw a sign-in from abroad.".to_owned(),
        });
        session.sign_in_demand = Some(SignInDemand {
            since_ms: 1_690_000_000_001,
            acr: Some("gold".to_owned()),
        });
        session.claims_told = [("groups".to_owned(), 1_690_000_000_002)].into();
        let sealed = vault.seal_session(&session).unwrap();
        assert_eq!(vault.open_session(session.handle, 7, &sealed).unwrap(), session);
    }
}

#[test]
fn a_session_that_is_bound_to_a_device_comes_back_bound() {
    let (vault, mut session) = (vault(&[NEW]), session());
    session.binding = Some(DeviceBinding {
        key: DeviceKey::parse(r#"{"kty":"EC","crv":"P-256","x":"AA","y":"BB"}"#).unwrap(),
        bound_at_ms: 1_700_000_001_000,
    });
    let sealed = vault.seal_session(&session).unwrap();
    assert_eq!(vault.open_session(session.handle, 7, &sealed).unwrap(), session);
}

#[test]
fn a_pending_answer_comes_back() {
    let (vault, mut session) = (vault(&[NEW]), session());
    for (token_type, scope) in [("Bearer", None), ("DPoP", Some(Scope::parse("openid")))] {
        session.tokens.pending = Some(Box::new(PendingAnswer {
            access: AccessToken {
                value: StoredToken::new("unjudged".to_owned()),
                token_type: token_type.to_owned(),
                expires_at_ms: 1_700_000_600_000,
                lifetime_ms: AccessToken::LONG,
            },
            scope,
            id_token: session.tokens.id_token.clone().unwrap(),
            answered_at_ms: 1_700_000_300_000,
        }));
        let sealed = vault.seal_session(&session).unwrap();
        assert!(!String::from_utf8_lossy(&sealed).contains("unjudged"));
        let name = session.handle;
        assert_eq!(vault.open_session(name, 7, &sealed).unwrap(), session);
    }
}

#[test]
fn tokens_for_apis_come_back_with_all_they_were_requested_with() {
    let (vault, mut session) = (vault(&[NEW]), session());
    let target = |audience, resource, scopes: &[&str]| {
        let scopes: Vec<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        ApiTarget::new(audience, resource, &scopes)
    };
    for (target, token_type) in [
        (target("orders", "", &["write", "read"]), "Bearer"),
        (target("", "https://orders.example/", &[]), "DPoP"),
    ] {
        let token = ApiToken {
            access: AccessToken {
                value: StoredToken::new(format!("secret of {target:?}")),
                token_type: token_type.to_owned(),
                expires_at_ms: 1_700_000_900_000,
                lifetime_ms: AccessToken::LONG,
            },
            scope: Scope::parse("read"),
            version: 6,
            server: String::new(),
            target,
        };
        session.tokens.api.put(token, 0);
    }
    session.tokens.other_grants = 3;
    let sealed = vault.seal_session(&session).unwrap();
    assert!(!String::from_utf8_lossy(&sealed).contains("orders"));
    let opened = vault.open_session(session.handle, 7, &sealed).unwrap();
    assert_eq!(opened, session);
    assert!(!format!("{opened:?}").contains("secret"));
}

// conformance: B-028
#[test]
fn nothing_readable_is_in_a_sealed_session() {
    let session = session();
    let sealed = vault(&[NEW]).seal_session(&session).unwrap();
    let text = String::from_utf8_lossy(&sealed);
    for secret in ["Ada", "auth0|", "mQ3vXb", "issuer.example", "Mozilla"] {
        assert!(!text.contains(secret), "{secret}");
    }
}

#[test]
fn a_session_of_the_usual_size_leaves_room_in_its_budget() {
    let sealed = vault(&[NEW]).seal_session(&session()).unwrap();
    assert!(sealed.len() <= 1_000, "{} bytes", sealed.len());
}

#[test]
fn a_swapped_or_rolled_back_record_does_not_open() {
    let (vault, session) = (vault(&[NEW]), session());
    let name = session.handle;
    let sealed = vault.seal_session(&session).unwrap();
    let other = SessionId::from_bytes([4; 16]).handle();
    assert!(matches!(
        vault.open_session(other, 7, &sealed),
        Err(SealError::NotReadable)
    ));
    assert!(matches!(
        vault.open_session(name, 8, &sealed),
        Err(SealError::NotReadable)
    ));
    assert!(matches!(
        vault.open_note("page", name, &sealed),
        Err(SealError::NotReadable)
    ));
}

#[test]
fn letters_that_move_between_purpose_name_and_version_are_bound_otherwise() {
    let bound = bound_to("ab", "c", 1);
    for other in [
        bound_to("a", "bc", 1),
        bound_to("abc", "", 1),
        bound_to("xy", "c", 1),
        bound_to("ab", "x", 1),
        bound_to("ab", "c", 2),
    ] {
        assert_ne!(bound, other);
    }
}

#[test]
fn the_same_session_never_looks_the_same() {
    let (vault, session) = (vault(&[NEW]), session());
    let sealed = || vault.seal_session(&session).unwrap();
    assert_ne!(sealed(), sealed());
}

#[test]
fn what_a_later_release_wrote_is_not_shown() {
    let carried = chassis::secret::Secret::new(b"hunter2".to_vec());
    assert_eq!(format!("{carried:?}"), "…");
}

#[test]
fn an_older_key_still_opens_and_the_first_one_seals() {
    let session = session();
    let name = session.handle;
    let sealed_before = vault(&[OLD]).seal_session(&session).unwrap();
    let during = vault(&[NEW, OLD]);
    assert!(during.open_session(name, 7, &sealed_before).is_ok());
    let sealed_during = during.seal_session(&session).unwrap();
    let after = vault(&[NEW]);
    assert!(after.open_session(name, 7, &sealed_during).is_ok());
    assert!(matches!(
        after.open_session(name, 7, &sealed_before),
        Err(SealError::UnknownKey(_))
    ));
}

#[test]
fn a_new_first_key_opens_at_once_and_seals_after_its_wait() {
    let clock = ManualClock::new(1);
    let keys = Reloading::new(ring(&[OLD]));
    let changed = Vault {
        clock: Arc::new(clock.clone()),
        ..Vault::new(keys.clone())
    };
    keys.store(keys.load().replaced_by(ring(&[NEW, OLD]), clock.monotonic_ms()));
    let sealed_by_new = vault(&[NEW]).seal_note("p", NAME, b"note").unwrap();
    assert!(changed.open_note("p", NAME, &sealed_by_new).is_ok());
    let sealed = || changed.seal_note("p", NAME, b"note").unwrap();
    assert!(vault(&[OLD]).open_note("p", NAME, &sealed()).is_ok());
    clock.advance_ms(NEW_KEY_WAIT_MS);
    let unknown = vault(&[OLD]).open_note("p", NAME, &sealed()).unwrap_err();
    let fingerprint = &sealed_by_new[1..=KEY_ID_BYTES];
    assert!(matches!(unknown, SealError::UnknownKey(key) if key.0 == fingerprint));
}

#[test]
fn a_replaced_ring_is_used_at_once() {
    let keys = Reloading::new(ring(&[OLD]));
    let vault = Vault::new(keys.clone());
    keys.store(ring(&[NEW, OLD]));
    let sealed = vault.seal_note("p", NAME, b"note").unwrap();
    assert_eq!(
        Vault::new(Reloading::new(ring(&[NEW])))
            .open_note("p", NAME, &sealed)
            .unwrap(),
        b"note"
    );
}

#[test]
fn a_newer_format_is_told_from_a_broken_text() {
    let vault = vault(&[NEW]);
    let mut sealed = vault.seal_note("p", NAME, b"note").unwrap();
    sealed[0] = FORMAT + 1;
    assert!(matches!(
        vault.open_note("p", NAME, &sealed),
        Err(SealError::UnknownFormat)
    ));
    assert!(matches!(
        vault.open_note("p", NAME, &[]),
        Err(SealError::NotReadable)
    ));
}

#[test]
fn a_change_comes_back_as_it_was() {
    let vault = vault(&[NEW]);
    for kind in [
        ChangeKind::Created,
        ChangeKind::Rolled,
        ChangeKind::Refreshed,
        ChangeKind::Changed,
        ChangeKind::Ended,
    ] {
        let change = SessionChange {
            kind,
            handle: session().handle,
            issuer: "i".to_owned(),
            subject: "s".to_owned(),
            at_ms: 5,
            cause: Some(Cause::Logout),
        };
        assert_eq!(
            vault.open_change(&vault.seal_change(&change).unwrap()).unwrap(),
            change
        );
    }
}

proptest! {
    #[test]
    fn no_changed_or_cut_text_opens_and_none_panics(at in 0usize..500, bit in 0u8..8, length in 0usize..500) {
        let (vault, session) = (vault(&[NEW]), session());
        let name = session.handle;
        let sealed = vault.seal_session(&session).unwrap();
        let mut flipped = sealed.clone();
        flipped[at] ^= 1 << bit;
        prop_assert!(vault.open_session(name, 7, &flipped).is_err());
        prop_assert!(vault.open_session(name, 7, &sealed[..length]).is_err());
    }

    #[test]
    fn two_different_tuples_are_never_bound_alike(
        a in "[ab]{0,3}", b in "[ab]{0,3}", c in "[ab]{0,3}", d in "[ab]{0,3}", v in 0..2_u64, w in 0..2_u64,
    ) {
        if (&a, &b, v) != (&c, &d, w) {
            prop_assert_ne!(bound_to(&a, &b, v), bound_to(&c, &d, w));
        }
    }

    #[test]
    fn stored_bytes_of_any_kind_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = wire::session_from_bytes(session().handle, 1, bytes.clone().into());
        let _ = wire::change_from_bytes(&bytes);
    }
}
