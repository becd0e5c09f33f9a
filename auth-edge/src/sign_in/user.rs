//! The claims that a session stores about a user: the text of a JSON object, as in the session service.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Error, Map, Value};

/// Claims by name, each as its original text: no number is rounded.
type RawClaims = BTreeMap<String, Box<RawValue>>;

/// The text of the claims of a verified ID token.
#[must_use]
pub(crate) fn of_id_token(id_token: &str) -> Option<String> {
    let payload = id_token.split('.').nth(1)?;
    String::from_utf8(URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

/// Merges ID-token claims, userinfo over them, and `further` claims that neither has. Drops filtered claims
/// and tokens. `sub` is always the ID token's. It comes first, which makes the stored session smallest.
///
/// # Errors
/// The claims are not the text of a JSON object.
pub(crate) fn user(
    claims: &str,
    userinfo: Option<Map<String, Value>>,
    further: Map<String, Value>,
    filter: &[String],
) -> Result<String, Error> {
    let mut user: RawClaims = serde_json::from_str(claims)?;
    let subject = user.remove("sub");
    for (claim, value) in userinfo.unwrap_or_default() {
        user.insert(claim, to_raw_value(&value)?);
    }
    for (claim, value) in further {
        user.entry(claim).or_insert(to_raw_value(&value)?);
    }
    let is_kept = |claim: &str| claim != "sub" && !filter.iter().any(|filtered| filtered == claim);
    let mut shareable = RawClaims::new();
    for (claim, value) in user.into_iter().filter(|(claim, _)| is_kept(claim)) {
        match oidc::user_claim(&claim, value.get()) {
            Some(Cow::Borrowed(_)) => _ = shareable.insert(claim, value),
            Some(Cow::Owned(text)) => _ = shareable.insert(claim, RawValue::from_string(text)?),
            None => {}
        }
    }
    let user = shareable;
    let others = serde_json::to_string(&user)?;
    let Some(subject) = subject else {
        return Ok(others);
    };
    let comma = if user.is_empty() { "" } else { "," };
    Ok(format!(r#"{{"sub":{subject}{comma}{}"#, &others[1..]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn protocol_claims_go_and_userinfo_adds_but_never_renames_the_person() {
        let id_token = r#"{"sub": "ada", "iss": "x", "nonce": "n", "name": "A", "rate": 1.10}"#;
        let userinfo = json!({"sub": "eve", "name": "Ada", "email": "a@example.test", "iss": "y"});
        let filter = ["iss".to_owned(), "nonce".to_owned(), "sub".to_owned()];
        let further = json!({"sub": "eve", "name": "Eve", "given_name": "Ada"});
        let further = further.as_object().cloned().unwrap();
        let user = user(id_token, userinfo.as_object().cloned(), further, &filter).unwrap();
        assert_eq!(
            user,
            r#"{"sub":"ada","email":"a@example.test","given_name":"Ada","name":"Ada","rate":1.10}"#
        );
    }
}
