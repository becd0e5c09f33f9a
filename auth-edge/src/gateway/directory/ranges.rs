//! Range requests, and when the whole file is sent instead (RFC 9110, sections 13.1.5 and 14.2).

use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, StatusCode};

/// The end of a time without fractions in an entity tag. The file's length follows it.
const WHOLE_SECOND: &str = ".00000000-";

/// Keeps a single range of bytes, in the one spelling that `ServeDir` reads. Removes a `Range` that a server
/// ignores: for a method other than GET, in another unit, malformed, or multipart.
pub(super) fn normalize(head: &mut Parts) {
    let mut values = head.headers.get_all(header::RANGE).iter();
    let range = match (values.next(), values.next()) {
        (Some(only), None) if head.method == Method::GET => one_range(only),
        _ => None,
    };
    match range {
        Some(range) => _ = head.headers.insert(header::RANGE, range),
        None => _ = head.headers.remove(header::RANGE),
    }
}

/// One range of bytes (RFC 9110, section 14.1.2), without leading zeros.
fn one_range(value: &HeaderValue) -> Option<HeaderValue> {
    let (unit, range) = value.to_str().ok()?.split_once('=')?;
    let (first, last) = range.split_once('-')?;
    let is_position = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_range = is_position(first) && is_position(last) && range != "-";
    let (first, last) = (without_zeros(first), without_zeros(last));
    // Decimals without leading zeros compare by length first.
    let is_ordered = first.is_empty() || last.is_empty() || (first.len(), first) <= (last.len(), last);
    let is_served = unit.eq_ignore_ascii_case("bytes") && is_range && is_ordered;
    HeaderValue::try_from(format!("bytes={first}-{last}"))
        .ok()
        .filter(|_| is_served)
}

fn without_zeros(position: &str) -> &str {
    match position.trim_start_matches('0') {
        "" => &position[..position.len().min(1)],
        significant => significant,
    }
}

/// Whether to send the whole file instead of this answer to `range`.
pub(super) fn wants_whole(
    answer: (StatusCode, &HeaderMap),
    range: &HeaderValue,
    if_range: Option<&HeaderValue>,
) -> bool {
    let (status, headers) = answer;
    let is_part = status == StatusCode::PARTIAL_CONTENT;
    let is_beyond = status == StatusCode::RANGE_NOT_SATISFIABLE;
    // A suffix longer than the file means the whole file, and an empty file has no part.
    let is_suffix = range.as_bytes().starts_with(b"bytes=-") && range != "bytes=-0";
    let is_empty = headers
        .get(header::CONTENT_LENGTH)
        .is_some_and(|length| length == "0");
    let of_another = if_range.is_some_and(|validator| !is_of_same(headers, validator));
    (is_beyond && is_suffix) || (is_part && is_empty) || ((is_part || is_beyond) && of_another)
}

/// Whether the client's part is from this version of the file.
///
/// A date is not a strong validator: two releases may share it. An entity tag with a time in whole seconds is not one
/// either: archives and images often set the same time for each release.
fn is_of_same(headers: &HeaderMap, validator: &HeaderValue) -> bool {
    let tag = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok());
    tag.is_some_and(|tag| validator == tag && tag.starts_with('"') && !tag.contains(WHOLE_SECOND))
}
