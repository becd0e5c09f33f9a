//! Decides whether a sign-in reads userinfo: if the ID token lacks claims that the granted scope promises
//! (OpenID Connect Core 5.4). In the code flow a provider may send them only at userinfo.
//!
//! Deliberately absent: claims of scopes the standard does not name.

use serde_json::{Map, Value};

/// Scopes and the claims they promise. One of the claims is enough: no user has all claims of a profile. But a
/// profile without any name does not say who the user is.
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

/// Whether a scope (separated by spaces) promises claims, and `claims` has none of them.
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
