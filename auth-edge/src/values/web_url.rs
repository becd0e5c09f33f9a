//! URLs of the web: http and https, with a host and without credentials.

use url::Url;

/// Whether a URL is http or https, with a host and without credentials.
pub(crate) fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
}

/// Whether the URL is only scheme, host and port.
pub(crate) fn is_origin(url: &Url) -> bool {
    is_web(url) && url.path() == "/" && url.query().is_none() && url.fragment().is_none()
}
