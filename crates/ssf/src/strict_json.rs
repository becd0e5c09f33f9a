//! JSON without duplicate names in any object: the subject and the event are nested objects, and no two readers may understand them
//! differently (RFC 8417 section 2.2, SSF 1.0 section 3.3).

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Deepest nesting of objects and arrays. An alias in a member of a complex subject is at the fifth level; the rest is for
/// claims that have changed, which may be of any shape.
const MAX_DEPTH: usize = 16;

/// Parses an object; `None` when it is no object, is nested too deep, has trailing text or a name twice in any object.
pub(crate) fn strict_object(bytes: &[u8]) -> Option<Map<String, Value>> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Levels(MAX_DEPTH).deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    match value {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

/// Reads a value in which objects and arrays are nested so many levels at most.
#[derive(Clone, Copy)]
struct Levels(usize);

impl Levels {
    fn below<E: Error>(self) -> Result<Self, E> {
        let left = self.0.checked_sub(1);
        left.map(Self).ok_or_else(|| E::custom("nested too deep"))
    }
}

impl<'de> DeserializeSeed<'de> for Levels {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Levels {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without duplicate names")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut elements = Vec::new();
        while let Some(element) = access.next_element_seed(below)? {
            elements.push(element);
        }
        Ok(elements.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut members = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let value = access.next_value_seed(below)?;
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom("duplicate name"));
            }
        }
        Ok(members.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_reads_is_what_anybody_reads() {
        for text in [
            "{}",
            r#"{"a":null,"b":[true,-1,1,1.5,"\u00e9",{}],"c":{"a":{"a":[]}}}"#,
            r#"{"n":18446744073709551615,"m":-9223372036854775808,"f":1e300}"#,
        ] {
            let anybody: Option<Map<String, Value>> = serde_json::from_str(text).ok();
            assert!(anybody.is_some());
            assert_eq!(strict_object(text.as_bytes()), anybody, "{text}");
        }
    }

    #[test]
    fn a_name_that_stands_twice_anywhere_or_text_behind_is_the_end() {
        for text in [
            "",
            "[]",
            "7",
            "{} {}",
            r#"{"a":1,"a":1}"#,
            r#"{"a":{"b":1,"b":2}}"#,
            r#"{"a":[{"b":{"c":1,"d":2,"c":3}}]}"#,
            r#"{"a":{"b":1,"\u0062":2}}"#,
        ] {
            assert_eq!(strict_object(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn it_is_read_to_a_depth_and_no_deeper() {
        let objects = |depth: usize| format!("{}{{}}{}", r#"{"a":"#.repeat(depth - 1), "}".repeat(depth - 1));
        let arrays = |depth: usize| {
            let depth = depth - 1;
            format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth))
        };
        for (depth, is_read) in [(1, true), (16, true), (17, false), (100_000, false)] {
            assert_eq!(
                strict_object(objects(depth).as_bytes()).is_some(),
                is_read,
                "{depth}"
            );
            if depth > 1 {
                assert_eq!(
                    strict_object(arrays(depth).as_bytes()).is_some(),
                    is_read,
                    "{depth}"
                );
            }
        }
    }
}
