//! What serde reads, from JSON in text or in memory, becomes the bytes of a Struct in one pass.
//!
//! The length of a message stands before it: it takes one byte, and makes room for more when the message is written.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::wire::{self, key};

/// Writes an object, and `beside` where it has no such name.
pub(super) fn object<'de, D: Deserializer<'de>>(
    source: D,
    beside: Option<(&str, &str)>,
    out: &mut Vec<u8>,
) -> Result<(), D::Error> {
    source.deserialize_map(Object { out, beside })
}

struct Object<'a> {
    out: &'a mut Vec<u8>,
    beside: Option<(&'a str, &'a str)>,
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<(), A::Error> {
        let start = self.out.len();
        let mut members = Members {
            out: &mut *self.out,
            before: None,
            in_order: true,
            beside: self.beside,
        };
        while let Some(member) = source.next_key_seed(Name(&mut members))? {
            source.next_value_seed(Message(key::VALUE, members.out))?;
            close(members.out, member);
        }
        members.put_beside();
        if !members.in_order {
            let ordered = wire::in_order(&self.out[start..]).into_owned();
            self.out.truncate(start);
            self.out.extend(ordered);
        }
        Ok(())
    }
}

/// The members written so far.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    /// Where the last one begins, behind its key.
    before: Option<usize>,
    in_order: bool,
    beside: Option<(&'a str, &'a str)>,
}

impl Members<'_> {
    /// Writes a member up to its Value; gives what to [`close`] behind it.
    fn begin(&mut self, name: &str) -> usize {
        match self.beside {
            Some((beside, _)) if beside < name => self.put_beside(),
            Some((beside, _)) if beside == name => self.beside = None,
            Some(_) | None => {}
        }
        self.put_name(name)
    }

    fn put_name(&mut self, name: &str) -> usize {
        let last = self.before.and_then(|start| wire::name(&self.out[start..]));
        self.in_order &= last.is_none_or(|last| last < name.as_bytes());
        self.out.push(key::MEMBER);
        self.before = Some(self.out.len());
        let member = open(self.out);
        put_text(self.out, key::NAME, name);
        member
    }

    fn put_beside(&mut self) {
        if let Some((name, text)) = self.beside.take() {
            let member = self.put_name(name);
            self.out.push(key::VALUE);
            let value = open(self.out);
            put_text(self.out, key::TEXT, text);
            close(self.out, value);
            close(self.out, member);
        }
    }
}

struct Name<'a, 'b>(&'a mut Members<'b>);

impl<'de> DeserializeSeed<'de> for Name<'_, '_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<usize, D::Error> {
        source.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_, '_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<usize, E> {
        Ok(self.0.begin(name))
    }
}

/// A Value as a field with this key.
struct Message<'a>(u8, &'a mut Vec<u8>);

impl<'de> DeserializeSeed<'de> for Message<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        self.1.push(self.0);
        let value = open(self.1);
        source.deserialize_any(Value(&mut *self.1))?;
        close(self.1, value);
        Ok(())
    }
}

struct Value<'a>(&'a mut Vec<u8>);

#[expect(clippy::cast_precision_loss, reason = "a Struct knows doubles alone")]
impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.extend([key::NULL, 0]);
        Ok(())
    }

    fn visit_bool<E>(self, yes: bool) -> Result<(), E> {
        self.0.extend([key::BOOL, u8::from(yes)]);
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.visit_f64(number as f64)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.visit_f64(number as f64)
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.0.push(key::NUMBER);
        self.0.extend(number.to_le_bytes());
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        put_text(self.0, key::TEXT, text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<(), A::Error> {
        self.0.push(key::LIST);
        let list = open(self.0);
        while source
            .next_element_seed(Message(key::ITEM, &mut *self.0))?
            .is_some()
        {}
        close(self.0, list);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, source: A) -> Result<(), A::Error> {
        self.0.push(key::OBJECT);
        let object = open(self.0);
        let members = Object {
            out: &mut *self.0,
            beside: None,
        };
        members.visit_map(source)?;
        close(self.0, object);
        Ok(())
    }
}

fn put_text(out: &mut Vec<u8>, key: u8, text: &str) {
    out.push(key);
    wire::put_length(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// Leaves room for a length; gives where what it counts begins.
fn open(out: &mut Vec<u8>) -> usize {
    out.push(0);
    out.len()
}

/// Writes the length of what began at `start`.
fn close(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start;
    if let Ok(short @ 0..0x80) = u8::try_from(length) {
        out[start - 1] = short;
        return;
    }
    let mut written = Vec::with_capacity(5);
    wire::put_length(&mut written, length);
    out.splice(start - 1..start, written);
}
