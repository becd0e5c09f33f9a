//! The claims that a route requires. The check is the same for sessions and tokens.
//!
//! Invariant: texts, numbers and flags are compared exactly, each with its own type. Other types, such as
//! objects, never match.

use serde_json::{Map, Value};

use crate::values::claim_path::ClaimPath;

/// A claim that has to equal one of these values, or to be a list with one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimRequirement {
    /// The claim.
    pub(crate) claim: ClaimPath,
    /// The accepted texts, whole numbers and flags; at least one.
    pub(crate) any_of: Vec<Value>,
}

impl ClaimRequirement {
    /// Whether these claims meet the requirement.
    pub(super) fn is_met(&self, claims: &Map<String, Value>) -> bool {
        let is_one = |value: &Value| self.any_of.contains(value);
        match self.claim.find(claims) {
            Some(Value::Array(members)) => members.iter().any(is_one),
            Some(value) => is_one(value),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn requires(claim: &str, any_of: &[Value]) -> ClaimRequirement {
        ClaimRequirement {
            claim: ClaimPath::parse(claim).unwrap(),
            any_of: any_of.to_vec(),
        }
    }

    #[test]
    fn a_claim_is_met_by_its_very_value_or_by_a_list_that_contains_it() {
        let text = |text: &str| Value::from(text);
        let (flag, number) = (|flag: bool| Value::from(flag), |number: i64| Value::from(number));
        for (claim, any_of, claims, met) in [
            (
                "groups",
                vec![text("admin")],
                json!({"groups": ["staff", "admin"]}),
                true,
            ),
            ("groups", vec![text("admin")], json!({"groups": "admin"}), true),
            (
                "groups",
                vec![text("admin")],
                json!({"groups": ["administrators"]}),
                false,
            ),
            ("groups", vec![text("admin")], json!({"groups": ["Admin"]}), false),
            (
                "groups",
                vec![text("admin")],
                json!({"groups": "staff,admin"}),
                false,
            ),
            (
                "groups",
                vec![text("admin")],
                json!({"groups": [["admin"]]}),
                false,
            ),
            (
                "groups",
                vec![text("admin")],
                json!({"groups": {"admin": true}}),
                false,
            ),
            ("groups", vec![text("admin")], json!({"groups": []}), false),
            ("groups", vec![text("admin")], json!({"groups": null}), false),
            ("groups", vec![text("admin")], json!({}), false),
            (
                "groups",
                vec![text("a"), text("b")],
                json!({"groups": ["b"]}),
                true,
            ),
            (
                "realm_access.roles",
                vec![text("a")],
                json!({"realm_access": {"roles": ["a"]}}),
                true,
            ),
            (
                "realm_access.roles",
                vec![text("a")],
                json!({"realm_access.roles": ["a"]}),
                false,
            ),
            (
                "email_verified",
                vec![flag(true)],
                json!({"email_verified": true}),
                true,
            ),
            (
                "email_verified",
                vec![flag(true)],
                json!({"email_verified": false}),
                false,
            ),
            (
                "email_verified",
                vec![flag(true)],
                json!({"email_verified": "true"}),
                false,
            ),
            (
                "email_verified",
                vec![text("true")],
                json!({"email_verified": true}),
                false,
            ),
            ("level", vec![number(3)], json!({"level": 3}), true),
            ("level", vec![number(3)], json!({"level": "3"}), false),
            ("level", vec![number(3)], json!({"level": [1, 3]}), true),
        ] {
            let required = requires(claim, &any_of);
            let is_met = required.is_met(claims.as_object().unwrap());
            assert_eq!(is_met, met, "{claim} {any_of:?} {claims}");
        }
    }
}
