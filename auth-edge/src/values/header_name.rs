//! Header names as upstream applications read them, and the members of list headers.

use std::borrow::Cow;

use http::header::{self, AsHeaderName};
use http::{HeaderMap, HeaderName};

/// Hop-by-hop headers, `Expect` (answered here), and the request for HTTP/2 (RFC 7540, section 3.2.1).
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

/// The members of a list header (RFC 9110, section 5.6.1), over all lines in their order; some may be empty.
pub(crate) fn members(
    headers: &HeaderMap,
    name: impl AsHeaderName,
) -> impl DoubleEndedIterator<Item = &[u8]> {
    let lines = headers.get_all(name).into_iter();
    let members = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    members.map(<[u8]>::trim_ascii)
}

/// A name as read by applications that turn header names into variables (CGI, WSGI, PHP): all signs except
/// letters and digits are equal. The name is already in lower case.
pub(crate) fn folded(name: &str) -> Cow<'_, str> {
    let other = |byte: u8| byte != b'-' && !byte.is_ascii_alphanumeric();
    if name.bytes().any(other) {
        Cow::Owned(name.replace(|character: char| !character.is_ascii_alphanumeric(), "-"))
    } else {
        Cow::Borrowed(name)
    }
}
