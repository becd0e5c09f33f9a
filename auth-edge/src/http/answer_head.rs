//! How long the heads of the edge's own answers may get.
//!
//! Invariant: what can be long (an address, a hint, cookies that are taken away, headers for an application) is added only
//! while the head has room for it. Deliberately absent: heads of upstreams, which are as long as their upstream wants.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The longest head, in bytes: nginx reads it into one buffer of a memory page (`proxy_buffer_size`, 4 KiB by default), and
/// answers 502 to a longer one.
pub(crate) const MAX_BYTES: usize = 4_096;

/// Room for what the layer around all routes still adds: status line, date, request ID, length, security headers.
const ADDED_BY_LAYER: usize = 768;

/// The bytes of a header's line.
#[must_use]
pub(crate) fn line_bytes(name: &HeaderName, value: &HeaderValue) -> usize {
    const SEPARATORS: usize = ": \r\n".len();
    name.as_str().len() + value.len() + SEPARATORS
}

/// The bytes that these headers leave of a head.
#[must_use]
pub(crate) fn room(headers: &HeaderMap) -> usize {
    room_within(MAX_BYTES, headers)
}

/// The bytes that these headers leave of a head of at most so many.
#[must_use]
pub(crate) fn room_within(most: usize, headers: &HeaderMap) -> usize {
    let taken: usize = headers.iter().map(|(name, value)| line_bytes(name, value)).sum();
    most.saturating_sub(ADDED_BY_LAYER + taken)
}

/// Adds the values that the head has room for, and leaves out the others.
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
