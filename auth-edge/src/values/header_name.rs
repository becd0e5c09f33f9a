//! Header names as the applications behind read them.

use std::borrow::Cow;

/// A name as applications read it that make variables of header names (CGI, WSGI, PHP): whatever is neither letter nor
/// digit is the same to them. The name is in lower case already.
pub(crate) fn folded(name: &str) -> Cow<'_, str> {
    let other = |byte: u8| byte != b'-' && !byte.is_ascii_alphanumeric();
    if name.bytes().any(other) {
        Cow::Owned(name.replace(|character: char| !character.is_ascii_alphanumeric(), "-"))
    } else {
        Cow::Borrowed(name)
    }
}
