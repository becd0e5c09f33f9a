//! The contents of a stored ID token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;

use super::StoredToken;
use super::claims::Object;

/// The claims of an ID token that was verified earlier.
pub(crate) fn claims_of<T: DeserializeOwned>(id_token: &str) -> Option<T> {
    let body = URL_SAFE_NO_PAD.decode(id_token.split('.').nth(1)?).ok()?;
    serde_json::from_slice(&body).ok()
}

/// Whether an ID token has not expired at this time, in milliseconds since the Unix epoch.
pub(crate) fn is_valid_at(id_token: &StoredToken, now_ms: u64) -> bool {
    let claims = claims_of::<Object>(id_token.text().expose());
    let exp = claims.and_then(|claims| oidc::numeric_date(claims.get("exp")?));
    exp.is_some_and(|exp| now_ms / 1_000 < exp)
}
