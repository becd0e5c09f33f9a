//! URLs of the web: http and https, with a host and without credentials.

use url::Url;

/// Whether a URL is one of the web's.
pub(crate) fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
}

/// Whether it is scheme, host and port alone.
pub(crate) fn is_origin(url: &Url) -> bool {
    is_web(url) && url.path() == "/" && url.query().is_none() && url.fragment().is_none()
}
