//! What an ID token that is kept says.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::claims::Object;

/// The claims of an ID token that was verified before.
pub(crate) fn claims_of(id_token: &str) -> Option<Object> {
    let body = URL_SAFE_NO_PAD.decode(id_token.split('.').nth(1)?).ok()?;
    serde_json::from_slice(&body).ok()
}
