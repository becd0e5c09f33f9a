//! Messages derived from others, most of them still valid.

use super::fields::{Fields, Value};
use crate::Mutator;
use crate::mutate::BYTES_MAX;

/// An input that differs from `input` in a few places, or mixes it with `other`; usually a valid message.
pub(super) fn derived(mutator: &mut Mutator, input: &[u8], other: &[u8]) -> Vec<u8> {
    let messages = (
        input.get(1..).and_then(Fields::read),
        other.get(1..).and_then(Fields::read),
    );
    if let (Some(mut message), Some(other)) = messages
        && mutator.below(4) != 0
    {
        change_fields(mutator, &mut message, &other);
        let mut output = vec![input[0]];
        output.extend(message.write());
        output.truncate(BYTES_MAX);
        return output;
    }
    mutator.bytes(input, other)
}

fn change_fields(mutator: &mut Mutator, message: &mut Fields, other: &Fields) {
    for _ in 0..=mutator.below(3) {
        let Fields(fields) = message;
        if fields.is_empty() {
            fields.extend(other.0.iter().cloned());
            continue;
        }
        let at = mutator.below(fields.len());
        match mutator.below(7) {
            0 => drop(fields.remove(at)),
            1 => fields.insert(at, fields[at].clone()),
            2 if !other.0.is_empty() => fields.push(other.0[mutator.below(other.0.len())].clone()),
            3 if !other.0.is_empty() => {
                let (tag, value) = &other.0[mutator.below(other.0.len())];
                if tag & 7 == fields[at].0 & 7 {
                    fields[at].1 = value.clone();
                }
            }
            4 => fields[at].0 = (1 + mutator.below(24) as u64) << 3 | fields[at].0 & 7,
            _ => match &mut fields[at].1 {
                Value::Varint(number) => *number = mutator.next() >> mutator.below(64),
                Value::Bytes(bytes) => {
                    // An inner message usually stays a message; text may become invalid.
                    match Fields::read(bytes) {
                        Some(mut inner) if !inner.0.is_empty() && mutator.below(3) != 0 => {
                            change_fields(mutator, &mut inner, other);
                            *bytes = inner.write();
                        }
                        _ => change_text(mutator, bytes),
                    }
                }
            },
        }
    }
}

fn change_text(mutator: &mut Mutator, bytes: &mut Vec<u8>) {
    const PIECES: [&str; 8] = ["", " ", "\0", "\n", "é", "*", "/../", "\u{202e}"];
    let at = mutator.below(bytes.len() + 1);
    match mutator.below(5) {
        0 => bytes.truncate(at),
        1 => *bytes = bytes.repeat(1 + mutator.below(300)),
        2 => bytes.make_ascii_uppercase(),
        3 if at < bytes.len() => bytes[at] ^= 1 << mutator.below(8),
        _ => {
            let piece = PIECES[mutator.below(PIECES.len())];
            bytes.splice(at..at, piece.bytes());
        }
    }
}
