//! The contents of a stored ID token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;

/// The claims of an ID token that was verified earlier.
pub(crate) fn claims_of<T: DeserializeOwned>(id_token: &str) -> Option<T> {
    let body = URL_SAFE_NO_PAD.decode(id_token.split('.').nth(1)?).ok()?;
    serde_json::from_slice(&body).ok()
}
