//! Whether userinfo is worth a request at sign-in: which claims the granted scope promises and the ID token lacks (OpenID Connect
//! Core 5.4). A provider of the code flow may give them at userinfo alone.
//!
//! Deliberately absent: claims of scopes the standard does not name.

use serde_json::{Map, Value};

/// The scopes that promise claims, and the claims. One of them is enough: nobody has all of a profile, and one without any name says
/// nothing about who a person is.
const PROMISES: [(&str, &[&str]); 4] = [
    (
        "profile",
        &[
            "name",
            "given_name",
            "family_name",
            "nickname",
            "preferred_username",
        ],
    ),
    ("email", &["email"]),
    ("address", &["address"]),
    ("phone", &["phone_number"]),
];

/// Whether the scope (separated by spaces) promises claims of which these hold none.
pub(super) fn lacks_promised_claims(scope: &str, claims: &Map<String, Value>) -> bool {
    let granted = |name: &str| scope.split(' ').any(|one| one == name);
    let holds = |names: &[&str]| {
        let mut values = names.iter().filter_map(|name| claims.get(*name));
        values.any(|value| !value.is_null())
    };
    PROMISES
        .iter()
        .any(|(name, claims)| granted(name) && !holds(claims))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scope_whose_claims_are_all_missing_is_worth_a_request() {
        for (scope, claims, lacks) in [
            ("openid profile email", json!({}), true),
            ("openid profile email", json!({"name": "A"}), true),
            ("openid profile email", json!({"email": "a@example.test"}), true),
            (
                "openid email profile",
                json!({"email": "a@example.test", "nickname": "a"}),
                false,
            ),
            ("openid profile", json!({"updated_at": 1}), true),
            ("openid profile", json!({"name": null}), true),
            ("openid email", json!({"email_verified": true}), true),
            ("openid phone", json!({}), true),
            ("openid phone", json!({"phone_number": "+49"}), false),
            ("openid address", json!({}), true),
            ("openid", json!({}), false),
            ("openid emails offline_access groups", json!({}), false),
            ("", json!({}), false),
        ] {
            let claims = claims.as_object().cloned().unwrap_or_default();
            assert_eq!(lacks_promised_claims(scope, &claims), lacks, "{scope} {claims:?}");
        }
    }
}
