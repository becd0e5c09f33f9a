//! The return address after sign-in or sign-out: always on our own origin.
//!
//! Invariants
//! - A [`ReturnTo`] is an absolute, normalised http(s) URL of at most [`MAX_BYTES`], without credentials. Its
//!   scheme, host and port are the base URL's.
//!
//! It is parsed by the WHATWG rules that browsers follow, and the parsed URL is kept and sent. A path-only
//! value is never derived from it: `//evil` as a path would become another host.
//!
//! Deliberately absent: any repair of invalid values.

use url::Url;

use super::web_url::is_web;

/// Longest URL kept, in bytes after encoding. It is part of `state`, of answer heads and of kept forms.
pub(crate) const MAX_BYTES: usize = 1024;
/// Longest text that is parsed: a longer one can only be an attack on the parser's time.
const MAX_RAW_BYTES: usize = 8192;

/// An address on our own origin, or one that configuration names for sign-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReturnTo(Url);

impl ReturnTo {
    /// Parses a requested address against the base URL; `None` if it is not allowed.
    #[must_use]
    pub(crate) fn parse(base: &Url, raw: &str) -> Option<Self> {
        let url = parse_web_url(base, raw)?;
        same_origin(base, &url).then_some(Self(url))
    }

    /// As [`ReturnTo::parse`], but also accepts the exact URLs of the sign-out allow-list.
    #[must_use]
    pub(crate) fn parse_for_logout(base: &Url, allowed: &[Url], raw: &str) -> Option<Self> {
        let url = parse_web_url(base, raw)?;
        (same_origin(base, &url) || allowed.contains(&url)).then_some(Self(url))
    }

    /// The base URL itself: the default without a `returnTo`.
    #[must_use]
    pub(crate) fn base(base: &Url) -> Self {
        Self(base.clone())
    }

    /// The absolute URL as text, for the `Location` header.
    #[must_use]
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The absolute URL.
    #[must_use]
    pub(crate) fn url(&self) -> &Url {
        &self.0
    }
}

fn parse_web_url(base: &Url, raw: &str) -> Option<Url> {
    if raw.len() > MAX_RAW_BYTES {
        return None;
    }
    let url = base.join(raw).ok()?;
    (is_web(&url) && url.as_str().len() <= MAX_BYTES).then_some(url)
}

/// Compares the three parts themselves: `Url::origin` of a `blob:` URL is that of the URL inside.
fn same_origin(base: &Url, url: &Url) -> bool {
    url.scheme() == base.scheme()
        && url.host() == base.host()
        && url.port_or_known_default() == base.port_or_known_default()
}

#[cfg(test)]
mod tests;
