//! JSON objects in which no name stands twice: two readers could understand such an object differently
//! (RFC 8725 section 2.4, RFC 7519 section 4).

use std::fmt;

use serde::de::{Deserializer as _, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

struct StrictObject;

impl<'de> Visitor<'de> for StrictObject {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object without duplicate names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Map<String, Value>, A::Error> {
        let mut members = Map::new();
        while let Some((name, value)) = access.next_entry::<String, Value>()? {
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom("duplicate name"));
            }
        }
        Ok(members)
    }
}

/// Parses an object; `None` when it is no object, has trailing text or a duplicate name at its top level.
pub(crate) fn strict_object(bytes: &[u8]) -> Option<Map<String, Value>> {
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let members = text.deserialize_map(StrictObject).ok()?;
    text.end().is_ok().then_some(members)
}

/// [`strict_object`] without the members that are null: many providers write null for a claim they do not have.
pub(crate) fn strict_claims(bytes: &[u8]) -> Option<Map<String, Value>> {
    let mut claims = strict_object(bytes)?;
    claims.retain(|_, value| !value.is_null());
    Some(claims)
}

/// A numeric date or count of seconds: a JSON number that is not negative, its fraction cut.
pub fn numeric_date(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| (0.0..1e15).contains(number))?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was checked"
        )]
        Some(number as u64)
    })
}
