//! How the adapters that write bytes write a record.
//!
//! Layout, big-endian; scripts compare the version and the expiry as bytes at these offsets, and find a removed
//! record's indexes by it:
//! ```text
//! offset 0   format (1)
//!        1   version            u64
//!        9   expires_at_ms      u64
//!        17  created_at_ms      u64
//!        25  number of indexes  u8
//!            each: length u16 (high bit: lower-case hexadecimal, packed in half the bytes), bytes
//!            payload to the end
//! ```
//! The name is the key and is not repeated. Names that are hexadecimal digits, as all of this service's
//! are, take half the bytes.

use super::{Record, StoreError};

/// The only format there is.
const FORMAT: u8 = 1;

const PACKED: u16 = 1 << 15;

/// A record as bytes, without its name.
pub(super) fn encode(record: &Record) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(26 + record.indexes.len() * 34 + record.payload.len());
    bytes.push(FORMAT);
    bytes.extend(record.version.to_be_bytes());
    bytes.extend(record.expires_at_ms.to_be_bytes());
    bytes.extend(record.created_at_ms.to_be_bytes());
    // More indexes than a byte counts, or longer names than 15 bits count, are cut: nobody has them.
    let indexes = &record.indexes[..record.indexes.len().min(usize::from(u8::MAX))];
    bytes.push(indexes.len() as u8);
    for index in indexes {
        bytes.extend(index_name(index));
    }
    bytes.extend(&record.payload);
    bytes
}

/// The name of an index as a record holds it: its length, then its bytes.
pub(super) fn index_name(index: &str) -> Vec<u8> {
    let (bytes, flag) = match pack(index) {
        Some(packed) => (packed, PACKED),
        None => (index.as_bytes().to_vec(), 0),
    };
    let bytes = &bytes[..bytes.len().min(usize::from(PACKED - 1))];
    [&(bytes.len() as u16 | flag).to_be_bytes()[..], bytes].concat()
}

/// The name of an index that stands at the beginning, and what follows it.
pub(super) fn read_index_name(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let length = u16::from_be_bytes(*length);
    let (index, rest) = rest.split_at_checked(usize::from(length & !PACKED))?;
    let index = if length & PACKED == 0 {
        String::from_utf8(index.to_vec()).ok()?
    } else {
        unpack(index)
    };
    Some((index, rest))
}

/// The record of `name` from its bytes; `Corrupt` if they are not what `encode` writes.
pub(super) fn decode(name: &str, bytes: &[u8]) -> Result<Record, StoreError> {
    parse(name, bytes).ok_or(StoreError::Corrupt)
}

/// When a record expires; `None` if its frame is not what `encode` writes.
pub(super) fn expiry(bytes: &[u8]) -> Option<u64> {
    let (&format, rest) = bytes.split_first()?;
    let mut expiry = rest.get(8..).filter(|_| format == FORMAT)?;
    number(&mut expiry)
}

fn parse(name: &str, bytes: &[u8]) -> Option<Record> {
    let (&format, mut rest) = bytes.split_first()?;
    if format != FORMAT {
        return None;
    }
    let version = number(&mut rest)?;
    let expires_at_ms = number(&mut rest)?;
    let created_at_ms = number(&mut rest)?;
    let (&count, mut rest) = rest.split_first()?;
    let mut indexes = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let (index, after) = read_index_name(rest)?;
        indexes.push(index);
        rest = after;
    }
    let payload = rest.to_vec();
    Some(Record {
        name: name.to_owned(),
        version,
        expires_at_ms,
        created_at_ms,
        indexes,
        payload,
    })
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(u64::from_be_bytes(*bytes))
}

/// The bytes that lower-case hexadecimal digits stand for, if `name` is such.
pub(super) fn pack(name: &str) -> Option<Vec<u8>> {
    let bytes = base16ct::lower::decode_vec(name).ok()?;
    (!bytes.is_empty()).then_some(bytes)
}

/// Lower-case hexadecimal digits of `bytes`.
pub(super) fn unpack(bytes: &[u8]) -> String {
    base16ct::lower::encode_string(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_record() -> impl Strategy<Value = Record> {
        let index = prop_oneof!["[0-9a-f]{32}", "[0-9a-f]{0,9}", "[ -~]{0,40}", any::<String>()];
        (
            any::<[u64; 3]>(),
            prop::collection::vec(index, 0..4),
            any::<Vec<u8>>(),
        )
            .prop_map(
                |([version, expires_at_ms, created_at_ms], indexes, payload)| Record {
                    name: "name".to_owned(),
                    version,
                    expires_at_ms,
                    created_at_ms,
                    indexes,
                    payload,
                },
            )
    }

    #[test]
    fn what_format_1_wrote_is_read() {
        let written = b"\x01\0\0\0\0\0\0\0\x07\0\0\x01\x8b\xcf\xe5\x68\0\0\0\x01\x8b\xcf\xe5\x67\xff\x02\
            \x80\x02\xab\xcd\0\x04XY-1sealed";
        let expected = Record {
            name: "name".to_owned(),
            version: 7,
            expires_at_ms: 1_700_000_000_000,
            created_at_ms: 1_699_999_999_999,
            indexes: vec!["abcd".to_owned(), "XY-1".to_owned()],
            payload: b"sealed".to_vec(),
        };
        assert_eq!(decode("name", written).unwrap(), expected);
        assert_eq!(encode(&expected), written);
        let newer = [&[FORMAT + 1], &written[1..]].concat();
        assert!(matches!(decode("name", &newer), Err(StoreError::Corrupt)));
    }

    proptest! {
        #[test]
        fn a_record_survives_encoding(record in any_record()) {
            prop_assert_eq!(decode("name", &encode(&record)).unwrap(), record);
        }

        #[test]
        fn any_bytes_are_read_or_refused_without_panic(bytes: Vec<u8>) {
            let _ = decode("name", &bytes);
        }

        #[test]
        fn a_cut_header_is_refused(record in any_record(), keep in 0_usize..26) {
            prop_assert!(matches!(decode("name", &encode(&record)[..keep]), Err(StoreError::Corrupt)));
        }

        #[test]
        fn version_and_expiry_stand_where_scripts_look(record in any_record()) {
            prop_assert_eq!(&encode(&record)[1..9], &record.version.to_be_bytes()[..]);
            prop_assert_eq!(&encode(&record)[9..17], &record.expires_at_ms.to_be_bytes()[..]);
            prop_assert_eq!(expiry(&encode(&record)), Some(record.expires_at_ms));
        }
    }
}
