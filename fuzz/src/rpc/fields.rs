//! A message as fields (Protocol Buffers, "Encoding"), so that derived inputs stay messages.

/// Fields of a message, in order; numbers and wire types as in the tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fields(pub(crate) Vec<(u64, Value)>);

/// The content of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 2: text, bytes or a message.
    Bytes(Vec<u8>),
}

impl Fields {
    /// Reads a message; `None` if the bytes are invalid, or contain a wire type this API does not use.
    pub(crate) fn read(mut bytes: &[u8]) -> Option<Self> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes)?;
            let value = match tag & 7 {
                0 => Value::Varint(varint(&mut bytes)?),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)?).ok()?;
                    let (value, rest) = bytes.split_at_checked(length)?;
                    bytes = rest;
                    Value::Bytes(value.to_vec())
                }
                _ => return None,
            };
            fields.push((tag, value));
        }
        Some(Self(fields))
    }

    /// Writes the message.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (tag, value) in &self.0 {
            put_varint(&mut bytes, *tag);
            match value {
                Value::Varint(number) => put_varint(&mut bytes, *number),
                Value::Bytes(value) => {
                    put_varint(&mut bytes, value.len() as u64);
                    bytes.extend_from_slice(value);
                }
            }
        }
        bytes
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_being_read_and_written() {
        let bytes = [0x0a, 0x02, b'h', b'i', 0x18, 0xac, 0x02];
        let fields = Fields::read(&bytes).unwrap();
        assert_eq!(
            fields.0,
            [(10, Value::Bytes(b"hi".to_vec())), (24, Value::Varint(300))]
        );
        assert_eq!(fields.write(), bytes);
        assert_eq!(Fields::read(&[0x0a, 0x05, b'x']), None);
    }
}
