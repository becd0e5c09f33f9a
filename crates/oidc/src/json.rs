//! JSON objects without duplicate names: two parsers could read duplicates differently (RFC 8725 section 2.4,
//! RFC 7519 section 4).

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

/// The members of a JSON object in order. A duplicate name is an error.
#[derive(Debug)]
pub struct UniqueMembers<V>(pub Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for UniqueMembers<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueVisitor(PhantomData))
    }
}

struct UniqueVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for UniqueVisitor<V> {
    type Value = UniqueMembers<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object without duplicate names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<UniqueMembers<V>, A::Error> {
        let (mut members, mut names) = (Vec::new(), HashSet::new());
        while let Some((name, value)) = access.next_entry::<String, V>()? {
            if !names.insert(name.clone()) {
                return Err(A::Error::custom("duplicate name"));
            }
            members.push((name, value));
        }
        Ok(UniqueMembers(members))
    }
}

/// Parses an object; `None` for another value, trailing text or a duplicate name at the top level.
pub(crate) fn strict_object(bytes: &[u8]) -> Option<Map<String, Value>> {
    let members = serde_json::from_slice::<UniqueMembers<Value>>(bytes).ok()?;
    Some(members.0.into_iter().collect())
}

/// [`strict_object`] without null members: many providers write null for claims they do not have.
pub(crate) fn strict_claims(bytes: &[u8]) -> Option<Map<String, Value>> {
    let mut claims = strict_object(bytes)?;
    claims.retain(|_, value| !value.is_null());
    Some(claims)
}

/// A numeric date or seconds: a JSON number that is not negative, rounded down.
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
