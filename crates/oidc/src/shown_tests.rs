//! Logs contain no secrets and no control characters from the provider.

use serde_json::json;

use crate::{ClientAuth, ClientSecret, IdToken, OAuthError, ProviderSettings, RefreshedTokens, TokenSet};

const SECRET: &str = "hunter2";

#[test]
fn secrets_tokens_and_people_are_in_no_debug_output() {
    let mut settings = ProviderSettings::new("https://op.example", "client");
    settings.credentials.auth = ClientAuth::SecretPost(ClientSecret::new(SECRET.to_owned()));
    let tokens = TokenSet {
        access_token: SECRET.to_owned(),
        token_type: "Bearer".to_owned(),
        scope: "openid".to_owned(),
        expires_at: 1,
        refresh_token: Some(SECRET.to_owned()),
        id_token: SECRET.to_owned(),
    };
    let refreshed = RefreshedTokens {
        access_token: SECRET.to_owned(),
        token_type: "Bearer".to_owned(),
        scope: None,
        expires_at: 1,
        lifetime_secs: 1,
        refresh_token: Some(SECRET.to_owned()),
        id_token: Some(SECRET.to_owned()),
    };
    let id_token = IdToken {
        claims: json!({ "email": SECRET })
            .as_object()
            .cloned()
            .unwrap_or_default(),
        iss: "https://op.example".to_owned(),
        sub: SECRET.to_owned(),
        sid: Some(SECRET.to_owned()),
        auth_time: None,
        iat: 1,
        session_expiry: None,
    };
    for shown in [
        format!("{settings:?}"),
        format!("{:?}", settings.credentials),
        format!("{tokens:?}"),
        format!("{refreshed:?}"),
        format!("{id_token:?}"),
    ] {
        assert!(!shown.contains(SECRET), "{shown}");
    }
}

#[test]
fn of_a_refusal_only_the_letters_of_an_error_code_are_kept() {
    let refusal = OAuthError::new("invalid_grant\r\n<script>\u{1b}[31m ä");
    assert_eq!(refusal.to_string(), "invalid_grantscript31m");
    assert_eq!(OAuthError::new(&"e".repeat(100)).code().len(), 64);
}
