//! Bounds the length of the heads of the edge's own answers.
//!
//! Invariant: a long value (address, hint, expired cookie, header for an application) is added only if it fits.
//! Not bounded: heads of upstreams.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The longest head, in bytes. nginx reads a head into one memory page (`proxy_buffer_size`, default 4 KiB) and
/// answers 502 to a longer one.
pub(crate) const MAX_BYTES: usize = 4_096;

/// Room for what the outer layer adds: status line, date, request ID, length, security headers.
const ADDED_BY_LAYER: usize = 768;

/// The bytes of one header line.
#[must_use]
pub(crate) fn line_bytes(name: &HeaderName, value: &HeaderValue) -> usize {
    const SEPARATORS: usize = ": \r\n".len();
    name.as_str().len() + value.len() + SEPARATORS
}

/// The bytes left in a head with these headers.
#[must_use]
pub(crate) fn room(headers: &HeaderMap) -> usize {
    room_within(MAX_BYTES, headers)
}

/// The bytes left in a head with these headers and a limit of `most` bytes.
#[must_use]
pub(crate) fn room_within(most: usize, headers: &HeaderMap) -> usize {
    let taken: usize = headers.iter().map(|(name, value)| line_bytes(name, value)).sum();
    most.saturating_sub(ADDED_BY_LAYER + taken)
}

/// Adds each value that fits into the head and skips the others.
pub(crate) fn append_what_fits(
    headers: &mut HeaderMap,
    name: &HeaderName,
    values: impl IntoIterator<Item = HeaderValue>,
) {
    let mut room = room(headers);
    for value in values {
        let Some(left) = room.checked_sub(line_bytes(name, &value)) else {
            continue;
        };
        headers.append(name.clone(), value);
        room = left;
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header::SET_COOKIE;

    use super::*;

    #[test]
    fn values_are_added_while_there_is_room() {
        let mut headers = HeaderMap::new();
        let long = |bytes: usize| HeaderValue::try_from("a".repeat(bytes)).unwrap();
        append_what_fits(&mut headers, &SET_COOKIE, [long(2_000), long(2_000), long(1_000)]);
        let lengths: Vec<usize> = headers.get_all(SET_COOKIE).iter().map(HeaderValue::len).collect();
        assert_eq!(lengths, [2_000, 1_000]);
        assert!(room(&headers) < 1_000);
    }
}
