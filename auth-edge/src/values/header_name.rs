//! Header names as the applications behind read them, and the members of lists in headers.

use std::borrow::Cow;

use http::header::{self, AsHeaderName};
use http::{HeaderMap, HeaderName};

/// Hop-by-hop headers, `Expect`, which this hop has answered, and what asks for HTTP/2 (RFC 7540, section 3.2.1).
pub(crate) const HOP_BY_HOP: [HeaderName; 11] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
    HeaderName::from_static("http2-settings"),
];

/// The members of a header that is a list (RFC 9110, section 5.6.1), of all its lines in their order; some may be empty.
pub(crate) fn members(
    headers: &HeaderMap,
    name: impl AsHeaderName,
) -> impl DoubleEndedIterator<Item = &[u8]> {
    let lines = headers.get_all(name).into_iter();
    let members = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    members.map(<[u8]>::trim_ascii)
}

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
