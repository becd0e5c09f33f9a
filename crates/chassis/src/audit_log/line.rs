//! The form of a record's line: what stands around its fields, and how to find that again.
//!
//! `{"target":"audit","schema":…,"service":…,"instance":…,"sequence":…,` its fields `,"prev":…,"hash":…}`

use std::io::Write as _;

use serde_json::Value;

use crate::audit::schema;
use base16ct::lower::{self, encode_string};

/// Bytes of a hash.
pub(crate) const HASH_BYTES: usize = 32;

/// A hash.
pub(crate) type Hash = [u8; HASH_BYTES];

/// What every line begins with: tells it from other lines.
const MARKER: &str = "{\"target\":\"audit\",";

/// What stands before a line's own hash.
const BEFORE_HASH: &str = ",\"hash\":\"";

/// What a line ends with.
const END: &str = "\"}";

/// The hash of these digits.
pub(crate) fn parse_hash(digits: &str) -> Option<Hash> {
    let mut hash = [0; HASH_BYTES];
    let decoded = lower::decode(digits, &mut hash).ok()?;
    (decoded.len() == HASH_BYTES).then_some(hash)
}

/// A digest's bytes as a hash.
pub(super) fn to_hash(digest: &[u8]) -> Hash {
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(digest);
    hash
}

/// What every line of a process begins with, up to the record's number.
pub(super) fn head(service: &str, instance: &str) -> String {
    let version = schema::VERSION;
    format!(
        "{MARKER}\"schema\":\"{version}\",\"service\":\"{service}\",\"instance\":\"{instance}\",\"sequence\":"
    )
}

/// Writes a line up to its own hash.
pub(super) fn begin(line: &mut Vec<u8>, head: &str, sequence: u64, fields: &[u8], previous: &Hash) {
    line.extend_from_slice(head.as_bytes());
    // Writing to a vector cannot fail.
    let _ = write!(line, "{sequence},");
    line.extend_from_slice(fields);
    let _ = write!(line, ",\"prev\":\"{}\"", encode_string(previous));
}

/// Writes the rest of it.
pub(super) fn close(line: &mut Vec<u8>, hash: &Hash) {
    line.extend_from_slice(BEFORE_HASH.as_bytes());
    line.extend_from_slice(encode_string(hash).as_bytes());
    line.extend_from_slice(END.as_bytes());
    line.push(b'\n');
}

/// The members of an object, as they stand between its braces.
pub(super) fn members(object: &Value) -> Vec<u8> {
    let text = object.to_string();
    text.as_bytes()
        .get(1..text.len().saturating_sub(1))
        .unwrap_or_default()
        .to_vec()
}

/// A line, taken apart.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    /// What its hash covers.
    pub(crate) hashed: &'a str,
    /// The hash it closes with.
    pub(crate) hash: Hash,
    /// What it says.
    pub(crate) record: Value,
}

impl Line<'_> {
    /// A member that is text.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.record.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A member that is a whole number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.record.get(name)?.as_u64()
    }
}

/// What a line of a log is.
#[derive(Debug)]
pub(crate) enum Parsed<'a> {
    /// A record of an audit stream.
    Record(Line<'a>),
    /// The beginning of one.
    Half,
    /// One that was, and is not whole any more.
    Broken,
    /// Something else.
    Other,
}

/// Takes a line apart, whatever a container runtime wrote before the record.
pub(crate) fn parse(line: &str) -> Parsed<'_> {
    let whole = line.find(MARKER).map(|at| line[at..].trim_end());
    let Some(text) = whole else {
        // A record whose beginning is gone is still told from a line of something else by what it ends with.
        let end = line
            .trim_end()
            .strip_suffix(END)
            .and_then(|text| text.rsplit_once(BEFORE_HASH));
        return match end.and_then(|(_, digits)| parse_hash(digits)) {
            Some(_) => Parsed::Broken,
            None => Parsed::Other,
        };
    };
    match taken_apart(text) {
        Some(line) => Parsed::Record(line),
        None if text.ends_with(END) => Parsed::Broken,
        None => Parsed::Half,
    }
}

fn taken_apart(text: &str) -> Option<Line<'_>> {
    let (hashed, digits) = text.strip_suffix(END)?.rsplit_once(BEFORE_HASH)?;
    Some(Line {
        hashed,
        hash: parse_hash(digits)?,
        record: serde_json::from_str(text).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> String {
        let mut line = Vec::new();
        begin(
            &mut line,
            &head("edge", "ab"),
            7,
            b"\"event\":\"sign_in\"",
            &[1; HASH_BYTES],
        );
        close(&mut line, &[2; HASH_BYTES]);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_line_is_found_again_behind_what_a_container_runtime_writes() {
        let line = line();
        for prefix in ["", "2026-11-25T19:00:00.000000000Z stdout F "] {
            let text = format!("{prefix}{line}");
            let Parsed::Record(parsed) = parse(&text) else {
                panic!("{text}")
            };
            assert_eq!(
                (parsed.text("event"), parsed.number("sequence")),
                ("sign_in", Some(7))
            );
            assert_eq!(parsed.hash, [2; HASH_BYTES]);
            assert!(
                parsed
                    .hashed
                    .ends_with(&format!("\"prev\":\"{}\"", "01".repeat(HASH_BYTES)))
            );
        }
    }

    #[test]
    fn half_a_line_is_broken_and_another_record_is_none_of_ours() {
        let line = line();
        let (first, second) = line.trim_end().split_at(line.len() / 2);
        assert!(matches!(parse(first), Parsed::Half), "{first}");
        assert!(matches!(parse(second), Parsed::Broken), "{second}");
        for other in ["", "plain words", "{\"level\":\"INFO\",\"target\":\"auth_edge\"}"] {
            assert!(matches!(parse(other), Parsed::Other), "{other}");
        }
    }

    #[test]
    fn digits_that_are_no_hash_are_none() {
        assert_eq!(
            parse_hash(&encode_string(&[7; HASH_BYTES])),
            Some([7; HASH_BYTES])
        );
        for wrong in ["", "00", &"+1".repeat(HASH_BYTES), &"AA".repeat(HASH_BYTES)] {
            assert_eq!(parse_hash(wrong), None, "{wrong}");
        }
    }
}
