//! Answers of the token endpoint (RFC 6749 sections 5 and 6, OpenID Connect Core 3.1.3 and 12).
//!
//! Legal but unusual responses are accepted: no `scope` or `refresh_token`; `expires_in` absent or quoted.

use serde_json::{Map, Value};

use crate::error::oauth_error::client_hint;
use crate::json::numeric_date;
use crate::provider::http_client::ProviderResponse;
use crate::settings::DEFAULT_TOKEN_LIFETIME_SECS;
use crate::{GrantError, OAuthError, ProviderError, ProviderSettings, RefreshedTokens, TokenSet};

/// Upper bound of an access token's lifetime: a year, even if the response says more.
const LONGEST_LIFETIME_SECS: u64 = 365 * 86_400;

/// The accepted types of a token from an exchange (RFC 8693, section 3).
const ACCESS_TOKEN_TYPES: [&str; 2] = [
    "urn:ietf:params:oauth:token-type:access_token",
    "urn:ietf:params:oauth:token-type:jwt",
];

/// The type of an assertion for an API's authorization server
/// (draft-ietf-oauth-identity-assertion-authz-grant-03, section 4.3).
pub(crate) const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// The OAuth error of a refusal; `None` for an outage. Some providers refuse with status 200.
fn refusal(answer: &ProviderResponse, settings: &ProviderSettings) -> Option<OAuthError> {
    let may_refuse = matches!(answer.status, 200 | 400 | 401 | 403);
    let document: Map<String, Value> = answer.json().ok().filter(|_| may_refuse)?;
    let error = document
        .get("error")?
        .as_str()
        .filter(|error| !error.is_empty())?;
    let transient = matches!(error, "temporarily_unavailable" | "server_error" | "slow_down");
    (!transient).then(|| OAuthError::of_answer(error, &document, answer.status, settings))
}

/// The error of an answer without tokens that is no refusal. Some providers reject a client by status alone.
fn outage(answer: &ProviderResponse, settings: &ProviderSettings) -> ProviderError {
    let document: Option<Map<String, Value>> = answer.json().ok();
    let is_told = document.is_some_and(|document| document.contains_key("error"));
    if is_told || !matches!(answer.status, 401 | 403) {
        return answer.status_error();
    }
    ProviderError::ClientRefused(answer.endpoint, answer.status, client_hint(settings))
}

/// The error of an answer without usable content.
pub(crate) fn refused(answer: &ProviderResponse, settings: &ProviderSettings) -> ProviderError {
    refusal(answer, settings).map_or_else(
        || outage(answer, settings),
        |refusal| ProviderError::Refused(answer.endpoint, refusal),
    )
}

/// Reads the answer to a code grant.
pub(crate) fn code_answer(
    answer: &ProviderResponse,
    settings: &ProviderSettings,
    now: u64,
) -> Result<TokenSet, GrantError> {
    let tokens = refresh_answer(answer, settings, now).map_err(|error| match error {
        GrantError::Transient(ProviderError::Status { .. }) => outage(answer, settings).into(),
        other => other,
    })?;
    Ok(TokenSet {
        access_token: tokens.access_token,
        token_type: tokens.token_type,
        scope: tokens.scope.unwrap_or_else(|| settings.scope.clone()),
        expires_at: tokens.expires_at,
        refresh_token: tokens.refresh_token,
        id_token: tokens.id_token.ok_or(GrantError::Unusable("no ID token"))?,
    })
}

/// Reads the answer to a refresh grant. A status alone does not mean a wrong secret: the provider accepted
/// this client at the sign-in, and the status may come from a proxy.
pub(crate) fn refresh_answer(
    answer: &ProviderResponse,
    settings: &ProviderSettings,
    now: u64,
) -> Result<RefreshedTokens, GrantError> {
    let document = granted(answer, settings)?;
    let access_token = text(&document, "access_token").ok_or(GrantError::Unusable("no access token"))?;
    let token_type = token_type(&document, settings)
        .ok_or(GrantError::Unusable("another token type than the one asked for"))?;
    let lifetime_secs = lifetime_secs(&document);
    Ok(RefreshedTokens {
        access_token,
        token_type: token_type.to_owned(),
        scope: text(&document, "scope"),
        expires_at: now.saturating_add(lifetime_secs),
        lifetime_secs,
        refresh_token: text(&document, "refresh_token"),
        id_token: text(&document, "id_token"),
    })
}

