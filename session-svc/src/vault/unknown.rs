//! Finds the fields of a stored message that this release does not know (Protocol Buffers encoding).

use prost::DecodeError;
use prost::encoding::{DecodeContext, decode_key, skip_field};

/// The fields of `message` with a number above `last_known`, unchanged and in their order.
///
/// # Errors
/// The bytes are not a message.
pub(super) fn fields_above(last_known: u32, message: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let (mut unknown, mut rest) = (Vec::new(), message);
    while !rest.is_empty() {
        let field = rest;
        let (number, wire_type) = decode_key(&mut rest)?;
        skip_field(wire_type, number, &mut rest, DecodeContext::default())?;
        if number > last_known {
            unknown.extend_from_slice(&field[..field.len() - rest.len()]);
        }
    }
    Ok(unknown)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(number: u64) -> Vec<u8> {
        let (mut number, mut bytes) = (number, Vec::new());
        while number >= 0x80 {
            bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }

    fn any_field() -> impl Strategy<Value = (u64, Vec<u8>)> {
        let content = prop_oneof![
            any::<u64>().prop_map(|number| (0, encoded(number))),
            any::<[u8; 8]>().prop_map(|bytes| (1, bytes.to_vec())),
            any::<Vec<u8>>().prop_map(|bytes| (2, [encoded(bytes.len() as u64), bytes].concat())),
            any::<[u8; 4]>().prop_map(|bytes| (5, bytes.to_vec())),
        ];
        (1..(1_u64 << 29), content)
            .prop_map(|(number, (kind, content))| (number, [encoded(number << 3 | kind), content].concat()))
    }

    proptest! {
        #[test]
        fn exactly_the_fields_above_are_found_in_their_order(
            fields in proptest::collection::vec(any_field(), 0..8), last_known in 0..(1_u32 << 29),
        ) {
            let all: Vec<u8> = fields.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
            let above: Vec<u8> = fields
                .iter()
                .filter(|(number, _)| *number > u64::from(last_known))
                .flat_map(|(_, bytes)| bytes.clone())
                .collect();
            prop_assert_eq!(fields_above(last_known, &all).unwrap(), above);
        }

        #[test]
        fn any_bytes_are_taken_apart_or_refused_without_panic(bytes: Vec<u8>) {
            let _ = fields_above(19, &bytes);
        }
    }
}
