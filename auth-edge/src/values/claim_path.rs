//! Names a claim: by its name, or by its path through objects.
//!
//! Invariant: one text means one claim. Dots lead into objects. A name with other characters than letters,
//! digits, `_`, `-` and `:` is quoted, as in TOML keys: `realm_access.roles`, `"https://example.com/roles"`.

use std::fmt;

use serde_json::{Map, Value};

/// The names from the outermost object to the claim; there is at least one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClaimPath(Vec<String>);

impl ClaimPath {
    /// Reads a claim's name.
    ///
    /// # Errors
    /// What to write instead.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        const QUOTE: &str = "a claim's name is written in double quotes if it holds other characters than letters, digits, _, - and : (claim:\"https://example.com/roles\"), and dots lead into objects (claim:realm_access.roles)";
        let mut names = Vec::new();
        let mut rest = text;
        loop {
            let (name, after) = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').ok_or(QUOTE)?,
                None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
            };
            if name.is_empty() || (!rest.starts_with('"') && !is_bare(name)) {
                return Err(QUOTE);
            }
            names.push(name.to_owned());
            rest = match after.strip_prefix('.') {
                Some(rest) => rest,
                None if after.is_empty() => return Ok(Self(names)),
                None => return Err(QUOTE),
            };
        }
    }

    /// The claim at these names, the outermost first.
    #[must_use]
    pub(crate) fn of_names(names: Vec<String>) -> Self {
        Self(names)
    }

    /// The value of the claim, if present.
    #[must_use]
    pub(crate) fn find<'c>(&self, claims: &'c Map<String, Value>) -> Option<&'c Value> {
        let (first, rest) = self.0.split_first()?;
        rest.iter()
            .try_fold(claims.get(first)?, |inside, name| inside.as_object()?.get(name))
    }
}

fn is_bare(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':'))
}

impl fmt::Display for ClaimPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.0.iter().enumerate() {
            let dot = if at == 0 { "" } else { "." };
            let quote = if is_bare(name) { "" } else { "\"" };
            write!(f, "{dot}{quote}{name}{quote}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_text_means_one_claim() {
        let claims = json!({
            "email": "a@b.example",
            "realm_access": {"roles": ["admin"], "a.b": 1},
            "realm_access.roles": "of another name",
            "https://example.com/roles": ["owner"],
            "urn:example:org": "o",
        });
        let claims = claims.as_object().unwrap();
        for (text, expected) in [
            ("email", Some(json!("a@b.example"))),
            ("realm_access.roles", Some(json!(["admin"]))),
            ("realm_access.\"a.b\"", Some(json!(1))),
            ("\"realm_access.roles\"", Some(json!("of another name"))),
            ("\"https://example.com/roles\"", Some(json!(["owner"]))),
            ("urn:example:org", Some(json!("o"))),
            ("email.more", None),
            ("nothing", None),
        ] {
            let path = ClaimPath::parse(text).unwrap();
            assert_eq!(path.find(claims), expected.as_ref(), "{text}");
            assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn what_could_mean_two_claims_is_refused() {
        for text in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "https://example.com/roles",
            "a b",
            "\"a",
            "\"a\"b",
            "\"\"",
            "a\"b\"",
            "é",
        ] {
            assert!(ClaimPath::parse(text).is_err(), "{text}");
        }
    }
}
