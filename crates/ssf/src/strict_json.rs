//! JSON without duplicate names in any object: subject and event are nested objects, and all parsers must
//! read them the same (RFC 8417 section 2.2, SSF 1.0 section 3.3).

use oidc::UniqueMembers;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Bound on nested objects and arrays. An alias in a complex subject is at level five. The rest is for
/// changed claims, which may have any shape.
const MAX_DEPTH: usize = 16;

/// Parses an object; `None` for another value, deep nesting, trailing text or a duplicate name in any object.
pub(crate) fn strict_object(bytes: &[u8]) -> Option<Map<String, Value>> {
    let text = str::from_utf8(bytes).ok()?;
    has_unique_names(text.trim_start(), MAX_DEPTH).then_some(())?;
    serde_json::from_str(text).ok()
}

/// Whether a value has no duplicate names in any object, and at most this many levels.
fn has_unique_names(value: &str, levels: usize) -> bool {
    let members: Vec<&RawValue> = match value.as_bytes().first() {
        Some(b'{') => match serde_json::from_str::<UniqueMembers<&RawValue>>(value) {
            Ok(members) => members.0.into_iter().map(|(_, value)| value).collect(),
            Err(_) => return false,
        },
        Some(b'[') => serde_json::from_str(value).unwrap_or_default(),
        _ => return true,
    };
    levels > 0
        && members
            .iter()
            .all(|value| has_unique_names(value.get(), levels - 1))
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
