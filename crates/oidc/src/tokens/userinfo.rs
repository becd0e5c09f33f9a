//! Userinfo (OpenID Connect Core 5.3).

use serde_json::{Map, Value};

use crate::UserinfoError;

/// What only the ID token may say; userinfo can not override it.
const PROTECTED: [&str; 16] = [
    "iss",
    "aud",
    "exp",
    "iat",
    "nbf",
    "sid",
    "auth_time",
    "acr",
    "amr",
    "azp",
    "nonce",
    "at_hash",
    "c_hash",
    "s_hash",
    "org_id",
    "org_name",
];

/// Checks whom the claims are about and leaves out what userinfo may not say.
pub(crate) fn about(
    mut claims: Map<String, Value>,
    expected_sub: &str,
) -> Result<Map<String, Value>, UserinfoError> {
    if claims.get("sub").and_then(Value::as_str) != Some(expected_sub) {
        return Err(UserinfoError::Subject);
    }
    claims.retain(|name, _| !PROTECTED.contains(&name.as_str()));
    Ok(claims)
}
