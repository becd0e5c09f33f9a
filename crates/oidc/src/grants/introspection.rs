//! Introspection responses (RFC 7662 section 2.2), plain or signed (RFC 9701 section 5).

use serde_json::{Map, Value};

use crate::json::strict_claims;
use crate::provider::http_client::{INTROSPECTION_ENDPOINT, ProviderResponse};
use crate::tokens::jws::UnverifiedToken;
use crate::{
    AcceptedAlgorithms, AccessTokenError, IdTokenError, ProviderError, ProviderSettings, VerifiedAccessToken,
};

/// The `typ` of a signed response, in full.
const SIGNED: &str = "application/token-introspection+jwt";

/// The token's description in a response.
///
/// # Errors
/// [`AccessTokenError::Inactive`] if the response says so.
pub(crate) fn token(
    said: Map<String, Value>,
    settings: &ProviderSettings,
) -> Result<VerifiedAccessToken, AccessTokenError> {
    match said.get("active") {
        Some(Value::Bool(true)) => VerifiedAccessToken::of_introspection(said, settings),
        Some(Value::Bool(false)) => Err(AccessTokenError::Inactive),
        _ => Err(malformed().into()),
    }
}

/// The members of a plain response.
pub(crate) fn plain(answer: &ProviderResponse) -> Result<Map<String, Value>, ProviderError> {
    strict_claims(answer.text()).ok_or_else(malformed)
}

/// Parses a signed response without verifying it.
pub(crate) fn signed(raw: &str) -> Result<UnverifiedToken<'_>, ProviderError> {
    let token = UnverifiedToken::parse(raw, &AcceptedAlgorithms::Auto).map_err(|_| malformed())?;
    if token.typ.is_none() || !token.type_is(&[SIGNED]) {
        return Err(malformed());
    }
    Ok(token)
}

/// The claims of a verified response that the provider made for this client.
pub(crate) fn said_to_us(
    mut claims: Map<String, Value>,
    settings: &ProviderSettings,
) -> Result<Map<String, Value>, ProviderError> {
    if claims.get("iss").and_then(Value::as_str) != Some(&settings.issuer) {
        return Err(not_for_us(IdTokenError::Issuer));
    }
    let is_us = |one: &Value| one.as_str() == Some(&settings.client_id);
    let to_us = match claims.get("aud") {
        Some(Value::Array(all)) => all.iter().any(is_us),
        Some(one) => is_us(one),
        None => false,
    };
    if !to_us {
        return Err(not_for_us(IdTokenError::Audience));
    }
    match claims.remove("token_introspection") {
        Some(Value::Object(mut said)) => {
            said.retain(|_, value| !value.is_null());
            Ok(said)
        }
        _ => Err(malformed()),
    }
}

/// A response that fails verification, or cannot be verified yet, gives no verdict on the token.
pub(crate) fn unverified(error: IdTokenError) -> AccessTokenError {
    AccessTokenError::Provider(match error {
        IdTokenError::Provider(error) => error,
        other => not_for_us(other),
    })
}

fn not_for_us(error: IdTokenError) -> ProviderError {
    ProviderError::Unverified(INTROSPECTION_ENDPOINT, Box::new(error))
}

fn malformed() -> ProviderError {
    ProviderError::Malformed(INTROSPECTION_ENDPOINT)
}
