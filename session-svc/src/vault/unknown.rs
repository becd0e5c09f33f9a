//! Finds the fields of a stored message that this release does not know (Protocol Buffers encoding).

use prost::bytes::Buf;

/// The fields of `message` whose number is above `last_known`, one after the other as they stand; `None` if it is no
/// message, or uses groups, which nothing of ours ever writes.
pub(super) fn fields_above(last_known: u64, message: &[u8]) -> Option<Vec<u8>> {
    let (mut unknown, mut rest) = (Vec::new(), message);
    while !rest.is_empty() {
        let field = rest;
        let key = varint(&mut rest)?;
        match key & 7 {
            0 => drop(varint(&mut rest)?),
            1 => skip(&mut rest, 8)?,
            2 => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                skip(&mut rest, length)?;
            }
            5 => skip(&mut rest, 4)?,
            _ => return None,
        }
        if key >> 3 > last_known {
            unknown.extend_from_slice(field.get(..field.len() - rest.len())?);
        }
    }
    Some(unknown)
}

fn skip(rest: &mut &[u8], bytes: usize) -> Option<()> {
    *rest = rest.get(bytes..)?;
    Some(())
}

/// A number in groups of seven bits, the lowest first; at most ten bytes.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = rest.has_remaining().then(|| rest.get_u8())?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
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
            fields in proptest::collection::vec(any_field(), 0..8), last_known in 0..(1_u64 << 29),
        ) {
            let all: Vec<u8> = fields.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
            let above: Vec<u8> = fields
                .iter()
                .filter(|(number, _)| *number > last_known)
                .flat_map(|(_, bytes)| bytes.clone())
                .collect();
            prop_assert_eq!(fields_above(last_known, &all), Some(above));
        }

        #[test]
        fn any_bytes_are_taken_apart_or_refused_without_panic(bytes: Vec<u8>) {
            let _ = fields_above(19, &bytes);
        }
    }
}