/// The document of an answer that grants a token.
fn granted(answer: &ProviderResponse, settings: &ProviderSettings) -> Result<Map<String, Value>, GrantError> {
    if let Some(refusal) = refusal(answer, settings) {
        return Err(GrantError::Refused(refusal));
    }
    if answer.status != 200 {
        return Err(answer.status_error().into());
    }
    let document: Map<String, Value> = answer.json()?;
    // `temporarily_unavailable` and similar codes with a success status.
    if text(&document, "error").is_some() {
        return Err(answer.status_error().into());
    }
    Ok(document)
}

/// The assertion for an API's authorization server in the answer to a token exchange (RFC 8693, section 2.2.1).
pub(crate) fn assertion_answer(
    answer: &ProviderResponse,
    settings: &ProviderSettings,
) -> Result<String, GrantError> {
    let document = granted(answer, settings)?;
    if text(&document, "issued_token_type").as_deref() != Some(ID_JAG) {
        return Err(GrantError::Unusable("another kind of token than an assertion"));
    }
    if !text(&document, "token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("N_A")) {
        return Err(GrantError::Unusable("the token type of an assertion is not N_A"));
    }
    text(&document, "access_token").ok_or(GrantError::Unusable("no assertion"))
}

/// Reads the answer to a token exchange (RFC 8693, section 2.2.1).
pub(crate) fn exchange_answer(
    answer: &ProviderResponse,
    settings: &ProviderSettings,
    now: u64,
) -> Result<RefreshedTokens, GrantError> {
    let tokens = refresh_answer(answer, settings, now)?;
    let document: Map<String, Value> = answer.json()?;
    // An absent type counts as the requested one: `token_type` was checked already.
    if text(&document, "issued_token_type").is_some_and(|kind| !ACCESS_TOKEN_TYPES.contains(&kind.as_str())) {
        return Err(GrantError::Unusable("another kind of token than an access token"));
    }
    Ok(RefreshedTokens {
        refresh_token: None,
        id_token: None,
        ..tokens
    })
}

/// The `request_uri` of a pushed request: status 201 (RFC 9126 section 2.2), or 200 as some providers answer.
pub(crate) fn pushed_answer(
    answer: &ProviderResponse,
    settings: &ProviderSettings,
) -> Result<String, ProviderError> {
    let document: Map<String, Value> = match answer.status {
        201 => answer.json()?,
        200 if refusal(answer, settings).is_none() => answer.json()?,
        _ => return Err(refused(answer, settings)),
    };
    let lives = document
        .get("expires_in")
        .and_then(numeric_date)
        .is_some_and(|secs| secs > 0);
    text(&document, "request_uri")
        .filter(|_| lives)
        .ok_or_else(|| answer.malformed())
}

fn text(document: &Map<String, Value>, name: &str) -> Option<String> {
    document
        .get(name)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

/// The token type, if it is the requested one. A bearer token in place of a bound one is rejected: a thief could
/// use it. Some providers omit the type if it is `Bearer`.
fn token_type(document: &Map<String, Value>, settings: &ProviderSettings) -> Option<&'static str> {
    let wanted = if settings.credentials.dpop_key.is_some() {
        "DPoP"
    } else {
        "Bearer"
    };
    let kind = match document.get("token_type") {
        None | Some(Value::Null) => "Bearer",
        Some(kind) => kind.as_str()?,
    };
    kind.eq_ignore_ascii_case(wanted).then_some(wanted)
}

/// `expires_in` as a number or in quotes. Negative counts as 0, unreadable as the default, more than a year as one.
fn lifetime_secs(document: &Map<String, Value>) -> u64 {
    let lifetime = match document.get("expires_in") {
        Some(Value::String(text)) => text.trim().parse::<f64>().ok(),
        Some(value) => value.as_f64(),
        None => None,
    };
    let secs = match lifetime.filter(|secs| !secs.is_nan()) {
        None => DEFAULT_TOKEN_LIFETIME_SECS,
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates"
        )]
        Some(secs) => secs as u64,
    };
    secs.min(LONGEST_LIFETIME_SECS)
}
