//! The byte format of a record.
//!
//! Layout, big-endian. Scripts compare the version and the expiry as bytes at these offsets, and find a
//! removed record's indexes in it:
//! ```text
//! offset 0   format (1)
//!        1   version            u64
//!        9   expires_at_ms      u64
//!        17  created_at_ms      u64
//!        25  number of indexes  u8
//!            each: 0x80 0x10 (packed hexadecimal digits, 16 bytes), the name
//!            payload to the end
//! ```
//! The record's name is the key and not repeated. A name takes half the bytes of its digits.

use bytes::Buf as _;

use super::{Name, Record};

/// The only format.
const FORMAT: u8 = 1;

/// Precedes the name of an index: its length of 16 bytes, with the high bit for packed digits.
const NAME: [u8; 2] = [0x80, 16];

/// A record as bytes, without its name.
pub(super) fn encode(record: &Record) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(26 + record.indexes.len() * 18 + record.payload.len());
    bytes.push(FORMAT);
    bytes.extend(record.version.to_be_bytes());
    bytes.extend(record.expires_at_ms.to_be_bytes());
    bytes.extend(record.created_at_ms.to_be_bytes());
    // The count is one byte; no record has more indexes.
    let indexes = &record.indexes[..record.indexes.len().min(usize::from(u8::MAX))];
    bytes.push(indexes.len() as u8);
    for index in indexes {
        bytes.extend(NAME);
        bytes.extend(index.as_bytes());
    }
    bytes.extend(&record.payload);
    bytes
}

/// When a record expires; `None` if `encode` did not write these bytes.
pub(super) fn expiry(bytes: &[u8]) -> Option<u64> {
    let mut expiry = bytes.strip_prefix(&[FORMAT])?.get(8..)?;
    expiry.try_get_u64().ok()
}

/// The record of `name` from its bytes; `None` if `encode` did not write them.
pub(super) fn decode(name: Name, bytes: &[u8]) -> Option<Record> {
    let mut rest = bytes.strip_prefix(&[FORMAT])?;
    let version = rest.try_get_u64().ok()?;
    let expires_at_ms = rest.try_get_u64().ok()?;
    let created_at_ms = rest.try_get_u64().ok()?;
    let count = rest.try_get_u8().ok()?;
    let mut indexes = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let (index, after) = rest.strip_prefix(&NAME)?.split_first_chunk()?;
        indexes.push(Name::from_bytes(*index));
        rest = after;
    }
    let payload = rest.to_vec();
    Some(Record {
        name,
        version,
        expires_at_ms,
        created_at_ms,
        indexes,
        payload,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ITS: Name = Name::from_bytes([7; 16]);

    fn any_record() -> impl Strategy<Value = Record> {
        let index = any::<[u8; 16]>().prop_map(Name::from_bytes);
        (
            any::<[u64; 3]>(),
            prop::collection::vec(index, 0..4),
            any::<Vec<u8>>(),
        )
            .prop_map(
                |([version, expires_at_ms, created_at_ms], indexes, payload)| Record {
                    name: ITS,
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
            \x80\x10\xab\xcdABCDEFGHIJKLMN\x80\x100123456789abcdefsealed";
        let expected = Record {
            name: ITS,
            version: 7,
            expires_at_ms: 1_700_000_000_000,
            created_at_ms: 1_699_999_999_999,
            indexes: vec![
                Name::from_bytes(*b"\xab\xcdABCDEFGHIJKLMN"),
                Name::from_bytes(*b"0123456789abcdef"),
            ],
            payload: b"sealed".to_vec(),
        };
        assert_eq!(decode(ITS, written).unwrap(), expected);
        assert_eq!(encode(&expected), written);
        let newer = [&[FORMAT + 1], &written[1..]].concat();
        assert_eq!(decode(ITS, &newer), None);
    }

    proptest! {
        #[test]
        fn a_record_survives_encoding(record in any_record()) {
            prop_assert_eq!(decode(ITS, &encode(&record)).unwrap(), record);
        }

        #[test]
        fn any_bytes_are_read_or_refused_without_panic(bytes: Vec<u8>) {
            let _ = decode(ITS, &bytes);
        }

        #[test]
        fn a_cut_header_is_refused(record in any_record(), keep in 0_usize..26) {
            prop_assert_eq!(decode(ITS, &encode(&record)[..keep]), None);
        }

        #[test]
        fn version_and_expiry_stand_where_scripts_look(record in any_record()) {
            prop_assert_eq!(&encode(&record)[1..9], &record.version.to_be_bytes()[..]);
            prop_assert_eq!(&encode(&record)[9..17], &record.expires_at_ms.to_be_bytes()[..]);
            prop_assert_eq!(expiry(&encode(&record)), Some(record.expires_at_ms));
        }
    }
}
