//! The claims a session keeps about a person.

use serde_json::{Map, Value};

/// ID-token claims, then userinfo over them, without the filtered ones; `sub` always stays the ID token's.
#[must_use]
pub fn user(
    id_token: Map<String, Value>,
    userinfo: Option<Map<String, Value>>,
    filter: &[String],
) -> Map<String, Value> {
    let subject = id_token.get("sub").cloned();
    let mut user = id_token;
    user.extend(userinfo.unwrap_or_default());
    user.retain(|claim, _| !filter.iter().any(|filtered| filtered == claim));
    if let Some(subject) = subject {
        user.insert("sub".to_owned(), subject);
    }
    user
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn protocol_claims_go_and_userinfo_adds_but_never_renames_the_person() {
        let id_token = object(json!({"sub": "ada", "iss": "x", "nonce": "n", "name": "A"}));
        let userinfo = object(json!({"sub": "eve", "name": "Ada", "email": "a@example.test", "iss": "y"}));
        let filter = ["iss".to_owned(), "nonce".to_owned(), "sub".to_owned()];
        let user = user(id_token, Some(userinfo), &filter);
        assert_eq!(
            user,
            object(json!({"sub": "ada", "name": "Ada", "email": "a@example.test"}))
        );
    }
}
