//! Paths of routes and files among the settings.

use std::path::PathBuf;

use chassis::settings::Reader;

/// Whether it is a path that needs no escapes: segments of unreserved characters (RFC 3986, section 2.3).
pub(super) fn is_plain_path(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~');
    let segments = path.split('/').skip(1);
    let whole =
        segments.clone().count() > 0 && segments.clone().all(|s| !s.is_empty() && s != "." && s != "..");
    path.starts_with('/') && path.bytes().all(plain) && whole
}

/// The file of this setting, which has to be there.
pub(super) fn file(reader: &mut Reader, name: &str) -> Option<PathBuf> {
    let path = reader.path(name)?;
    if !path.is_file() {
        reader.wrong(name, "names a file that is not there");
    }
    Some(path)
}
