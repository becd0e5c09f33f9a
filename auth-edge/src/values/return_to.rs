//! Where a visitor lands after sign-in or sign-out: never anywhere but our own origin.
//!
//! Invariants
//! - A [`ReturnTo`] is an absolute, normalised http(s) URL whose scheme, host and port are the base URL's, without
//!   credentials, at most [`MAX_BYTES`] long.
//!
//! It is parsed by the WHATWG rules that browsers follow and it is the parsed URL that is kept and sent: a path-only value
//! is never derived from it again, since `//evil` as a path would become another host.
//!
//! Deliberately absent: any repair of bad values.

use url::Url;

use super::web_url::is_web;

/// Longest URL kept, in bytes after encoding. It travels in `state`, in the heads of answers and in kept forms.
pub(crate) const MAX_BYTES: usize = 1024;
/// Longest text parsed at all: whatever is longer can only be an attack on the parser's time.
const MAX_RAW_BYTES: usize = 8192;

/// An address on our own origin, or one that configuration names for sign-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReturnTo(Url);

impl ReturnTo {
    /// Parses what a visitor requested against the base URL; `None` if it is not honoured.
    #[must_use]
    pub(crate) fn parse(base: &Url, raw: &str) -> Option<Self> {
        let url = parse_web_url(base, raw)?;
        same_origin(base, &url).then_some(Self(url))
    }

    /// As [`ReturnTo::parse`], but also honours the exact URLs of the sign-out allow-list.
    #[must_use]
    pub(crate) fn parse_for_logout(base: &Url, allowed: &[Url], raw: &str) -> Option<Self> {
        let url = parse_web_url(base, raw)?;
        (same_origin(base, &url) || allowed.contains(&url)).then_some(Self(url))
    }

    /// The base URL itself: where a visitor lands without a `returnTo`.
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
