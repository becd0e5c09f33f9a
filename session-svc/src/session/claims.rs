//! Claims about a person, or attributes that callers store with a session: a JSON object as text.
//!
//! The text stays exactly as received, including numbers and order. It is parsed only on receipt, and when a
//! refresh updates it.
//!
//! Invariant: `Debug` shows no claim.

use std::collections::BTreeMap;
use std::fmt;

use oidc::UniqueMembers;
use prost::Message;
use serde_json::value::RawValue;
use serde_json::{Error, Map, Value};

/// Claims by their names.
pub(crate) type Object = Map<String, Value>;

/// Claims by their names, each with its exact text.
pub(crate) type ClaimMembers = BTreeMap<String, Box<RawValue>>;

/// The claim that names the person.
pub(crate) const SUBJECT: &str = "sub";

/// The text of a JSON object. An object without members is stored as an empty text.
#[derive(Clone, PartialEq, Eq, Message)]
#[prost(skip_debug)]
pub struct Claims(#[prost(string, tag = "1")] String);

/// An object without members.
const NONE: &str = "{}";

impl Claims {
    /// Parses the claims of a caller. Rejects duplicate names (RFC 7519, section 4), which two readers could
    /// interpret differently, and nesting beyond `serde_json`'s limit of 127 levels.
    pub fn parse(text: String) -> Result<Self, Error> {
        // A value and not `IgnoredAny`, which would accept values that no reader can parse.
        serde_json::from_str::<UniqueMembers<Value>>(&text)?;
        Ok(Self::of_kept(text))
    }

    /// Claims that were parsed before.
    #[must_use]
    pub fn of_kept(text: String) -> Self {
        Self(if text == NONE { String::new() } else { text })
    }

    /// Builds claims from members, with `sub` first.
    pub(crate) fn of_members(mut members: ClaimMembers) -> Result<Self, Error> {
        let subject = members.remove(SUBJECT);
        let others = serde_json::to_string(&members)?;
        let Some(subject) = subject else {
            return Ok(Self::of_kept(others));
        };
        let comma = if members.is_empty() { "" } else { "," };
        Ok(Self(format!(r#"{{"{SUBJECT}":{subject}{comma}{}"#, &others[1..])))
    }

    /// The text.
    #[must_use]
    pub(crate) fn text(&self) -> &str {
        if self.0.is_empty() { NONE } else { &self.0 }
    }

    /// The members, each with its exact text.
    pub(crate) fn members(&self) -> Result<ClaimMembers, Error> {
        serde_json::from_str(self.text())
    }

    /// The `sub` claim; `None` if it is absent or not a text.
    #[must_use]
    pub(crate) fn subject(&self) -> Option<String> {
        self.text_of(SUBJECT)
    }

    /// The text of a claim; `None` if it is absent or not a text.
    #[must_use]
    pub(crate) fn text_of(&self, name: &str) -> Option<String> {
        let members = self.members().ok()?;
        serde_json::from_str(members.get(name)?.get()).ok()
    }

    /// The email address verified by the provider (OpenID Connect Core, section 5.1), in normalized form.
    #[must_use]
    pub(crate) fn verified_email(&self) -> Option<String> {
        let members = self.members().ok()?;
        let is_verified: bool = serde_json::from_str(members.get("email_verified")?.get()).ok()?;
        let email: String = serde_json::from_str(members.get("email")?.get()).ok()?;
        is_verified.then(|| comparable_email(&email))
    }

    /// A copy of the claims in which these replace those of the same names.
    pub(crate) fn with(&self, newer: &Object) -> Result<Self, Error> {
        let mut members = self.members()?;
        for (name, value) in newer {
            members.insert(name.clone(), serde_json::value::to_raw_value(value)?);
        }
        Self::of_members(members)
    }
}

/// Normalizes an email address for comparison (RFC 9493, section 3.2.2.1): ignores case, as providers do.
#[must_use]
pub(crate) fn comparable_email(email: &str) -> String {
    email.trim().to_lowercase()
}

impl fmt::Debug for Claims {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Claims, Error> {
        Claims::parse(text.to_owned())
    }

    #[test]
    fn claims_stay_word_for_word() {
        let text = " {\"z\": 12345678901234567890123, \"a\":1.10, \"sub\" :\"a\\u0064a\"}\n";
        let claims = parse(text).unwrap();
        assert_eq!(claims.text(), text);
        assert_eq!(claims.subject().as_deref(), Some("ada"));
        let again = Claims::of_members(claims.members().unwrap()).unwrap();
        assert_eq!(
            again.text(),
            r#"{"sub":"a\u0064a","a":1.10,"z":12345678901234567890123}"#
        );
    }

    #[test]
    fn what_is_no_object_or_ambiguous_or_too_deep_is_refused() {
        let nested = |levels: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
        for text in [
            "",
            "[]",
            "null",
            "\"{}\"",
            "{",
            "{} {}",
            "{'a':1}",
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            &nested(127),
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        for text in ["{}", r#"{"a":{"b":1},"b":1}"#, &nested(126)] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn only_a_text_names_somebody() {
        for (text, subject) in [
            ("{}", None),
            (r#"{"sub":1}"#, None),
            (r#"{"sub":"ada"}"#, Some("ada")),
        ] {
            assert_eq!(parse(text).unwrap().subject().as_deref(), subject, "{text}");
        }
    }

    #[test]
    fn debug_tells_no_claim() {
        assert_eq!(format!("{:?}", parse(r#"{"name":"Ada"}"#).unwrap()), "…");
    }
}
