//! Claims between JSON and `google.protobuf.Struct`.
//!
//! A Struct knows one kind of number, the double. Whole numbers up to 2^53 come back as whole numbers, which covers
//! every time and counter OpenID Connect defines; larger ones lose precision, as they do in JavaScript.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use serde::{Serialize, Serializer};
use serde_json::{Map, Number};

/// Largest magnitude at which every whole number is a double of its own: 2^53.
const EXACT_INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// The Struct that says what the JSON object says.
#[must_use]
pub fn to_struct(object: &Map<String, serde_json::Value>) -> Struct {
    Struct {
        fields: object
            .iter()
            .map(|(name, value)| (name.clone(), to_value(value)))
            .collect(),
    }
}

/// The JSON object that says what the Struct says.
#[must_use]
pub fn from_struct(message: &Struct) -> Map<String, serde_json::Value> {
    message
        .fields
        .iter()
        .map(|(name, value)| (name.clone(), from_value(value)))
        .collect()
}

/// The text of the JSON object that says what the Struct says: what [`from_struct`] gives, written, without making it first.
#[must_use]
pub fn to_json(message: &Struct) -> Vec<u8> {
    let mut text = Vec::with_capacity(JSON_ROOM);
    // Writing text into memory cannot fail, and every name is a string.
    let _ = serde_json::to_writer(&mut text, &Object(message));
    text
}

/// Bytes the claims of most people fit in.
const JSON_ROOM: usize = 512;

struct Object<'a>(&'a Struct);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.fields.iter().map(|(name, value)| (name, Item(value))))
    }
}

struct Item<'a>(&'a Value);

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.kind {
            None | Some(Kind::NullValue(_)) => serializer.serialize_unit(),
            Some(Kind::BoolValue(yes)) => serializer.serialize_bool(*yes),
            Some(Kind::NumberValue(number)) => from_number(*number).serialize(serializer),
            Some(Kind::StringValue(text)) => serializer.serialize_str(text),
            Some(Kind::ListValue(list)) => serializer.collect_seq(list.values.iter().map(Item)),
            Some(Kind::StructValue(object)) => Object(object).serialize(serializer),
        }
    }
}

fn to_value(json: &serde_json::Value) -> Value {
    let kind = match json {
        serde_json::Value::Null => Kind::NullValue(0),
        serde_json::Value::Bool(yes) => Kind::BoolValue(*yes),
        serde_json::Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        serde_json::Value::String(text) => Kind::StringValue(text.clone()),
        serde_json::Value::Array(items) => Kind::ListValue(ListValue {
            values: items.iter().map(to_value).collect(),
        }),
        serde_json::Value::Object(object) => Kind::StructValue(to_struct(object)),
    };
    Value { kind: Some(kind) }
}

fn from_value(value: &Value) -> serde_json::Value {
    match &value.kind {
        None | Some(Kind::NullValue(_)) => serde_json::Value::Null,
        Some(Kind::BoolValue(yes)) => serde_json::Value::Bool(*yes),
        Some(Kind::NumberValue(number)) => from_number(*number),
        Some(Kind::StringValue(text)) => serde_json::Value::String(text.clone()),
        Some(Kind::ListValue(list)) => serde_json::Value::Array(list.values.iter().map(from_value).collect()),
        Some(Kind::StructValue(object)) => serde_json::Value::Object(from_struct(object)),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "whole and within 2^53, checked on the line above"
)]
fn from_number(number: f64) -> serde_json::Value {
    if number.fract() == 0.0 && number.abs() <= EXACT_INTEGER_MAX {
        return serde_json::Value::Number(Number::from(number as i64));
    }
    // A double that JSON cannot say (infinite, not a number) becomes null.
    Number::from_f64(number).map_or(serde_json::Value::Null, serde_json::Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn claims_survive_the_round_trip() {
        let claims = json!({
            "sub": "ada", "email_verified": true, "updated_at": 1_700_000_000, "ratio": 0.25, "negative": -3,
            "address": {"formatted": "1 Example Street", "lines": ["a", null, 2]}, "nothing": null,
        });
        let serde_json::Value::Object(object) = claims else {
            panic!("an object was written above")
        };
        let message = to_struct(&object);
        assert_eq!(from_struct(&message), object);
        assert_eq!(to_json(&message), serde_json::to_vec(&object).unwrap());
    }

    #[test]
    fn a_number_json_cannot_say_becomes_null() {
        assert_eq!(from_number(f64::INFINITY), serde_json::Value::Null);
    }
}
