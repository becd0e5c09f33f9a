//! Sessions of usual size, one per person: opaque tokens, an ID token of five claims, one browser.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use session_svc::session::{
    AccessToken, Claims, Device, Handle, Scope, Session, SessionTokens, SessionValues, StoredToken, index,
};
use session_svc::store::Record;
use session_svc::vault::Vault;

pub(crate) const ISSUER: &str = "https://issuer.example.com";

pub(crate) fn handle(number: u64) -> Handle {
    let mixed = u128::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    Handle::from_bytes(mixed.to_be_bytes())
}

pub(crate) fn subject(number: u64) -> String {
    format!("auth0|{:024x}", u128::from(number) * 0x9e37_79b9_7f4a)
}

/// The record of a session, found by person and by provider session.
pub(crate) fn record(vault: &Vault, number: u64, now_ms: u64, ttl_ms: u64) -> Record {
    let subject = subject(number);
    let user = serde_json::json!({
        "sub": subject, "name": "Ada Lovelace", "email": "ada@example.com",
        "email_verified": true, "picture": "https://cdn.example.com/avatars/ada.png",
    })
    .to_string();
    let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let id_token = [
        part(br#"{"alg":"RS256","kid":"key-1"}"#),
        part(user.as_bytes()),
        part(&[7; 256]),
    ];
    let device = Device {
        user_agent: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36".to_owned(),
        address: "203.0.113.7".to_owned(),
        at_ms: now_ms,
    };
    let token = |text: &str| StoredToken::new(text.to_owned());
    let sid = format!("sid-{number:020}");
    let values = SessionValues {
        issuer: ISSUER.to_owned(),
        subject: subject.clone(),
        user: Claims::of_kept(user),
        tokens: SessionTokens {
            access: Some(AccessToken {
                value: token("mQ3vXbWk8sYt1zN6pL0cR5dF9gH2jK4aSxEuTiOyBnM"),
                token_type: "Bearer".to_owned(),
                expires_at_ms: now_ms + 300_000,
                lifetime_ms: AccessToken::LONG,
            }),
            scope: Scope::parse("openid profile email"),
            refresh: Some(token("v1.Mr5mQ3vXbWk8sYt1zN6pL0cR5dF9gH2jK4aSxEuTiOyBnM")),
            id_token: Some(token(&id_token.join("."))),
            generation: 0,
            ..Default::default()
        },
        provider_sid: Some(sid.clone()),
        authenticated_at_ms: Some(now_ms),
        created_at_ms: now_ms,
        rolled_at_ms: now_ms,
        created_on: device.clone(),
        last_seen_on: device,
        ..Default::default()
    };
    let session = Session::new(handle(number), values);
    Record {
        name: session.handle,
        version: 1,
        expires_at_ms: now_ms + ttl_ms,
        created_at_ms: now_ms,
        indexes: vec![
            index::by_subject(ISSUER, &subject),
            index::by_provider_sid(ISSUER, &sid),
        ],
        payload: vault.seal_session(&session).unwrap(),
    }
}
