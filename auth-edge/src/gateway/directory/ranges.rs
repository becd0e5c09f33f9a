//! Parts of files: which are asked for, and when the whole file is due instead (RFC 9110, sections 13.1.5 and 14.2).

use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, StatusCode};

/// How the entity tag of a file ends whose time has no fraction of a second, before its length.
const WHOLE_SECOND: &str = ".00000000-";

/// Removes a `Range` that a server ignores: of another method than GET, in another unit, malformed, or of several parts.
pub(super) fn remove_ignored(head: &mut Parts) {
    let ranges = head.headers.get(header::RANGE).map(HeaderValue::as_bytes);
    if head.method != Method::GET || !ranges.is_some_and(is_one_range) {
        head.headers.remove(header::RANGE);
    }
}

/// Whether this is one range of bytes (RFC 9110, section 14.1.2).
fn is_one_range(range: &[u8]) -> bool {
    let parse = || {
        let (unit, range) = std::str::from_utf8(range).ok()?.split_once('=')?;
        let (first, last) = range.split_once('-')?;
        let is_position = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_ordered =
            first.is_empty() || last.is_empty() || first.parse::<u64>().ok()? <= last.parse().ok()?;
        let is_range = is_position(first) && is_position(last) && (first.len() + last.len() > 0);
        Some(unit.eq_ignore_ascii_case("bytes") && is_range && is_ordered)
    };
    parse().unwrap_or_default()
}

/// Whether an answer is a part of another file than the one that the client has a part of.
///
/// A date is no strong validator: two releases may have the same. Neither is the tag of a file whose time is a whole second,
/// as archives and images set it, often the same for each release.
pub(super) fn is_of_another(status: StatusCode, headers: &HeaderMap, if_range: &HeaderValue) -> bool {
    let is_part = matches!(
        status,
        StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE
    );
    let tag = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok());
    let is_same =
        tag.is_some_and(|tag| if_range == tag && tag.starts_with('"') && !tag.contains(WHOLE_SECOND));
    is_part && !is_same
}
