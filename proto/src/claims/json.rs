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
    if has_escaped(letters) {
        let letters = std::str::from_utf8(letters).map_err(|_| Malformed)?;
        return serde_json::to_writer(text, letters).map_err(|_| Malformed);
    }
    text.push(b'"');
    text.extend_from_slice(letters);
    text.push(b'"');
    Ok(())
}

/// Whether JSON escapes one of the letters: a control, a quote or a backslash. Most do not hold any, so eight are looked at at once.
fn has_escaped(letters: &[u8]) -> bool {
    let (eights, rest) = letters.as_chunks::<8>();
    let mut last = [b' '; 8];
    for (byte, letter) in last.iter_mut().zip(rest) {
        *byte = *letter;
    }
    eights.iter().chain([&last]).any(|eight| {
        let word = u64::from_le_bytes(*eight);
        let controls = word.wrapping_sub(each(b' ')) & !word;
        let has = |byte: u8| {
            let zero_there = word ^ each(byte);
            zero_there.wrapping_sub(each(1)) & !zero_there
        };
        (controls | has(b'"') | has(b'\\')) & each(0x80) != 0
    })
}

/// A word of this byte alone.
const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_escapes_is_found_wherever_it_stands_and_nothing_else() {
        for byte in 0..=u8::MAX {
            for (before, behind) in [(0, 0), (3, 0), (7, 1), (8, 0), (9, 6), (16, 7)] {
                for around in [b'a', 0x7f, 0x80, 0xff, b' ', b'!', b'#', b'[', b']'] {
                    let letters = [vec![around; before], vec![byte], vec![around; behind]].concat();
                    let is_escaped = byte < b' ' || byte == b'"' || byte == b'\\';
                    assert_eq!(has_escaped(&letters), is_escaped, "{letters:?}");
                }
            }
        }
        assert!(!has_escaped(b""));
    }
}
