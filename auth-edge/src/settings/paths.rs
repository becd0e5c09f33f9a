//! Settings with the paths of routes.

/// Whether a path needs no escapes: its segments have only unreserved characters (RFC 3986, section 2.3).
pub(super) fn is_plain_path(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~');
    let segments = path.split('/').skip(1);
    let whole =
        segments.clone().count() > 0 && segments.clone().all(|s| !s.is_empty() && s != "." && s != "..");
    path.starts_with('/') && path.bytes().all(plain) && whole
}
