//! The bytes of a Struct as JSON in memory.

use prost_types::Struct;
use prost_types::value::Kind as Told;
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};
use serde_json::Map;

use super::wire::{self, Kind, Malformed};

/// Largest magnitude at which every whole number is a double of its own: 2^53.
const EXACT_INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// The members of an object.
pub(super) struct Object<'a>(pub(super) &'a [u8]);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        for member in wire::members(self.0) {
            let (name, value) = member.map_err(malformed)?;
            object.serialize_entry(letters(name)?, &Item(value))?;
        }
        object.end()
    }
}

struct List<'a>(&'a [u8]);

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for value in wire::items(self.0) {
            list.serialize_element(&Item(value.map_err(malformed)?))?;
        }
        list.end()
    }
}

/// One Value.
pub(super) struct Item<'a>(pub(super) &'a [u8]);

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match wire::kind(self.0).ok_or_else(|| malformed(Malformed))? {
            Kind::Null => serializer.serialize_unit(),
            Kind::Bool(yes) => serializer.serialize_bool(yes),
            Kind::Number(number) => write_number(number, serializer),
            Kind::Text(text) => serializer.serialize_str(letters(text)?),
            Kind::Object(members) => Object(members).serialize(serializer),
            Kind::List(items) => List(items).serialize(serializer),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "whole and within 2^53, checked on the line above"
)]
pub(super) fn write_number<S: Serializer>(number: f64, serializer: S) -> Result<S::Ok, S::Error> {
    if number.fract() == 0.0 && number.abs() <= EXACT_INTEGER_MAX {
        return serializer.serialize_i64(number as i64);
    }
    // A double that JSON cannot say (infinite, not a number) becomes null.
    if number.is_finite() {
        serializer.serialize_f64(number)
    } else {
        serializer.serialize_unit()
    }
}

fn letters<E: serde::ser::Error>(bytes: &[u8]) -> Result<&str, E> {
    std::str::from_utf8(bytes).map_err(|_| malformed(Malformed))
}

fn malformed<E: serde::ser::Error>(_: Malformed) -> E {
    E::custom("these are no claims")
}

/// The JSON object that says what a message of prost's says.
pub(super) fn of_struct(message: &Struct) -> Map<String, serde_json::Value> {
    let members = message.fields.iter();
    members
        .map(|(name, value)| (name.clone(), of_value(value)))
        .collect()
}

fn of_value(value: &prost_types::Value) -> serde_json::Value {
    match &value.kind {
        None | Some(Told::NullValue(_)) => serde_json::Value::Null,
        Some(Told::BoolValue(yes)) => (*yes).into(),
        // Null where JSON cannot say it.
        Some(Told::NumberValue(number)) => (*number).into(),
        Some(Told::StringValue(text)) => text.as_str().into(),
        Some(Told::ListValue(list)) => list.values.iter().map(of_value).collect(),
        Some(Told::StructValue(object)) => of_struct(object).into(),
    }
}
