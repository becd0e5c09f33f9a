//! Maps an upstream's own addresses in its answer to the addresses that clients use.
//!
//! Applications build addresses from the requested name or their own, and from the path they receive. An
//! address with the upstream's host, or our host and the upstream's port, becomes ours (nginx:
//! `proxy_redirect default`). A stripped prefix is added back. Deliberately absent: bodies, other servers.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use crate::providers::sites::Site;

/// Headers that hold one address.
const ADDRESSES: [HeaderName; 2] = [header::LOCATION, header::CONTENT_LOCATION];

/// Browsers accept these cookies only for the whole site (RFC 6265bis, section 4.1.3.2).
const WHOLE_SITE: &str = "__host-";

/// The mapping of upstream addresses to ours.
pub(in crate::gateway) struct AddressMap<'a> {
    /// Our site.
    pub(in crate::gateway) site: &'a Site,
    /// The upstream's address.
    pub(in crate::gateway) upstream: &'a Url,
    /// Our path of the upstream, without a trailing slash.
    pub(in crate::gateway) prefix: &'a str,
}

impl AddressMap<'_> {
    /// Maps all addresses in the headers that browsers follow.
    pub(in crate::gateway) fn map_headers(&self, headers: &mut HeaderMap) {
        for name in ADDRESSES {
            map_values(headers, &name, |address| self.map(address));
        }
        map_values(headers, &header::REFRESH, |refresh| {
            let at = refresh.to_ascii_lowercase().find("url=")? + "url=".len();
            let address = refresh.get(at..)?.trim();
            let quote = address.chars().next().filter(|first| matches!(first, '"' | '\''));
            let mapped = self.map(quote.map_or(address, |quote| address.trim_matches(quote)))?;
            Some(format!("{}{mapped}", refresh.get(..at)?))
        });
        map_values(headers, &header::LINK, |links| {
            let mut pieces = links.split('<');
            let first = pieces.next()?.to_owned();
            Some(pieces.fold(first, |done, piece| {
                let (address, rest) = piece.split_once('>').unwrap_or((piece, ""));
                match self.map(address).filter(|_| piece.contains('>')) {
                    Some(mapped) => format!("{done}<{mapped}>{rest}"),
                    None => format!("{done}<{piece}"),
                }
            }))
        });
        if !self.prefix.is_empty() {
            map_values(headers, &header::SET_COOKIE, |cookie| self.map_cookie(cookie));
        }
    }

    /// The mapped address; `None` if it stays.
    fn map(&self, address: &str) -> Option<String> {
        match split(address) {
            Some((scheme, authority, path)) => self
                .is_upstreams(scheme, authority)
                .then(|| self.site.at(&self.map_path(path))),
            None if address.starts_with('/') && !address.starts_with("//") && !self.prefix.is_empty() => {
                Some(self.map_path(address))
            }
            None => None,
        }
    }

    /// Whether this is the upstream's address, or our host with the upstream's port or with plain HTTP.
    fn is_upstreams(&self, scheme: &str, authority: &str) -> bool {
        let scheme = if scheme.is_empty() {
            self.upstream.scheme()
        } else {
            scheme
        };
        let Ok(named) = Url::parse(&format!("{scheme}://{authority}")) else {
            return false;
        };
        let (ours, port) = (&self.site.base_url, named.port_or_known_default());
        let is_upstreams_port = self.upstream.port_or_known_default() == port;
        let is_plain = named.scheme() == "http" && port == Some(80);
        let is_our_port = is_plain || ours.port_or_known_default() == port || is_upstreams_port;
        let is_upstreams = named.host() == self.upstream.host() && is_upstreams_port;
        let is_ours = named.host() == ours.host() && is_our_port;
        // Rejects userinfo, and backslashes that browsers read as the start of a path.
        !authority.contains(['@', '\\']) && (is_upstreams || is_ours)
    }

    /// The upstream's path below our prefix, unless it is there already, or is one of the edge's own routes.
    fn map_path(&self, path: &str) -> String {
        let root = if path.starts_with('/') { "" } else { "/" };
        let end = path.find(['?', '#']).unwrap_or(path.len());
        let only_path = path.get(..end).unwrap_or_default();
        let below = only_path.strip_prefix(self.prefix);
        let is_below = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let is_here = (is_below && !only_path.is_empty()) || self.site.is_own_route(only_path);
        let prefix = if is_here { "" } else { self.prefix };
        format!("{prefix}{root}{path}")
    }

    fn map_cookie(&self, cookie: &str) -> Option<String> {
        if cookie.trim_start().to_ascii_lowercase().starts_with(WHOLE_SITE) {
            return None;
        }
        let is_path = |name: &str| name.trim().eq_ignore_ascii_case("path");
        let mapped = cookie.split(';').enumerate().map(|(at, attribute)| {
            let path = attribute
                .split_once('=')
                .filter(|(name, _)| at > 0 && is_path(name));
            match path.map(|(_, path)| path.trim()) {
                // The cookie path matches the prefix itself as well (RFC 6265, section 5.1.4).
                Some("/") => format!(" Path={}", self.prefix),
                Some(path) if path.starts_with('/') => format!(" Path={}", self.map_path(path)),
                _ => attribute.to_owned(),
            }
        });
        Some(mapped.collect::<Vec<_>>().join(";"))
    }
}

/// Splits an address that names a host over HTTP into scheme (possibly empty), authority and the rest.
fn split(address: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = address.split_once("//")?;
    let scheme_name = scheme.strip_suffix(':').unwrap_or(scheme);
    let is_http = ["http", "https"]
        .iter()
        .any(|http| scheme_name.eq_ignore_ascii_case(http));
    if !(scheme.is_empty() || is_http && scheme.ends_with(':')) {
        return None;
    }
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    Some((scheme_name, authority, rest))
}

/// Replaces the values of a header for which `map` returns another one.
fn map_values(headers: &mut HeaderMap, name: &HeaderName, map: impl Fn(&str) -> Option<String>) {
    if let header::Entry::Occupied(mut entry) = headers.entry(name) {
        for value in entry.iter_mut() {
            let mapped = std::str::from_utf8(value.as_bytes()).ok().and_then(&map);
            if let Some(mapped) = mapped.and_then(|mapped| HeaderValue::try_from(mapped).ok()) {
                *value = mapped;
            }
        }
    }
}

#[cfg(test)]
#[path = "addresses_tests.rs"]
mod tests;
