//! The bytes of a Struct as the text of JSON.
//!
//! Letters are copied, not looked at again: that they are UTF-8 was found when the bytes came in.

use super::read::write_number;
use super::wire::{self, Kind, Malformed};

/// Adds the text of an object.
pub(super) fn put_object(text: &mut Vec<u8>, object: &[u8]) -> Result<(), Malformed> {
    text.push(b'{');
    for (at, member) in wire::members(object).enumerate() {
        let (name, value) = member?;
        if at > 0 {
            text.push(b',');
        }
        put_letters(text, name)?;
        text.push(b':');
        put_value(text, value)?;
    }
    text.push(b'}');
    Ok(())
}

fn put_list(text: &mut Vec<u8>, list: &[u8]) -> Result<(), Malformed> {
    text.push(b'[');
    for (at, value) in wire::items(list).enumerate() {
        if at > 0 {
            text.push(b',');
        }
        put_value(text, value?)?;
    }
    text.push(b']');
    Ok(())
}

fn put_value(text: &mut Vec<u8>, value: &[u8]) -> Result<(), Malformed> {
    match wire::kind(value).ok_or(Malformed)? {
        Kind::Null => text.extend_from_slice(b"null"),
        Kind::Bool(true) => text.extend_from_slice(b"true"),
        Kind::Bool(false) => text.extend_from_slice(b"false"),
        Kind::Number(number) => {
            return write_number(number, &mut serde_json::Serializer::new(text)).map_err(|_| Malformed);
        }
        Kind::Text(letters) => return put_letters(text, letters),
        Kind::Object(members) => return put_object(text, members),
        Kind::List(items) => return put_list(text, items),
    }
    Ok(())
}

fn put_letters(text: &mut Vec<u8>, letters: &[u8]) -> Result<(), Malformed> {
    let is_escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    // Without a way out in the middle many letters are looked at at once.
    if letters.iter().fold(false, |any, byte| any | is_escaped(*byte)) {
        let letters = std::str::from_utf8(letters).map_err(|_| Malformed)?;
        return serde_json::to_writer(text, letters).map_err(|_| Malformed);
    }
    text.push(b'"');
    text.extend_from_slice(letters);
    text.push(b'"');
    Ok(())
}
