//! The name that a provider posts next to the code and nowhere else. Sign in with Apple does so once, when a
//! user first uses the application.
//!
//! Invariants
//! - The provider does not sign it: it adds only names, and never replaces a claim of ID token or userinfo.
//! - The edge reads it only if the scope includes `name`, which OpenID Connect does not define. A form passes
//!   through the browser, so the edge ignores the names of other providers.

use serde_json::{Map, Value};

/// The scope with which an operator requests the name.
const SCOPE: &str = "name";

/// The longest `user` member in bytes: two names and an e-mail address.
const MAX_BYTES: usize = 4096;

/// The longest single name in characters.
const MAX_NAME_CHARS: usize = 128;

/// The claims from names in the `user` member: `{"name": {"firstName": "Ada", "lastName": "Lovelace"}}`.
pub(super) fn claims(user: Option<&str>, scope: &str) -> Map<String, Value> {
    let mut claims = Map::new();
    let asked = scope.split(' ').any(|word| word == SCOPE);
    let user = user.filter(|user| asked && user.len() <= MAX_BYTES);
    let Some(user) = user.and_then(|user| serde_json::from_str::<Value>(user).ok()) else {
        return claims;
    };
    let part = |member: &str| {
        let name = user["name"][member].as_str()?.trim();
        let fits = name.chars().count() <= MAX_NAME_CHARS && !name.chars().any(char::is_control);
        (fits && !name.is_empty()).then(|| name.to_owned())
    };
    let mut whole = Vec::new();
    for (claim, member) in [
        ("given_name", "firstName"),
        ("middle_name", "middleName"),
        ("family_name", "lastName"),
    ] {
        if let Some(name) = part(member) {
            whole.push(name.clone());
            claims.insert(claim.to_owned(), name.into());
        }
    }
    if !whole.is_empty() {
        claims.insert("name".to_owned(), whole.join(" ").into());
    }
    claims
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims_of(user: &str, scope: &str) -> Value {
        Value::Object(claims(Some(user), scope))
    }

    #[test]
    fn names_are_taken_where_the_scope_asks_for_them_and_nothing_else_is() {
        let apple =
            r#"{"name":{"firstName":"Ada","lastName":"Lovelace"},"email":"a@example.test","sub":"eve"}"#;
        assert_eq!(
            claims_of(apple, "openid name email"),
            json!({"name": "Ada Lovelace", "given_name": "Ada", "family_name": "Lovelace"})
        );
        assert_eq!(claims_of(apple, "openid profile email"), json!({}));
        assert_eq!(
            claims_of(r#"{"name":{"firstName":" ","lastName":"L"}}"#, "name"),
            json!({"name": "L", "family_name": "L"})
        );
        let long = format!(r#"{{"name":{{"firstName":"{}"}}}}"#, "a".repeat(129));
        let huge = format!(
            r#"{{"name":{{"firstName":"A"}},"x":"{}"}}"#,
            "a".repeat(MAX_BYTES)
        );
        let control = r#"{"name":{"firstName":"a\u0007"}}"#;
        for user in [
            "",
            "null",
            "[]",
            "{",
            r#"{"name":"Ada"}"#,
            r#"{"name":{"firstName":7}}"#,
            &long,
            &huge,
            control,
        ] {
            assert_eq!(claims_of(user, "openid name"), json!({}), "{user}");
        }
        assert_eq!(claims(None, "openid name"), Map::new());
    }
}
