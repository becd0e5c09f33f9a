//! Userinfo (OpenID Connect Core 5.3).

use serde_json::{Map, Value};

use crate::{PROTOCOL_CLAIMS, UserinfoError};

/// Further claims that only the ID token may set; userinfo cannot override them.
const PROTECTED: [&str; 4] = ["acr", "amr", "org_id", "org_name"];

/// Checks the subject, and removes the claims that userinfo must not set.
pub(crate) fn about(
    mut claims: Map<String, Value>,
    expected_sub: &str,
) -> Result<Map<String, Value>, UserinfoError> {
    if claims.get("sub").and_then(Value::as_str) != Some(expected_sub) {
        return Err(UserinfoError::Subject);
    }
    claims.retain(|name, _| !PROTECTED.contains(&name.as_str()) && !PROTOCOL_CLAIMS.contains(&name.as_str()));
    Ok(claims)
}
