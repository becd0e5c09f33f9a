//! Claims between JSON and `google.protobuf.Struct`.
//!
//! A Struct knows one kind of number, the double. Whole numbers up to 2^53 come back as whole numbers, which covers
//! every time and counter OpenID Connect defines; larger ones lose precision, as they do in JavaScript.
//!
//! Nobody between the store and the reader of an answer looks inside claims, so here a Struct is the bytes it travels as:
//! JSON is made into them, and they into JSON, without a tree of values in between.

mod json;
mod read;
#[cfg(test)]
mod tests;
mod wire;
mod write;

use std::fmt;

use prost::bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType};
use prost::{DecodeError, Message};
use serde_json::{Map, Value};

/// Bytes the claims of most people fit in.
const ROOM: usize = 512;

/// A `google.protobuf.Struct` as the bytes it travels as.
///
/// Invariant: all of it is claims, written the one way that `wire` reads; what comes in written otherwise is rewritten, and what is
/// no Struct is refused when its message is decoded. Only the outermost members may be in any order, and of two with the same name
/// the last counts, because a message may come in parts.
#[derive(Clone, Default)]
pub struct Claims(Vec<u8>);

impl Claims {
    /// One claim by its name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value> {
        let (_, value) = wire::members(&self.0)
            .filter_map(Result::ok)
            .filter(|(known, _)| *known == name.as_bytes())
            .last()?;
        serde_json::to_value(read::Item(value)).ok()
    }

    /// The same claims in the order of their names, each once: two that say the same are then the same bytes.
    #[must_use]
    pub fn in_order(&self) -> Self {
        Self(wire::in_order(&self.0).into_owned())
    }
}

/// The Struct that says what the JSON object says.
#[must_use]
pub fn to_struct(object: &Map<String, Value>) -> Claims {
    let mut bytes = Vec::with_capacity(if object.is_empty() { 0 } else { ROOM });
    // Neither the members of an object in memory nor writing into memory can fail.
    let _ = write::object(object, None, &mut bytes);
    Claims(bytes)
}

/// The Struct that says what the text of a JSON object says; and `beside`, a name with its text, where the object has no such name.
/// Fails if the text is no JSON object.
pub fn from_json(text: &[u8], beside: Option<(&str, &str)>) -> Result<Claims, serde_json::Error> {
    let room = if text == b"{}" && beside.is_none() {
        0
    } else {
        ROOM.max(text.len())
    };
    let mut bytes = Vec::with_capacity(room);
    let text = std::str::from_utf8(text).map_err(serde::de::Error::custom)?;
    let mut reader = serde_json::Deserializer::from_str(text);
    write::object(&mut reader, beside, &mut bytes)?;
    reader.end()?;
    Ok(Claims(bytes))
}

/// The JSON object that says what the Struct says.
#[must_use]
pub fn from_struct(claims: &Claims) -> Map<String, Value> {
    match serde_json::to_value(read::Object(&claims.0)) {
        Ok(Value::Object(object)) => object,
        // By the invariant of `Claims`, never.
        Ok(_) | Err(_) => Map::new(),
    }
}

/// The text of the JSON object that says what the Struct says: what [`from_struct`] gives, written, without making it first.
#[must_use]
pub fn to_json(claims: &Claims) -> Vec<u8> {
    let mut text = Vec::with_capacity(ROOM.max(claims.0.len()));
    // The bytes are claims by the invariant.
    let _ = json::put_object(&mut text, &wire::in_order(&claims.0));
    text
}

impl Message for Claims {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        buf.put_slice(&self.0);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag == wire::MEMBERS
            && wire_type == WireType::LengthDelimited
            && let Some(member) = wire::plain_member(buf.chunk())
        {
            let length = member.len();
            if self.0.is_empty() {
                self.0.reserve(buf.remaining().min(ROOM));
            }
            wire::put_member(&mut self.0, member);
            buf.advance(length);
            return Ok(());
        }
        // Written in another way than ours, in pieces, or malformed: prost knows what it is.
        let mut message = prost_types::Struct::default();
        message.merge_field(tag, wire_type, buf, ctx)?;
        self.0.extend(to_struct(&read::of_struct(&message)).0);
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

impl PartialEq for Claims {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || wire::in_order(&self.0) == wire::in_order(&other.0)
    }
}

/// Tells nothing: claims are about a person.
impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
